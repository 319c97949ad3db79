//! The plans of the hot statements: each finds its rows by key, among ten thousand rows and among a million, or by hand
//! among ten million.

use std::fmt::Write as _;

use countersign_testkit::postgres::Postgres;
use tokio_postgres::{Client, NoTls};

use crate::{
    audit, claims, connect::PLANNER_SETTINGS, large_payloads, options::Options, reads, residences,
    statements, store::PostgresStore,
};

const SMALL: i64 = 10_000;

/// The rows of the large fill: a million, or what `COUNTERSIGN_EXPLAIN_ROWS` says, for a run by hand.
fn large() -> i64 {
    let rows = std::env::var("COUNTERSIGN_EXPLAIN_ROWS").ok();
    rows.map_or(1_000_000, |rows| rows.parse().expect("COUNTERSIGN_EXPLAIN_ROWS is a number"))
}

/// A page of a tenant's log, as docs/operating.md has it.
const AUDIT_LOG: &str = "SELECT at, seq, subject_kind, subject_id, event FROM audit \
    WHERE tenant = $1 AND at >= $2 AND (at, seq) > ($2, $3) ORDER BY at, seq LIMIT $4";

/// The first of January 2026, in microseconds; the months of that year are partitions.
const YEAR: &str = "1767225600000000";

