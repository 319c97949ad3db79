//! The process, or PostgreSQL itself, is killed while it commits, again and again on one database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::Command,
    sync::{Arc, mpsc},
    time::Duration,
};

use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::{
    crash::{self, ChildTask, CommitReport, CrashLog},
    postgres::Postgres,
};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

async fn open(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(Options::new(url)).await.unwrap())
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn count(client: &Client, sql: &str) -> u64 {
    let count: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    u64::try_from(count).unwrap()
}

/// The server still executes what a killed process has sent. Until that has ended, one read could miss what the
/// next one sees.
async fn wait_for_orphaned_sessions(url: &str) {
    let client = connect(url).await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'countersign'";
    while count(&client, sessions).await > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the port does not show: payloads and audit rows that belong to no change.
async fn assert_nothing_is_left_over(url: &str, changes: u64) {
    let client = connect(url).await;
    for table in ["record", "payload", "delivery", "due", "audit"] {
        let rows = count(&client, &format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(rows, changes, "rows of {table}");
    }
    assert_eq!(count(&client, "SELECT count(*) FROM payload_pending").await, 0);
}

/// Kills the postmaster and all of its child processes, as if the power failed for PostgreSQL alone.
///
/// When only the postmaster is killed, a session still finishes its commit and replies, so that no commit with an
/// unknown outcome is found; this finds some.
fn kill_all_at_once(server: &mut Postgres) {
    let postmaster = server.pid().to_string();
    let children = Command::new("pgrep").args(["-P", &postmaster]).output().unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    // One of them may have ended by now.
    Command::new("kill")
        .args(["-s", "KILL", &postmaster])
        .args(children.split_whitespace())
        .output()
        .unwrap();
    server.kill();
}

#[test]
fn what_was_acknowledged_outlives_a_killed_process_and_nothing_is_half_there() {
    let runtime = Runtime::new().unwrap();
    if let Some(ChildTask { database, from }) = crash::child_task() {
        let url = database.into_string().unwrap();
        return runtime.block_on(async { crash::write_until_killed(open(&url).await, from).await });
    }
    let server = Postgres::start();
    let url = server.url();
    let mut ledger = CrashLog::default();
    for round in 0..crash::rounds(20) {
        let acked = crash::run_child_and_kill(
            "what_was_acknowledged_outlives_a_killed_process_and_nothing_is_half_there",
            &url,
            crash::first_id(round),
            crash::acks_before_kill(round),
        );
        let reports: Vec<CommitReport> = acked.into_iter().map(CommitReport::Acked).collect();
        runtime.block_on(async {
            wait_for_orphaned_sessions(&url).await;
            ledger.verify_round(&*open(&url).await, &reports).await;
        });
    }
    runtime.block_on(async {
        ledger.verify_all(&*open(&url).await).await;
        assert_nothing_is_left_over(&url, ledger.found()).await;
    });
    println!("PostgreSQL, the process killed: {ledger}");
}

#[test]
fn what_was_acknowledged_outlives_a_killed_server_and_nothing_is_half_there() {
    let runtime = Runtime::new().unwrap();
    let mut server = Postgres::start();
    let url = server.url();
    let mut ledger = CrashLog::default();
    let (mut unknown, mut refused) = (0, 0);
    for round in 0..crash::rounds(20) {
        let store = runtime.block_on(open(&url));
        let (send, receive) = mpsc::channel();
        let writing =
            runtime.spawn(crash::write_until_errors(store, crash::first_id(round), move |report| {
                send.send(report).unwrap();
            }));
        let mut reports: Vec<CommitReport> = receive.iter().take(crash::acks_before_kill(round)).collect();
        let is_acked = |report: &CommitReport| matches!(report, CommitReport::Acked(_));
        assert!(reports.iter().all(is_acked), "before anything was killed: {reports:?}");
        match round % 2 {
            0 => server.kill(),
            _ => kill_all_at_once(&mut server),
        }
        runtime.block_on(writing).unwrap();
        reports.extend(receive);
        unknown += reports.iter().filter(|report| matches!(report, CommitReport::Unknown(_))).count();
        refused += reports.iter().filter(|report| matches!(report, CommitReport::Refused(_))).count();

        server.start_again();
        runtime.block_on(async { ledger.verify_round(&*open(&url).await, &reports).await });
    }
    runtime.block_on(async {
        ledger.verify_all(&*open(&url).await).await;
        assert_nothing_is_left_over(&url, ledger.found()).await;
    });
    println!("PostgreSQL, the server killed: {ledger}; {unknown} of unknown outcome, {refused} refused");
}
