#!/bin/sh
# Backs up and restores a gateway that has its store in SQLite. docs/operating.md, "Backups", says when to do which.
#
#   sqlite.sh backup DATA BACKUPS [KEEP]    while the gateway runs: makes BACKUPS/countersign-TIME, keeps the newest KEEP (7)
#   sqlite.sh check BACKUP                  whether a backup is whole
#   sqlite.sh restore BACKUP CONFIG DATA    while no gateway runs; what was there is moved to DATA/replaced-TIME
#
# Run it as the account of the gateway. Needs sqlite3 (3.27 or newer), and for a restore countersign-gateway on the PATH.
set -eu
umask 077
# shellcheck source=deploy/backup/common.sh
. "$(dirname "$0")/common.sh"

whole() {
    [ "$(sqlite3 -readonly "$1" 'PRAGMA integrity_check')" = ok ] || fail "$1 is damaged; use another backup"
    sqlite3 -readonly "$1" 'SELECT count(*) FROM record' >/dev/null || fail "$1 is not the store of a gateway"
}

backup() {
    data=$1
    [ -f "$data/countersign.sqlite" ] || fail "$data has no countersign.sqlite: name the data folder of the gateway"
    begin "$2" "${3:-7}"
    copy_secrets "$data" "$new"
    # One read of one moment, however much is written meanwhile. ".backup" begins anew with each commit of another process.
    sqlite3 "$data/countersign.sqlite" "VACUUM INTO '$new/countersign.sqlite'"
    whole "$new/countersign.sqlite"
    finish
}

check() {
    sums "$1"
    whole "$1/countersign.sqlite"
    echo "$1 is whole"
}

restore() {
    backup=$1 config=$2 data=$3
    check "$backup"
    own "$data"
    file=$data/countersign.sqlite
    open=$(find /proc/[0-9]*/fd -lname "$(realpath "$data")/countersign.sqlite*" 2>/dev/null | head -n 1)
    [ -z "$open" ] || fail "process $(echo "$open" | cut -d/ -f3) has $file open: stop the gateway first"
    # The same, where the process is in another container: leaving the write-ahead log needs the file for oneself.
    if [ -f "$file" ] && sqlite3 "$file" 'PRAGMA journal_mode = DELETE' 2>&1 | grep -q locked; then
        fail "a process has $file open: stop the gateway first"
    fi
    set_aside "$data" secret countersign.sqlite countersign.sqlite-wal countersign.sqlite-shm
    cp "$backup/countersign.sqlite" "$data/restoring.sqlite"
    sync "$data/restoring.sqlite"
    mv -n "$data/restoring.sqlite" "$file"
    secrets_after_restore "$backup" "$config" "$data"
}

case "${1:-} $#" in
    "backup 3" | "backup 4" | "check 2" | "restore 4") "$@" ;;
    *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
