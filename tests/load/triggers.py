#!/usr/bin/env python3
"""What the triggers of PostgreSQL's schema cost: the statements of one submission, a transaction each, with them and without.

    tests/load/triggers.py [--rounds N] [--seconds N]

A private PostgreSQL with our migrations, two connections of pgbench, rounds in turn. A gateway puts many submissions into one
transaction, so it pays less than this for each. Standard library, and PostgreSQL's programs from Debian; two minutes.
"""
import argparse, pathlib, re, shutil, statistics, subprocess, tempfile

from tenants import BINS, Postgres

MIGRATIONS = pathlib.Path(__file__).resolve().parents[2] / "crates/store-postgres/migrations"
SUBMISSION = r"""
\set box random(1, 1000)
BEGIN;
INSERT INTO record (tenant, kind, id, version, content)
    VALUES ('acme', 1, 'r' || :client_id || random(), nextval('record_incarnation') << 16, decode(repeat('ab', 300), 'hex'));
INSERT INTO payload (id, tenant, content)
    VALUES (decode(md5(random()::text || clock_timestamp()::text), 'hex'), 'acme', decode(repeat('ab', 900), 'hex'));
INSERT INTO due (tenant, kind, id, at) VALUES ('acme', 1, 'r' || :client_id || random(), gateway_now() + 600000000);
INSERT INTO audit (tenant, at, subject_kind, subject_id, event) VALUES ('acme', gateway_now(), 1, 'r', 'x');
WITH counted AS (INSERT INTO mailbox VALUES ('acme', 'a:' || :box, 1)
    ON CONFLICT (tenant, name) DO UPDATE SET counter = mailbox.counter + 1 RETURNING *)
INSERT INTO delivery SELECT tenant, name, counter, 'm', 'approval.request', 1, 'r', NULL, 1, 2 FROM counted;
COMMIT;
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=6)
    args = parser.parse_args()
    top = pathlib.Path(tempfile.mkdtemp(prefix="triggers-"))
    postgres = Postgres(top)
    try:
        for migration in sorted(MIGRATIONS.glob("*.sql")):
            postgres.sql(migration.read_text())
        script = top / "submission.sql"
        script.write_text(SUBMISSION)

        def rate(has_triggers):
            for table in ("record", "mailbox", "payload"):
                postgres.sql(f"ALTER TABLE {table} {'ENABLE' if has_triggers else 'DISABLE'} TRIGGER USER")
            bench = [BINS[-1] / "pgbench", "-n", "-h", "127.0.0.1", "-p", str(postgres.port), "-U", "countersign", "-f", script, "-c", "2", "-T", str(args.seconds), "countersign"]
            said = subprocess.run(bench, check=True, capture_output=True, text=True).stdout
            return float(re.search(r"tps = ([\d.]+)", said).group(1))

        rate(True)
        ratios = []
        for number in range(args.rounds):
            order = (True, False) if number % 2 else (False, True)
            measured = {arm: rate(arm) for arm in order}
            ratios.append(measured[True] / measured[False])
            print(f"with {measured[True]:.0f} a second, without {measured[False]:.0f}, ratio {ratios[-1]:.2f}", flush=True)
        print(f"median of the ratios {statistics.median(ratios):.2f}")
    finally:
        postgres.end()
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
