#!/usr/bin/env python3
"""What an exchange takes on the disk, on both stores: while it is kept whole, and when only its id and the audit log are left.

    tests/load/storage.py FOLDER [EXCHANGES]    (with countersign-gateway; 2,000)

Each is a sealed request of 2 KB to everybody, an approval, and its acknowledgement. The store is measured after it was compacted (VACUUM),
without its log and without what an empty one takes; a store that is written to needs more, up to twice as much. Then the clock goes 31 days ahead (faketime for SQLite, the
function gateway_now() for PostgreSQL), the gateway deletes the bodies, and it is measured again. Debian's faketime, sqlite3 and postgresql.
"""
import hashlib, json, os, pathlib, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "backup"))
from drill import LATER, OnPostgres, Sqlite, Stage  # noqa: E402

THREADS = 4
DAYS = 31


def exchange(stage, id):
    digest = hashlib.sha256(id.encode()).hexdigest()
    sealed = {"requestId": id, "artifactType": "command.review", "artifactHash": digest, "ciphertext": os.urandom(1024).hex(), "expiresAt": LATER}
    decision = {"requestId": id, "artifactHashAlg": "SHA-256", "artifactHash": digest, "repoRef": "repo:acme/widgets", "decision": "approve",
                "scope": "once", "expiresAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600)), "nonce": os.urandom(16).hex(),
                "sigAlg": "Ed25519", "signerKeyId": "k" * 43, "signature": "s" * 86}
    steps = [("enforcer", "POST", "/v1/artifact", sealed, 202), ("approver", "POST", "/v1/decision", decision, 200)]
    for role, method, path, body, expected in steps:
        status, text = stage.call(role, method, path, body)
        if status != expected:
            raise SystemExit(f"FAILED {path}: {status} {text}")
    _, text = stage.call("enforcer", "GET", f"/v1/exchanges/{id}/wait")
    ack = {"msgType": "ack.submit", "requestId": id, "createdAt": LATER, "sender": {"enforcerId": "robot"}, "body": {"msgId": json.loads(text)["msgId"]}}
    status, text = stage.call("enforcer", "POST", "/v1/acks", ack)
    if status != 200:
        raise SystemExit(f"FAILED /v1/acks: {status} {text}")


def size(stage):
    """Compacted, in bytes."""
    if stage.store.name == "sqlite":
        copy = stage.home / f"copy-{time.time()}"
        subprocess.run(["sqlite3", stage.data / "countersign.sqlite", f"DELETE FROM noted; VACUUM INTO '{copy}'"], check=True)
        return copy.stat().st_size
    stage.store.server.sql("TRUNCATE noted")
    stage.store.server.sql("VACUUM FULL")
    tables = "record payload payload_pending mailbox delivery mark due stored audit_default".split()
    listed = ", ".join(f"'{table}'" for table in tables)
    return int(stage.store.server.sql("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
                                      f"AND (relname IN ({listed}) OR relname LIKE 'audit\\_2%')"))


def ahead(stage):
    stage.stop()
    if stage.store.name == "postgres":
        stage.store.server.sql(f"CREATE OR REPLACE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp() + interval '{DAYS} days') * 1000000)::bigint $$")
        stage.start()
        return
    with open(stage.home / "log", "ab") as log:
        stage.process = subprocess.Popen(["faketime", "-f", f"+{DAYS}d", stage.program, "serve", "--config", stage.config], stdout=log, stderr=log, start_new_session=True)


def payloads(stage):
    if stage.store.name == "sqlite":
        return int(subprocess.run(["sqlite3", stage.data / "countersign.sqlite", "SELECT count(*) FROM payload"], check=True, capture_output=True, text=True).stdout)
    return int(stage.store.server.sql("SELECT count(*) FROM payload"))


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    for kind in (Sqlite, OnPostgres):
        with tempfile.TemporaryDirectory(prefix="storage-") as home:
            stage = Stage(pathlib.Path(sys.argv[1]).resolve() / "countersign-gateway", pathlib.Path(home), kind)
            stage.start()
            empty = size(stage)
            work = lambda first: [exchange(stage, f"exchange-{number:08}") for number in range(first, count, THREADS)]
            threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            whole = size(stage)
            ahead(stage)
            end = time.time() + 120
            while payloads(stage) and time.time() < end:
                time.sleep(0.5)
            left = payloads(stage)
            buried = size(stage)
            if stage.store.name == "sqlite":
                # faketime stays in between, so the two end together.
                os.killpg(stage.process.pid, signal.SIGKILL)
            stage.stop()
            stage.store.end()
            if left:
                raise SystemExit(f"FAILED {left} bodies are left")
            print(f"{kind.name}: {count} exchanges; whole {(whole - empty) / count:.0f} B each, after {DAYS} days {(buried - empty) / count:.0f} B each", flush=True)


main()
