//! Metrics for a scraper, on a listener of their own. They name no tenant and no client, but how much each node does.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use countersign_core::metrics::{Build, Catalog, Computed, Gauge};

use crate::{
    clock,
    limits::{FairSemaphore, TenantQuota, max_connections},
    metrics::Rejection,
    net::{listener::Service, tls::Tls},
    rest::response::busy_answer,
    state::AppState,
};

/// Scrapers at once. A connection holds one answer at most.
const MAX_CONNECTIONS: usize = 8;

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// `/metrics` and nothing else.
pub(crate) fn service(app: &AppState, tls: Option<Arc<Tls>>) -> Service {
    let router = Router::new().route("/metrics", get(metrics)).with_state(Arc::new(catalog(app, tls)));
    Service {
        router,
        front: Arc::default(),
        max_connections: MAX_CONNECTIONS,
        busy_answer: busy_answer(),
        at_limit: "too many scrapers are connected to the listener for metrics",
        rejected: app.metrics.rejected.at(Rejection::Scrapers).clone(),
        open: Gauge::default(),
    }
}

async fn metrics(State(catalog): State<Arc<Catalog>>) -> Response {
    match catalog.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Everything that is counted in this process.
fn catalog(app: &AppState, tls: Option<Arc<Tls>>) -> Catalog {
    let mut catalog = Catalog::default();
    let build = Build { version: env!("CARGO_PKG_VERSION") };
    catalog.add("build", "The program: always 1, with the version as a label", &build);
    app.gateway.metrics().describe(&mut catalog);
    app.metrics.describe(&mut catalog);
    add_turns(&mut catalog, app);
    add_node(&mut catalog, app, tls);
    catalog
}

/// What waits for its turn, and memory for what clients send and read.
fn add_turns(catalog: &mut Catalog, app: &AppState) {
    add_waiting(catalog, "push_waiting", "Pushes that wait for their turn to read", &app.push_reads);
    catalog.when_it_rises(
        "More is pushed than the store lets a node read. It is normal after a restart, when all clients reconnect; a \
         lasting queue means that nodes or the store are too few.",
    );
    add_waiting(
        catalog,
        "large_answer_waiting",
        "Large answers that wait for their turn to be read and rendered",
        &app.large_reads,
    );
    add_waiting(
        catalog,
        "small_body_waiting",
        "Requests with small bodies that wait for their tenant's turn",
        &app.small_bodies,
    );
    catalog.when_it_rises(
        "More is sent than this node can commit. Tenants take turns: the one that sends most waits longest.",
    );
    add_waiting(
        catalog,
        "revocation_check_waiting",
        "Checks of credentials of held connections that wait for their turn",
        &app.revocation_reads,
    );
    catalog.when_it_rises("Held connections are closed if their credential can't be confirmed for 15 s.");
    add_quota(
        catalog,
        "request_memory_bytes",
        "Memory for what clients send, of 256 MB",
        &app.request_memory,
    );
    catalog
        .when_it_rises("At the limit, requests are answered with 503: clients send large bodies, or slowly.");
    add_quota(
        catalog,
        "response_memory_bytes",
        "Memory for large answers that are not yet read, of 128 MB",
        &app.response_memory,
    );
}

/// The process and its machine.
fn add_node(catalog: &mut Catalog, app: &AppState, tls: Option<Arc<Tls>>) {
    catalog.add("connections", "Connections of clients that are open", &app.metrics.connections);
    catalog.when_it_rises(
        "At `countersign_connections_limit`, further ones are answered with 503: raise the limit of open files, or add a \
         node.",
    );
    let limit = shown(max_connections());
    catalog.add(
        "connections_limit",
        "Connections of clients that this process can have, by its limit of open files",
        &Computed(move || limit),
    );
    let lease = app.leases.clone();
    catalog.add(
        "lease_age_seconds",
        "Time since this node's lease was renewed, or since its start if it never was",
        &Computed(move || lease.age().as_secs_f64()),
    );
    catalog.when_it_rises(
        "It is renewed every 5 s. Above 15 s other nodes take this one for dead and push in its place, and `/readyz` is \
         503: the store does not take its writes.",
    );
    let time = app.gateway.metrics().store.time.clone();
    catalog.add(
        "clock_ahead_seconds",
        "How far this machine's clock is ahead of the store's, negative if it is behind; NaN before the store has \
         answered. Take the largest amount, not the sum",
        &Computed(move || time.now().map_or(f64::NAN, clock::ahead_of)),
    );
    catalog.when_it_rises(
        "The store's clock decides what expires; clients that compare with this machine's see other times. Look at NTP \
         on both machines.",
    );
    catalog.add(
        "certificate_days_left",
        "Days until the first certificate that this node serves expires, or NaN without one; alert below 20",
        &Computed(move || tls.as_ref().and_then(|tls| tls.days_left()).unwrap_or(f64::NAN)),
    );
}

fn add_waiting(catalog: &mut Catalog, name: &str, help: &'static str, turns: &FairSemaphore) {
    let turns = turns.clone();
    catalog.add(name, help, &Computed(move || shown(turns.waiting())));
}

fn add_quota(catalog: &mut Catalog, name: &str, help: &'static str, quota: &TenantQuota) {
    let quota = quota.clone();
    catalog.add(name, help, &Computed(move || shown(quota.in_use())));
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn shown(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _};

    use countersign_core::{
        metrics::{StoreFailure, StoreOperation},
        store::{Key, Kind},
    };

    use super::*;
    use crate::test_node::TestNode;

    const INTRODUCTION: &str = "# Metrics

Every metric of a node, as `/metrics` shows it. [Operating](operating.md#metrics) says how to turn it on, who may read it and
what to alert on. This page is made from the same table as the answer:
`UPDATE_DOCS=1 cargo nextest run -p countersign-server metrics_md` regenerates it.

- A counter only rises, until the node restarts. A histogram `x` is shown as `x_bucket`, `x_sum` and `x_count`; durations have 14
  buckets, from 100 µs to 10 s, and `countersign_decision_seconds` from 1 s to a day.
- Labels have the values that are listed here and no others: nothing that a client sends becomes a label. No metric names a
  tenant, a client or an id. `route` is the template of a path as in `openapi.json`, or `unknown`.
- All are of one node, and start at zero with it. Sum them over nodes, except for ages and lags, of which the largest counts, and for
  `countersign_requests_pending` and `countersign_oldest_request_seconds`, which each node shows of the whole store: take the largest.
- What becomes of a request is counted by the node that committed it, and by no other. A commit whose outcome a node did not learn, in
  a failover, is not counted.
";

    fn page(catalog: &Catalog) -> String {
        let mut page = INTRODUCTION.to_owned();
        for entry in catalog.entries() {
            write!(page, "\n## `{}`\n\n{}", entry.name, entry.metric_type).unwrap();
            for (label, values) in &entry.labels {
                write!(page, ", by `{label}`").unwrap();
                if !values.is_empty() {
                    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                    write!(page, " ({})", values.join(", ")).unwrap();
                }
            }
            writeln!(page, "\n\n{}.", entry.help).unwrap();
            if let Some(advice) = entry.when_it_rises {
                writeln!(page, "\n**When it rises:** {advice}").unwrap();
            }
        }
        page
    }

    #[tokio::test]
    async fn docs_metrics_md_is_what_is_counted() {
        let node = TestNode::new();
        let page = page(&catalog(&node.app, None));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(written, page, "run again with UPDATE_DOCS=1");
    }

    #[tokio::test]
    async fn every_metric_is_described_once_and_named_as_prometheus_wants() {
        let node = TestNode::new();
        let catalog = catalog(&node.app, None);
        let text = catalog.encode().unwrap();
        let mut names = BTreeSet::new();
        for entry in catalog.entries() {
            assert!(names.insert(entry.name.clone()), "{} twice", entry.name);
            assert!(
                entry.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{}",
                entry.name
            );
            assert!(entry.help.len() > 20 && !entry.help.ends_with('.'), "{}: {}", entry.name, entry.help);
            assert_eq!(entry.metric_type == "counter", entry.name.ends_with("_total"), "{}", entry.name);
            let described = ["_total", "_info"].iter().find_map(|suffix| entry.name.strip_suffix(suffix));
            let described = described.unwrap_or(&entry.name);
            assert!(text.contains(&format!("# HELP {described} {}.", entry.help)), "{}", entry.name);
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
        // What a document cites exists.
        for entry in catalog.entries() {
            for cited in entry.when_it_rises.unwrap_or_default().split('`') {
                assert!(!cited.starts_with("countersign_") || names.contains(cited), "{cited}");
            }
        }
    }

    #[tokio::test]
    async fn each_call_of_the_store_is_counted_and_each_failure() {
        let node = TestNode::new();
        let (gateway, metrics) = (&node.app.gateway, &node.app.gateway.metrics().store);
        let keys = [Key::new(Kind::Policy, "p")];
        gateway.store().load(&node.tenant, &keys).await.unwrap();
        node.store.set_loads_fail(true);
        gateway.store().load(&node.tenant, &keys).await.unwrap_err();
        assert_eq!(metrics.calls.at(StoreOperation::Load).get(), 2);
        assert_eq!(metrics.seconds.at(StoreOperation::Load).count(), 2);
        assert_eq!(metrics.errors.at((StoreOperation::Load, StoreFailure::Unavailable)).get(), 1);
        assert_eq!(metrics.calls.at(StoreOperation::Commit).get(), 0);
        let change = countersign_core::store::Change::new(node.tenant.clone());
        node.store.set_commits_conflict(true);
        gateway.store().commit(change).await.unwrap();
        assert_eq!(metrics.conflicts.get(), 1);
    }
}
