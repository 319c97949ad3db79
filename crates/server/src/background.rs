//! What runs beside requests: sweep, poll, heartbeat, eviction.

use std::{sync::Arc, time::Duration};

use countersign_core::{Gateway, delivery::change_poller::ChangePoller, model::channels::HEARTBEAT};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

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

/// Starts all of it.
pub(crate) fn start(app: &Arc<AppState>) {
    tokio::spawn(sweep(app.gateway.clone()));
    // Another node or `keys revoke` may write to the same store, and their rings do not reach this process.
    tokio::spawn(poll_changes(app.gateway.clone()));
    tokio::spawn(renew_lease(Arc::clone(app)));
    tokio::spawn(evict_idle(Arc::clone(app)));
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Renews this node's lease for as long as the process runs. `/readyz` answers with the last result.
async fn renew_lease(app: Arc<AppState>) {
    let mut ticks = ticks(HEARTBEAT);
    loop {
        ticks.tick().await;
        let renewal = timeout(RENEWAL_TIMEOUT, app.gateway.renew_lease(&app.node)).await;
        let error = match renewal {
            Ok(Ok(())) => {
                app.lease.renewed();
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        app.lease.failed();
        tracing::warn!(error, "this node's lease was not renewed; it will be retried");
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

async fn poll_changes(gateway: Gateway) {
    let mut ticks = ticks(POLL_INTERVAL);
    let mut poller = ChangePoller::default();
    loop {
        ticks.tick().await;
        while let Err(error) = gateway.poll_changes(&mut poller).await {
            tracing::warn!(%error, "the store was not polled for changes; it will be retried");
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
