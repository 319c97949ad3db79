//! Short runs without faults against real gateways: everything is done, and nothing is violated.

use std::{path::Path, time::Duration};

use countersign_core::model::credential::Role as CredentialRole;
use countersign_server::{assemble, config::Config, net::listener};
use countersign_testkit::postgres::Postgres;
use tokio::net::TcpListener;

use super::{
    super::{
        checker,
        history::{Counts, History},
    },
    *,
};

/// Every kind of operation that must succeed at least once.
const DONE: [&str; 12] = [
    "submit",
    "decide",
    "withdraw",
    "wait",
    "status",
    "final_read",
    "inbox",
    "ack",
    "presence",
    "create_key",
    "revoke_key",
    "listen",
];

/// What must be pushed at least once.
const PUSHED: [&str; 5] = [
    "websocket approval.request",
    "websocket decision.deliver",
    "sse approval.request",
    "sse decision.deliver",
    "sdk approval.request",
];

/// Starts nodes on one store, with the keys of so many tenants.
async fn nodes(folder: &Path, store: &str, nodes: usize, tenants: usize) -> (Vec<String>, Vec<TenantKeys>) {
    let rates = ["credential", "tenant", "tenant_kib", "address", "failed_authentication"]
        .map(|name| format!("{name} = {{ per_second = 0, burst = 0 }}\n"))
        .concat();
    let data = folder.join("data");
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndata = \"{}\"\n[store]\n{store}\n[rates]\n{rates}[notifications]\nallowed_networks = [\"127.0.0.0/8\"]\n",
        data.display()
    );
    let file = folder.join("gateway.toml");
    std::fs::write(&file, text).unwrap();
    let config = Config::read(&file).unwrap();
    let (mut urls, mut keys) = (Vec::new(), Vec::new());
    for node in 0..nodes {
        let gateway = assemble::gateway(&config).await.unwrap();
        let secrets = assemble::secrets(&config, &gateway).await.unwrap();
        let mac_key = secrets.mac_key();
        if node == 0 {
            for tenant in (1..=tenants).map(|number| format!("tenant-{number}")) {
                let id = tenant.parse().unwrap();
                let mut made = Vec::new();
                for role in
                    [CredentialRole::Operator, CredentialRole::Enforcer(None), CredentialRole::Approver(None)]
                {
                    made.push(gateway.create_key(&id, role, &mac_key).await.unwrap().key.expose().clone());
                }
                let [operator_key, enforcer_key, approver_key] = made.try_into().unwrap();
                keys.push(TenantKeys { tenant, operator_key, enforcer_key, approver_key });
            }
        }
        let app = assemble::app(&config, gateway, secrets).unwrap();
        let socket = TcpListener::bind(config.listen).await.unwrap();
        urls.push(format!("http://{}", socket.local_addr().unwrap()));
        let drain = app.drain().clone();
        tokio::spawn(listener::serve(socket, assemble::service(app), drain));
    }
    (urls, keys)
}

/// Works for a while, and checks that everything was done and nothing is violated.
async fn work(folder: &Path, store: &str, count: usize, seconds: u64) {
    let (nodes, tenants) = nodes(folder, store, count, 6).await;
    let path = folder.join("history.jsonl");
    let recorder = Recorder::create(&path).unwrap();
    let setup = Setup { nodes, tls: None, tenants, enforcers: 20, approvers: 10, seed: 7, is_steady: false };
    let mut workload = Workload::start(setup, recorder.clone());
    let ready = workload.ready().await;
    if ready.is_ok() {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
    workload.settle().await.unwrap();
    let counts: Counts = recorder.counts();
    println!("{}", serde_json::to_string_pretty(&counts).unwrap());
    let history = History::read(&path).unwrap();
    let violations = checker::check(&history);
    if let Ok(kept) = std::env::var("COUNTERSIGN_LAB_HISTORY") {
        std::fs::copy(&path, kept).unwrap();
    }
    assert!(
        violations.is_empty(),
        "{:#?}",
        violations.iter().take(20).map(ToString::to_string).collect::<Vec<_>>()
    );
    for kind in DONE {
        assert!(counts.operations.get(kind).is_some_and(|ends| ends.ok > 0), "{kind}");
    }
    assert!(counts.operations["probe"].fail > 0 && counts.operations["probe"].ok == 0);
    for kind in PUSHED {
        assert!(counts.pushed.get(kind).is_some_and(|count| *count > 0), "{kind}");
    }
    assert!(counts.acts > 0);
    assert!(counts.operations["decide"].fail > 0, "races have losers");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_seconds_on_one_node_violate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path(), "kind = \"sqlite\"", 1, 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_seconds_on_two_nodes_violate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = Postgres::start();
    work(folder.path(), &format!("kind = \"postgres\"\nurl = \"{}\"", postgres.url()), 2, 10).await;
}
