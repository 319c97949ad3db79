//! What runs beside requests: sweep, poll, heartbeat, eviction.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    Gateway, delivery::change_poller::ChangePoller, model::channels::HEARTBEAT, store::Shard,
};
use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval, sleep, timeout},
};

use crate::state::AppState;

/// How often due records are processed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often the store is polled for changes that no ring announced.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A poll that failed is retried after this: what it would have found, a revocation for example, is late already.
const POLL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A renewal of the lease that takes longer is given up and retried. Together with the time until the next one it is as
/// long as the lease.
const RENEWAL_TIMEOUT: Duration = HEARTBEAT.saturating_mul(2);

/// How often the counters of idle clients are evicted.
const EVICTION_INTERVAL: Duration = Duration::from_mins(1);

/// Starts all of it. The store is polled also whenever `comparison_wanted` is notified.
pub(crate) fn start(app: &Arc<AppState>, comparison_wanted: Arc<Notify>) {
    tokio::spawn(sweep(app.gateway.clone()));
    // Another node or `keys revoke` may write to the same store, and their rings do not reach this process.
    // A task for each shard: one that does not answer delays nothing of the others.
    let mut pollers = Vec::new();
    for shard in app.gateway.shards() {
        let wanted = Arc::new(Notify::new());
        pollers.push(Arc::clone(&wanted));
        tokio::spawn(poll_changes(app.gateway.clone(), shard, wanted));
        tokio::spawn(renew_lease(Arc::clone(app), shard));
    }
    tokio::spawn(async move {
        loop {
            comparison_wanted.notified().await;
            for wanted in &pollers {
                wanted.notify_one();
            }
        }
    });
    tokio::spawn(evict_idle(Arc::clone(app)));
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Renews this node's lease on a shard for as long as the process runs. `/readyz` answers with the last results.
async fn renew_lease(app: Arc<AppState>, shard: Shard) {
    let Some(lease) = app.leases.on(shard) else { return };
    let mut ticks = ticks(HEARTBEAT);
    loop {
        ticks.tick().await;
        let renewal = timeout(RENEWAL_TIMEOUT, app.gateway.renew_lease_on(shard, &app.node)).await;
        let error = match renewal {
            Ok(Ok(())) => {
                lease.renewed();
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        lease.failed();
        tracing::warn!(error, shard = shard.0, "this node's lease was not renewed; it will be retried");
    }
}

async fn sweep(gateway: Gateway) {
    let mut ticks = ticks(SWEEP_INTERVAL);
    loop {
        ticks.tick().await;
        if let Err(error) = gateway.sweep().await {
            tracing::warn!(%error, "due records were not processed; they will be retried");
        }
    }
}

async fn poll_changes(gateway: Gateway, shard: Shard, comparison_wanted: Arc<Notify>) {
    let mut ticks = ticks(POLL_INTERVAL);
    let mut poller = ChangePoller::of(shard);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = comparison_wanted.notified() => ticks.reset(),
        }
        while let Err(error) = gateway.poll_changes(&mut poller).await {
            tracing::warn!(%error, shard = shard.0, "the store was not polled for changes; it will be retried");
            sleep(POLL_RETRY_DELAY).await;
        }
    }
}

async fn evict_idle(app: Arc<AppState>) {
    let mut ticks = ticks(EVICTION_INTERVAL);
    loop {
        ticks.tick().await;
        app.rates.evict_idle();
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, extract::State};
    use countersign_core::{notify::LocalDoorbell, retention::Retention};
    use countersign_store_sqlite::{Options, SqliteStore};
    use countersign_testkit::sharded::{Fault, ShardedStore};

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
        let store = ShardedStore::new(vec![Arc::new(open("one")), Arc::new(open("other"))]);
        store.set_fault(Shard(1), Some(Fault::Hangs));
        let doorbell = LocalDoorbell::default();
        let gateway = Gateway::new(store.clone(), &doorbell, Arc::new(SystemRandom), Retention::default());
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
