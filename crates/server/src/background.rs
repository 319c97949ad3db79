//! What runs beside requests: core's loops, and eviction.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    background::{self, LeaseObserver, ticks},
    store::Shard,
};
use tokio::sync::Notify;

use crate::state::{AppState, Leases};

/// How often the counters of idle clients are evicted.
const EVICTION_INTERVAL: Duration = Duration::from_mins(1);

/// Starts all of it. The store is polled also whenever `comparison_wanted` is notified.
pub(crate) fn start(app: &Arc<AppState>, comparison_wanted: Arc<Notify>) {
    let leases: Arc<dyn LeaseObserver> = Arc::new(app.leases.clone());
    background::start(&app.gateway, &leases, comparison_wanted, |task| drop(tokio::spawn(task)));
    tokio::spawn(evict_idle(Arc::clone(app)));
    if let Some(notices) = app.gateway.take_notices() {
        tokio::spawn(Arc::clone(&app.notifier).run(notices));
    }
}

/// `/readyz` answers with the last results.
impl LeaseObserver for Leases {
    fn renewed(&self, shard: Shard) {
        if let Some(lease) = self.on(shard) {
            lease.renewed();
        }
    }

    fn failed(&self, shard: Shard) {
        if let Some(lease) = self.on(shard) {
            lease.failed();
        }
    }
}

async fn evict_idle(app: Arc<AppState>) {
    let mut ticks = ticks(EVICTION_INTERVAL);
    loop {
        ticks.tick().await;
        app.live.current().rates.evict_idle();
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, extract::State};
    use countersign_core::{
        Gateway, background::RENEWAL_TIMEOUT, model::channels::HEARTBEAT, notify::LocalDoorbell,
        retention::Retention,
    };
    use countersign_store_sqlite::{Options, SqliteStore};
    use countersign_testkit::sharded::{Fault, FaultyShards};
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::{random::SystemRandom, routes::meta, secrets::Secrets, state::Settings};

    /// What `/readyz` answers; `None` for 503.
    async fn readiness(app: &Arc<AppState>) -> Option<String> {
        let answer = meta::ready(State(Arc::clone(app))).await.ok()?;
        let body = to_bytes(answer.into_body(), 1_000).await.unwrap();
        Some(String::from_utf8(body.to_vec()).unwrap())
    }

    async fn becomes(app: &Arc<AppState>, expected: Option<&str>) {
        let becomes = async {
            loop {
                let ready = readiness(app).await;
                if ready.as_ref().map(|ready| expected.is_some_and(|it| ready.contains(it)))
                    == expected.map(|_| true)
                {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(RENEWAL_TIMEOUT + HEARTBEAT * 2, becomes).await.unwrap();
    }

    #[tokio::test]
    async fn a_shard_that_does_not_answer_keeps_no_lease_of_another_from_being_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| SqliteStore::open(folder.path().join(name), Options::default()).unwrap();
        let store = FaultyShards::over(vec![Arc::new(open("one")), Arc::new(open("other"))]).await;
        store.set_fault(Shard(1), Some(Fault::Hangs));
        let doorbell = LocalDoorbell::default();
        let gateway = Gateway::new(store.store(), &doorbell, Arc::new(SystemRandom), Retention::default());
        let id = "gw".parse().unwrap();
        let app = AppState::new(gateway, id, Secrets::random(), Settings::default()).unwrap();
        start(&app, Arc::default());
        becomes(&app, Some("degraded")).await;
        store.set_fault(Shard(0), Some(Fault::Fails));
        becomes(&app, None).await;
        store.set_fault(Shard(0), None);
        store.set_fault(Shard(1), None);
        becomes(&app, Some("ready")).await;
    }
}
