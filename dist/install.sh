#!/bin/sh
# Installs Countersign for you alone, without root: the programs into ~/.local/bin, or DIR/bin with --prefix DIR.
# It installs nothing whose checksum is not signed by the key below (docs/install.md).
#
# Usage: sh install.sh [--prefix DIR]
# COUNTERSIGN_DOWNLOAD_URL names another place to download from; it needs the same signature.
set -eu

PUBLIC_KEY=
BUILT_FOR=
URL=${COUNTERSIGN_DOWNLOAD_URL:-$BUILT_FOR}

fail() {
    echo "install.sh: $1" >&2
    [ -z "${2:-}" ] || echo "  → $2" >&2
    echo "Nothing was installed." >&2
    exit 1
}

target() {
    system=$(uname -s)/$(uname -m)
    case "$system" in
    Linux/x86_64 | Linux/amd64) machine=x86_64 ;;
    Linux/aarch64 | Linux/arm64) machine=aarch64 ;;
    *) fail "there are no programs for $system" "build from source: docs/install.md" ;;
    esac
    # Where there is no glibc (Alpine), the program of glibc would not start.
    if ls /lib/ld-musl-* >/dev/null 2>&1 && ! ls /lib*/ld-linux* >/dev/null 2>&1; then
        echo "$machine-unknown-linux-musl"
    else
        echo "$machine-unknown-linux-gnu"
    fi
}

download() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --output "$2" "$URL/$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$URL/$1"
    else
        fail "there is neither curl nor wget" "install one of them"
    fi || fail "can't download $URL/$1" "is the address right? COUNTERSIGN_DOWNLOAD_URL changes it"
}

# What minisign checks, with OpenSSL 3: Ed25519 over BLAKE2b of the file. A key is 2 bytes, the key's id (8) and 32 bytes;
# a signature 2 bytes, "ED", the id, and 64 bytes.
is_signed() {
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; echo "$PUBLIC_KEY" | openssl base64 -d -A | tail -c 32; } >key
    sed -n 2p SHA256SUMS.minisig | openssl base64 -d -A >signature
    [ "$(wc -c <signature)" -eq 74 ] && [ "$(head -c 2 signature)" = ED ] || return 1
    tail -c 64 signature >signature.raw
    openssl dgst -blake2b512 -binary SHA256SUMS >hashed
    openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in hashed -sigfile signature.raw >/dev/null 2>&1
}

check_signature() {
    if command -v minisign >/dev/null; then
        minisign -V -q -P "$PUBLIC_KEY" -m SHA256SUMS >/dev/null 2>&1
    elif openssl pkeyutl -help 2>&1 | grep -q -- -rawin; then
        is_signed
    else
        fail "the signature can't be checked: there is no minisign, and no OpenSSL 3" "install one of them, such as the package \`openssl\` or \`minisign\`"
    fi || fail "the checksums are not signed by the key of the project" "somebody may have changed them: do not install them, and report it"
}

check_sum() {
    if command -v sha256sum >/dev/null; then
        sum=$(sha256sum "$1" | cut -d' ' -f1)
    else
        sum=$(openssl dgst -sha256 -r "$1" | cut -d' ' -f1)
    fi
    grep -qx "$sum  $1" SHA256SUMS || fail "$1 is not what was signed" "download it again; if it stays so, report it"
}

main() {
    prefix=$HOME/.local
    case "${1:-}" in
    "") ;;
    --prefix) prefix=${2:?--prefix needs a folder} ;;
    *) fail "unknown option $1" "usage: install.sh [--prefix DIR]" ;;
    esac
    case "$prefix" in /*) ;; *) prefix=$PWD/$prefix ;; esac
    [ -n "$PUBLIC_KEY" ] || fail "this is the script of the source, without a key" "use the install.sh of a release (dist/README.md)"
    [ -n "$URL" ] || fail "no address to download from" "set COUNTERSIGN_DOWNLOAD_URL"
    target=$(target)

    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    cd "$scratch"
    download SHA256SUMS SHA256SUMS
    download SHA256SUMS.minisig SHA256SUMS.minisig
    check_signature
    archive=$(sed -n "s/^[0-9a-f]\{64\}  \(countersign-[0-9][0-9a-z.-]*-$target\.tar\.gz\)\$/\1/p" SHA256SUMS)
    [ -n "$archive" ] || fail "this release has no programs for $target" "build from source: docs/install.md"
    download "$archive" "$archive"
    check_sum "$archive"

    gzip -dc "$archive" | tar -xf -
    folder=${archive%.tar.gz}
    version=${folder#countersign-} version=${version%-"$target"}
    "./$folder/bin/countersign" --version >/dev/null || fail "the programs don't start here" "build from source: docs/install.md"
    mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions"
    for name in countersign countersign-hook countersign-gateway; do
        # By renaming: what runs keeps its file.
        cp "$folder/bin/$name" "$prefix/bin/.$name.new"
        mv -f "$prefix/bin/.$name.new" "$prefix/bin/$name"
    done
    cp "$folder"/share/man/man1/countersign*.1 "$prefix/share/man/man1/"
    cp "$folder/share/completions/countersign.bash" "$prefix/share/bash-completion/completions/countersign"

    echo "✓ Countersign $version is in $prefix/bin."
    case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "That folder is not in your PATH. Add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    echo "Next: countersign up"
}

# All of it has arrived when this line has.
main "$@"
