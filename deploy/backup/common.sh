# What both scripts share; sourced by them. shellcheck shell=sh

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

now() { date -u +%Y%m%dT%H%M%SZ; }

# begin BACKUPS KEEP: a folder that has another name until it is whole.
begin() {
    backups=$1 keep=$2
    case "$keep" in '' | *[!0-9]* | 0) fail "KEEP is a number from 1 on, not $keep" ;; esac
    mkdir -p "$backups"
    made=$backups/countersign-$(now)
    [ ! -e "$made" ] || fail "$made is there already; try again in a second"
    new=$backups/.incomplete-$$
    mkdir "$new"
    trap 'rm -rf "$new"' EXIT
}

# Before the store: it may know of secrets that a later copy has, and never of fewer.
copy_secrets() {
    for name in secret key-secret; do
        cp "$1/$name" "$2/$name" || fail "$1/$name can't be copied: run this as the account of the gateway"
    done
}

# Puts sums beside the files, gives the folder its name, and removes what is older than the newest KEEP.
finish() {
    (cd "$new" && sha256sum -- * >SHA256SUMS)
    sync "$new"/* "$new"
    mv -T "$new" "$made"
    sync "$backups"
    trap - EXIT
    echo "made $made ($(du -sh "$made" | cut -f1))"
    find "$backups" -maxdepth 1 -type d -name 'countersign-????????T??????Z' | sort -r | tail -n "+$((keep + 1))" | while read -r old; do
        rm -rf "$old"
        echo "removed $old"
    done
}

sums() {
    [ -f "$1/SHA256SUMS" ] || fail "$1 is no backup: it has no SHA256SUMS"
    (cd "$1" && sha256sum --quiet --check SHA256SUMS) || fail "$1 is not as it was made; use another backup"
}

own() {
    [ -d "$1" ] || fail "there is no $1: make it first, for the account of the gateway only"
    [ -O "$1" ] || fail "$1 belongs to $(stat -c %U "$1"): run this as that account"
}

# set_aside DATA FILE...: moves what is there, so that a mistake can be taken back.
set_aside() {
    data=$1 replaced=$1/replaced-$(now)
    shift
    mkdir "$replaced"
    for name in "$@"; do
        [ ! -e "$data/$name" ] || mv "$data/$name" "$replaced/"
    done
    echo "moved what was there to $replaced; delete it when all is well"
}

# Streams go on from numbers that the store may have given out again: a new secret ends them. API keys need the old key-secret.
secrets_after_restore() {
    backup=$1 config=$2 data=$3
    [ -e "$data/key-secret" ] || cp "$backup/key-secret" "$data/key-secret"
    if ! grep -qxFf "$data/key-secret" "$backup/key-secret"; then
        echo "key-secret is another than in the backup: API keys of that time are rejected unless you add its line" >&2
    fi
    countersign-gateway secret accept --config "$config"
    sync "$data"
    echo "restored $backup; now start the gateway, and revoke the keys again that were revoked after the backup"
}
