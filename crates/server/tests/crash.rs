//! The gateway is killed under load and started again: what was acknowledged is there, unchanged, once.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use parking_lot::Mutex;
use support::{
    client::{Answer, Client, exchange},
    messages::{approval, hash, submission},
    process::{Gateway, On},
};
use tokio::time::sleep;

/// Rounds in CI; more by hand with `COUNTERSIGN_CRASH_ROUNDS`.
fn rounds() -> usize {
    std::env::var("COUNTERSIGN_CRASH_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap())
}

/// Tries until there is an answer that is one: a client that loses the connection repeats the same request.
async fn persist(client: &Client, path: &str, body: &str, answered: &AtomicUsize) -> Answer {
    loop {
        let request = Request::post(path)
            .header("host", "g")
            .header("authorization", format!("Bearer {}", client.key.as_deref().unwrap()))
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        match exchange(client.address, request).await {
            Ok(answer) if answer.status < 500 => {
                answered.fetch_add(1, Ordering::Relaxed);
                return answer;
            }
            _ => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// What a worker was told: the decision that it made on each request.
type Ledger = Arc<Mutex<BTreeMap<String, Option<String>>>>;

async fn worker(
    number: usize,
    enforcer: Client,
    approver: Client,
    ledger: Ledger,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
) {
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = format!("crash-{number}-{next}");
        next += 1;
        let accepted =
            persist(&enforcer, "/v1/artifacts", &submission(&id, "robot", "ada").to_string(), &count).await;
        assert_eq!(accepted.status, 202, "{}", String::from_utf8_lossy(&accepted.bytes));
        ledger.lock().insert(id.clone(), None);
        if next % 2 == 0 {
            let mut decision = approval(&id, "ada");
            decision["body"]["nonce"] = format!("nonce-{number}-{next}").into();
            let text = decision["body"].to_string();
            let accepted = persist(&approver, "/v1/decisions", &decision.to_string(), &count).await;
            assert_eq!(accepted.status, 200, "{}", String::from_utf8_lossy(&accepted.bytes));
            ledger.lock().insert(id, Some(text));
        }
    }
}

async fn killed_under_load(on: On) {
    let mut gateway = Gateway::start(on);
    let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let approver = Client::new(gateway.address, &gateway.key("acme", "approver", None));
    let (ledger, stop, count) =
        (Ledger::default(), Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let workers: Vec<_> = (0..8)
        .map(|number| {
            tokio::spawn(worker(
                number,
                enforcer.clone(),
                approver.clone(),
                Arc::clone(&ledger),
                Arc::clone(&stop),
                Arc::clone(&count),
            ))
        })
        .collect();
    for round in 0..rounds() {
        // Killed at a place that depends on how far the load has come, never on a fixed time.
        let until = count.load(Ordering::Relaxed) + 40 + round * 7 % 60;
        while count.load(Ordering::Relaxed) < until {
            sleep(Duration::from_millis(1)).await;
        }
        tokio::task::block_in_place(|| {
            gateway.kill();
            gateway.start_again();
        });
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let ledger = ledger.lock().clone();
    check_exchanges(&enforcer, &ledger).await;
    check_inbox(&approver, &ledger).await;
    println!(
        "{} rounds: {} submissions and {} decisions acknowledged, all there",
        rounds(),
        ledger.len(),
        ledger.values().flatten().count()
    );
    assert!(ledger.len() > 20 * rounds());
}

/// What was acknowledged is there, as it was acknowledged.
async fn check_exchanges(enforcer: &Client, ledger: &BTreeMap<String, Option<String>>) {
    for (id, decision) in ledger {
        let answer = enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200);
        let body = answer.body();
        assert_eq!(body["artifactHash"], hash(id));
        match decision {
            Some(text) => assert!(String::from_utf8_lossy(&answer.bytes).contains(text), "{id} has changed"),
            None => assert_eq!(body["state"], "pendingApproval", "{id}"),
        }
    }
}

/// One exchange for each, however often it was sent: nothing is listed twice.
async fn check_inbox(approver: &Client, ledger: &BTreeMap<String, Option<String>>) {
    let mut listed = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page =
            approver.get(&format!("/v1/approvers/ada/inbox?limit=200{cursor}")).await.expect(200).body();
        for item in page["items"].as_array().unwrap() {
            *listed.entry(item["requestId"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let pending: BTreeMap<String, i32> =
        ledger.iter().filter(|(_, decision)| decision.is_none()).map(|(id, _)| (id.clone(), 1)).collect();
    assert_eq!(listed, pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_kill_under_load_on_sqlite() {
    killed_under_load(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_a_kill_under_load_on_postgres() {
    killed_under_load(On::Postgres).await;
}