type HotStatement = (&'static str, &'static str, Vec<&'static str>);

const KEYS: [&str; 3] = ["ARRAY['acme','acme']", "ARRAY[1,1]::smallint[]", "ARRAY['r777','r4242']"];

fn keys_and(more: &[&'static str]) -> Vec<&'static str> {
    [&KEYS, more].concat()
}

/// A payload that is there, one that is pending, and a new one.
const PAYLOAD: &str = "ARRAY[decode(lpad(to_hex(777),32,'0'),'hex')]";
const PENDING: &str = "ARRAY[decode(lpad(to_hex(771),32,'0'),'hex')]";
const NEW_PAYLOAD: &str = "decode(repeat('f',32),'hex')";

/// What reads, with the arguments of a typical call.
fn reading() -> Vec<HotStatement> {
    vec![
        ("load", reads::LOAD, vec!["'acme'", KEYS[1], KEYS[2]]),
        ("payloads", reads::PAYLOADS, vec!["'acme'", PAYLOAD]),
        (
            "deliveries",
            reads::DELIVERIES,
            vec!["'acme'", "'s'", "5000", "true", "'ada'", "true", "50", "1000000", "1000"],
        ),
        ("deliveries_by_subject", reads::DELIVERIES_BY_SUBJECT, vec!["'acme'", "'r777'"]),
        ("heads", reads::HEADS, vec!["ARRAY['acme','acme']", "ARRAY['a:11','a:ada']"]),
        ("scan", reads::SCAN, vec!["'acme'", "1::smallint", "'r5'", "50"]),
        ("audit_log", AUDIT_LOG, vec!["'acme'", YEAR, "0", "50"]),
        ("residences", residences::CHANGED, vec!["9000000000"]),
    ]
}

/// What a commit runs, beside payloads.
fn committing() -> Vec<HotStatement> {
    let one = ["ARRAY['acme']", "ARRAY['s']", "ARRAY[771]::bigint[]"];
    let and = |more: &[&'static str]| [&one, more].concat();
    vec![
        ("now", statements::NOW, vec!["ARRAY['m1','acme']", "ARRAY[1,0]::bigint[]"]),
        ("lock", statements::LOCK_RECORDS, keys_and(&[])),
        ("reserve", statements::RESERVE_RECORDS, keys_and(&["ARRAY['x','x']::bytea[]", "16"])),
        ("read", statements::READ_RECORDS, keys_and(&[])),
        (
            "update_records",
            statements::UPDATE_RECORDS,
            keys_and(&["ARRAY[2,2]::bigint[]", "ARRAY['x','x']::bytea[]"]),
        ),
        ("delete_records", statements::DELETE_RECORDS, keys_and(&[])),
        ("delete_deliveries", statements::DELETE_DELIVERIES, and(&[])),
        ("delete_marks", statements::DELETE_MARKS, and(&[])),
        (
            "delete_deliveries_by_subject",
            statements::DELETE_DELIVERIES_BY_SUBJECT,
            keys_and(&["ARRAY['approval.request','approval.request']", "ARRAY[NULL,NULL]::text[]"]),
        ),
        (
            "upsert_marks",
            statements::UPSERT_MARKS,
            and(&["ARRAY['ada']", "ARRAY[true]::bool[]", "ARRAY[false]::bool[]"]),
        ),
        ("upsert_due", statements::UPSERT_DUE, keys_and(&["ARRAY[1,1]::bigint[]"])),
        ("delete_due", statements::DELETE_DUE, keys_and(&[])),
        (
            "insert_audit",
            statements::INSERT_AUDIT,
            vec!["ARRAY['acme']", "ARRAY[1]::smallint[]", "ARRAY['r1']", "ARRAY['x']::bytea[]", YEAR],
        ),
        (
            "insert_deliveries",
            statements::INSERT_DELIVERIES,
            vec![
                "ARRAY['acme']",
                "ARRAY['e:robot']",
                "ARRAY[1]::bigint[]",
                "ARRAY['acme']",
                "ARRAY['e:robot']",
                "ARRAY[0]::bigint[]",
                "ARRAY['m']",
                "ARRAY['approval.request']",
                "ARRAY[1]::smallint[]",
                "ARRAY['r1']",
                "ARRAY[NULL]::bytea[]",
                "ARRAY[9]::bigint[]",
                "1",
            ],
        ),
    ]
}

/// What a commit runs for its payloads.
fn keeping_payloads() -> Vec<HotStatement> {
    vec![
        ("lock_pending_payloads", statements::LOCK_PENDING_PAYLOADS, vec![PENDING]),
        (
            "insert_payloads",
            statements::INSERT_PAYLOADS,
            vec!["ARRAY['acme']", "ARRAY[decode(repeat('f',32),'hex')]", "ARRAY['x']::bytea[]"],
        ),
        ("confirm_payloads", statements::CONFIRM_PAYLOADS, vec![PENDING]),
        ("delete_payloads", statements::DELETE_PAYLOADS, vec!["ARRAY['acme']", PAYLOAD]),
        ("write_payload", large_payloads::WRITE, vec![NEW_PAYLOAD, "'acme'", "'x'"]),
        ("discard_payloads", large_payloads::DISCARD, vec![PENDING]),
    ]
}

/// What the sweeper runs.
fn sweeping() -> Vec<HotStatement> {
    vec![
        ("claim_due", claims::CLAIM_DUE, vec!["200", "30000000"]),
        ("sweep_orphans", large_payloads::SWEEP, vec!["1", "200"]),
        ("audit_missing", audit::MISSING, vec![]),
        ("audit_over", audit::OVER, vec![YEAR]),
        ("audit_delete", audit::DELETE, vec!["9000000000000100", "50"]),
    ]
}

fn hot_statements() -> Vec<HotStatement> {
    [reading(), committing(), keeping_payloads(), sweeping()].concat()
}

/// Every month of 2026 as a partition of the audit log.
async fn make_months(client: &Client) {
    let months = "DO $$ DECLARE starts timestamp; name text; BEGIN \
        FOR starts IN SELECT generate_series(timestamp '2026-01-01', '2026-12-01', '1 month') LOOP \
            name := 'audit_' || to_char(starts, 'YYYYMM'); \
            IF to_regclass(name) IS NULL THEN \
                EXECUTE format('CREATE TABLE %s PARTITION OF audit FOR VALUES FROM (%s) TO (%s)', name, \
                    (extract(epoch FROM starts) * 1000000)::bigint, \
                    (extract(epoch FROM starts + interval '1 month') * 1000000)::bigint); \
            END IF; \
        END LOOP; END $$";
    client.batch_execute(months).await.unwrap();
}

/// Fills a tenant up to `count` exchanges that are pending in its shared mailbox, with a tenth as many marks, mailboxes,
/// pending payloads and tenants that were moved. Only a few are due. The audit log has as many rows over a year, one in a hundred of this tenant,
/// and a tenth as many in its default partition.
async fn fill(client: &Client, from: i64, count: i64) {
    let sql = format!(
        "SET synchronous_commit = off;
         INSERT INTO record SELECT 'acme', 1, 'r' || i, 1, repeat('x', 300)::bytea FROM generate_series({from}, {count}) i;
         INSERT INTO payload SELECT decode(lpad(to_hex(i), 32, '0'), 'hex'), 'acme', repeat('x', 40)::bytea
             FROM generate_series({from}, {count}) i;
         INSERT INTO delivery SELECT 'acme', 's', i, 'm' || i, 'approval.request', 1, 'r' || i, NULL, 0, 9000000000000000
             FROM generate_series({from}, {count}) i;
         INSERT INTO due SELECT 'acme', 1, 'r' || i, CASE WHEN i < 500 THEN 0 ELSE 9000000000000000 END
             FROM generate_series({from}, {count}) i;
         INSERT INTO mailbox SELECT 'acme', 'a:' || i, 1 FROM generate_series({from}, {count}, 10) i;
         INSERT INTO mark SELECT 'acme', 's', i, 'bob', true, false FROM generate_series({from}, {count}, 10) i;
         INSERT INTO payload_pending SELECT decode(lpad(to_hex(i), 32, '0'), 'hex'), 0
             FROM generate_series({from}, {count}, 10) i;
         INSERT INTO audit (tenant, at, subject_kind, subject_id, event)
             SELECT CASE WHEN i % 100 = 0 THEN 'acme' ELSE 't' || i % 1000 END,
                 {YEAR} + (i - {from}) * (31000000000000 / ({count} - {from} + 1)), 1, 'r' || i, 'x'
             FROM generate_series({from}, {count}) i;
         INSERT INTO audit (tenant, at, subject_kind, subject_id, event)
             SELECT 'acme', 9000000000000000 + i, 1, 'r' || i, 'x' FROM generate_series({from}, {count}, 10) i;
         INSERT INTO residence SELECT 'm' || i, 1, 4, 1, i, '' FROM generate_series({from}, {count}, 10) i;
         ANALYZE residence, record, payload, payload_pending, delivery, mark, due, mailbox, audit;"
    );
    client.batch_execute(&sql).await.unwrap();
    client.batch_execute("VACUUM").await.unwrap();
}

/// The scan and sort nodes of a plan, with their tables and indexes, and the number of buffers that it touched.
async fn explain(client: &Client, name: &str, arguments: &[&str]) -> (String, u64) {
    let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
    let run = format!("EXECUTE {name} {arguments}");
    // Twice: the first execution also reads the catalogue.
    let mut plan = Vec::new();
    for _ in 0..2 {
        client.batch_execute("BEGIN").await.unwrap();
        let rows =
            client.query(&format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {run}"), &[]).await;
        plan = rows.unwrap().iter().map(|row| row.get::<_, String>(0)).collect();
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    let buffers = plan.iter().find_map(|line| line.trim().strip_prefix("Buffers: shared ")).unwrap_or("");
    let touched = buffers
        .split([' ', ','])
        .filter_map(|word| word.strip_prefix("hit=").or_else(|| word.strip_prefix("read=")))
        .map(|count| count.parse::<u64>().unwrap())
        .sum();
    let nodes: Vec<String> = plan
        .iter()
        .filter_map(|line| line.split(" (actual").next())
        .map(|line| line.trim().trim_start_matches("->").trim().to_owned())
        .filter(|line| line.contains(" Scan") || line.starts_with("Sort") && !line.contains(':'))
        .collect();
    (nodes.join("; "), touched)
}

#[tokio::test]
async fn hot_statements_touch_as_little_among_many_rows_as_among_ten_thousand() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let store = PostgresStore::open(Options::new(server.url())).await.unwrap();
    let url = format!("{} options='{PLANNER_SETTINGS}'", server.url());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);

    make_months(&client).await;

    // Prepared on empty tables, as in a gateway that has just been installed.
    for (name, sql, arguments) in hot_statements() {
        client.batch_execute(&format!("PREPARE {name} AS {sql}")).await.unwrap();
        explain(&client, name, &arguments).await;
    }
    fill(&client, 1, SMALL).await;
    let mut small = Vec::new();
    for (name, _, arguments) in hot_statements() {
        small.push(explain(&client, name, &arguments).await.1);
    }
    let count = large();
    fill(&client, SMALL + 1, count).await;
    let mut table =
        format!("| statement | buffers at {SMALL} rows | at {count} | plan |\n|---|---|---|---|\n");
    let mut faults = Vec::new();
    for ((name, _, arguments), small) in hot_statements().into_iter().zip(small) {
        let (plan, large) = explain(&client, name, &arguments).await;
        writeln!(table, "| {name} | {small} | {large} | {plan} |").unwrap();
        // A hundred times the rows may cost one more level of the B-tree for each key.
        if large > small * 2 + 8 {
            faults.push(format!("{name} touches {small} buffers among few rows and {large} among many"));
        }
        if plan.contains("Seq Scan") {
            faults.push(format!("{name} reads a whole table: {plan}"));
        }
    }
    println!("{table}");
    assert!(faults.is_empty(), "{faults:#?}\n{table}");
    drop(store);
}
