#!/bin/sh
# Backs up and restores a gateway that has its store in PostgreSQL. docs/operating.md, "Backups", says when to do which.
#
#   postgres.sh backup DATABASE DATA BACKUPS [KEEP]    while gateways run: makes BACKUPS/countersign-TIME, keeps the newest KEEP (7)
#   postgres.sh check BACKUP                           whether a backup is whole
#   postgres.sh restore BACKUP CONFIG DATA DATABASE    into a new, empty database, while no gateway runs
#
# DATABASE is what psql takes, such as "host=db-1 user=countersign dbname=countersign"; keep the password in ~/.pgpass. DATA is the data
# folder of a node. Run it as the account of the gateway. Needs pg_dump, pg_restore and psql of the server's version or newer, and for
# a restore countersign-gateway on the PATH.
set -eu
umask 077
# shellcheck source=deploy/backup/common.sh
. "$(dirname "$0")/common.sh"

ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }

# Reads all of it, and writes it nowhere.
whole() {
    pg_restore --file=/dev/null "$1" || fail "$1 is damaged; use another backup"
    pg_restore --list "$1" | grep -q 'TABLE DATA .* record ' || fail "$1 is not the store of a gateway"
}

backup() {
    database=$1 data=$2
    begin "$3" "${4:-7}"
    copy_secrets "$data" "$new"
    # `noted` is what nodes that run tell each other, by numbers that mean nothing on another server.
    pg_dump --format=custom --no-owner --exclude-table-data=noted --file="$new/countersign.dump" --dbname="$database"
    whole "$new/countersign.dump"
    finish
}

check() {
    sums "$1"
    whole "$1/countersign.dump"
    echo "$1 is whole"
}

restore() {
    backup=$1 config=$2 data=$3 database=$4
    check "$backup"
    own "$data"
    others=$(ask "$database" "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
    [ "$others" = 0 ] || fail "$others connections to this database are open: stop every gateway first"
    tables=$(ask "$database" "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
    [ "$tables" = 0 ] || fail "this database is not empty: make a new one (createdb), and name it in $config"
    pg_restore --no-owner --exit-on-error --single-transaction --dbname="$database" "$backup/countersign.dump"
    ask "$database" ANALYZE
    set_aside "$data" secret
    secrets_after_restore "$backup" "$config" "$data"
    echo "copy $data/secret and $data/key-secret to the other nodes before they start"
}

case "${1:-} $#" in
    "backup 4" | "backup 5" | "check 2" | "restore 5") "$@" ;;
    *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
