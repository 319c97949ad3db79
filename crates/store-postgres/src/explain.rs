//! The plans of the hot statements: each finds its rows by key, among ten thousand rows and among a million.

use std::fmt::Write as _;

use countersign_testkit::postgres::Postgres;
use tokio_postgres::{Client, NoTls};

use crate::{claims, connect::PLANNER_SETTINGS, options::Options, reads, statements, store::PostgresStore};

const SMALL: i64 = 10_000;
const LARGE: i64 = 1_000_000;

/// Each hot statement with the arguments of a typical call.
fn hot_statements() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let keys = ["ARRAY['acme','acme']", "ARRAY[1,1]::smallint[]", "ARRAY['r777','r4242']"];
    let and = |more: &[&'static str]| [&keys, more].concat();
    vec![
        ("load", reads::LOAD, vec!["'acme'", keys[1], keys[2]]),
        ("payloads", reads::PAYLOADS, vec!["'acme'", "ARRAY[decode(lpad(to_hex(777),32,'0'),'hex')]"]),
        ("deliveries", reads::DELIVERIES, vec!["'acme'", "'s'", "5000", "true", "'ada'", "true", "50"]),
        ("deliveries_by_subject", reads::DELIVERIES_BY_SUBJECT, vec!["'acme'", "'r777'"]),
        ("heads", reads::HEADS, vec!["ARRAY['acme','acme']", "ARRAY['a:11','a:ada']"]),
        ("scan", reads::SCAN, vec!["'acme'", "1::smallint", "'r5'", "50"]),
        ("claim_due", claims::CLAIM_DUE, vec!["200", "30000000"]),
        ("upsert_due", statements::UPSERT_DUE, and(&["ARRAY[1,1]::bigint[]"])),
        ("delete_due", statements::DELETE_DUE, and(&[])),
        ("lock", statements::LOCK_RECORDS, and(&[])),
        ("reserve", statements::RESERVE_RECORDS, and(&["ARRAY['x','x']::bytea[]", "16"])),
        ("read", statements::READ_RECORDS, and(&[])),
        (
            "update_records",
            statements::UPDATE_RECORDS,
            and(&["ARRAY[2,2]::bigint[]", "ARRAY['x','x']::bytea[]"]),
        ),
        (
            "delete_deliveries_by_subject",
            statements::DELETE_DELIVERIES_BY_SUBJECT,
            and(&["ARRAY['approval.request','approval.request']", "ARRAY[NULL,NULL]::text[]"]),
        ),
    ]
}

/// Fills a tenant up to `count` exchanges that are pending in its shared mailbox, with a tenth as many marks, mailboxes
/// and pending payloads. Only a few are due.
async fn fill(client: &Client, from: i64, count: i64) {
    let sql = format!(
        "INSERT INTO record SELECT 'acme', 1, 'r' || i, 1, repeat('x', 300)::bytea FROM generate_series({from}, {count}) i;
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
         ANALYZE record, payload, payload_pending, delivery, mark, due, mailbox;"
    );
    client.batch_execute(&sql).await.unwrap();
    client.batch_execute("VACUUM").await.unwrap();
}

/// The scan and sort nodes of a plan, with their tables and indexes, and the number of buffers that it touched.
async fn explain(client: &Client, name: &str, arguments: &[&str]) -> (String, u64) {
    let run = format!("EXECUTE {name} ({})", arguments.join(", "));
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
async fn hot_statements_touch_as_little_among_a_million_rows_as_among_ten_thousand() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let store = PostgresStore::open(Options::new(server.url())).await.unwrap();
    let url = format!("{} options='{PLANNER_SETTINGS}'", server.url());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);

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
    fill(&client, SMALL + 1, LARGE).await;
    let mut table =
        String::from("| statement | buffers at 10^4 | at 10^6 | plan at 10^6 |\n|---|---|---|---|\n");
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
