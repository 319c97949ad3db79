#!/bin/sh
# Sets up a keeper under an account of its own, or removes it (docs/keeper.md). Run it as root.
#
# Usage: packaging/account/install.sh FOLDER_WITH_THE_PROGRAMS
#        packaging/account/install.sh --remove [--with-keys]
#
# It makes the system account `countersign-keeper`, copies the three programs to /usr/lib/countersign, links the tool into
# /usr/local/bin, and starts the service countersign-keeper. Run again, it brings the programs up to date. What the keeper keeps,
# /var/lib/countersign-keeper, stays unless you say --with-keys.
set -eu

ACCOUNT=countersign-keeper
PROGRAMS=/usr/lib/countersign
KEPT=/var/lib/countersign-keeper
UNIT=/etc/systemd/system/countersign-keeper.service
LINK=/usr/local/bin/countersign
HERE=$(dirname "$(readlink -f "$0")")

fail() {
    echo "$1" >&2
    exit 1
}

remove() {
    systemctl disable --now countersign-keeper 2>/dev/null || true
    rm -f "$UNIT"
    systemctl daemon-reload
    [ "$(readlink "$LINK")" != "$PROGRAMS/countersign" ] || rm -f "$LINK"
    rm -rf "$PROGRAMS"
    if [ "${1:-}" = --with-keys ]; then
        rm -rf "$KEPT"
        ! id "$ACCOUNT" >/dev/null 2>&1 || userdel "$ACCOUNT"
        echo "Removed, with all keys and rules."
    else
        echo "Removed. Keys and rules are still in $KEPT; --remove --with-keys removes them too."
    fi
    echo "Hooks that ask the keeper deny everything now: run \`countersign uninstall HOST --managed\` for each."
}

install_all() {
    for name in countersign countersign-hook countersign-gateway; do
        [ -x "$1/$name" ] || fail "There is no program $name in $1. Build it: cargo build --release --bin $name"
    done
    if ! id "$ACCOUNT" >/dev/null 2>&1; then
        useradd --system --user-group --home-dir "$KEPT" --no-create-home --shell /usr/sbin/nologin "$ACCOUNT"
    fi
    [ "$(id -u "$ACCOUNT")" != 0 ] || fail "The account $ACCOUNT is root. The keeper needs one of its own."
    install -d -o root -g root -m 0755 "$PROGRAMS"
    for name in countersign countersign-hook countersign-gateway; do
        # By renaming: what runs keeps its file.
        install -o root -g root -m 0755 "$1/$name" "$PROGRAMS/$name.new"
        mv -f "$PROGRAMS/$name.new" "$PROGRAMS/$name"
    done
    install -d -o "$ACCOUNT" -g "$ACCOUNT" -m 0711 "$KEPT"
    install -o root -g root -m 0644 "$HERE/countersign-keeper.service" "$UNIT"
    [ -e "$LINK" ] || [ -L "$LINK" ] || ln -s "$PROGRAMS/countersign" "$LINK"
    systemctl daemon-reload
    systemctl enable countersign-keeper
    systemctl restart countersign-keeper
    "$PROGRAMS/countersign" keeper status --system
    cat <<'TEXT'
Next, for each account whose agents it decides for:
  sudo countersign keeper as USER join             with an invitation for an enforcer
  sudo countersign keeper as USER pair             with the person's phone, or another machine of theirs
  setfacl -m u:countersign-keeper:x ~USER ~USER/.config   so that rules can allow something where these are closed
Then, for every account of this machine:
  sudo /usr/lib/countersign/countersign install HOST --managed --keeper system
TEXT
}

[ "$(id -u)" = 0 ] || fail "Run this as root."
case "${1:-}" in
--remove) remove "${2:-}" ;;
"" | -*) fail "Usage: $0 FOLDER_WITH_THE_PROGRAMS | --remove [--with-keys]" ;;
*) install_all "$1" ;;
esac
