//! What a node does beside requests for as long as it runs: sweep, poll the store for changes, renew its leases.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{Interval, MissedTickBehavior, interval, sleep, timeout},
};

use crate::{Gateway, delivery::change_poller::ChangePoller, model::channels::HEARTBEAT, store::Shard};

/// How often due records are processed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often the store is polled for changes that no ring announced.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A poll that failed is retried after this: what it would have found, a revocation for example, is late already.
const POLL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A renewal of the lease that takes longer is given up and retried. Together with the time until the next one it is as
/// long as the lease.
pub const RENEWAL_TIMEOUT: Duration = HEARTBEAT.saturating_mul(2);

/// Learns how each renewal of a lease ended.
pub trait LeaseObserver: Send + Sync {
    fn renewed(&self, shard: Shard);
    fn failed(&self, shard: Shard);
}

/// One loop, which never ends.
pub type Loop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Gives every loop of a node to `spawn`. The store is polled also whenever `comparison_wanted` is notified.
pub fn start(
    gateway: &Gateway,
    leases: &Arc<dyn LeaseObserver>,
    comparison_wanted: Arc<Notify>,
    mut spawn: impl FnMut(Loop),
) {
    spawn(Box::pin(sweep(gateway.clone())));
    // Another node or `keys revoke` may write to the same store, and their rings do not reach this process.
    // A task for each shard: one that does not answer delays nothing of the others.
    let mut pollers = Vec::new();
    for shard in gateway.shards() {
        let wanted = Arc::new(Notify::new());
        pollers.push(Arc::clone(&wanted));
        spawn(Box::pin(poll_changes(gateway.clone(), shard, wanted)));
        spawn(Box::pin(renew_lease(gateway.clone(), shard, Arc::clone(leases))));
    }
    spawn(Box::pin(async move {
        loop {
            comparison_wanted.notified().await;
            for wanted in &pollers {
                wanted.notify_one();
            }
        }
    }));
}

/// One at once, and then one in each period; one that is late moves those after it.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn renew_lease(gateway: Gateway, shard: Shard, observer: Arc<dyn LeaseObserver>) {
    let mut ticks = ticks(HEARTBEAT);
    loop {
        ticks.tick().await;
        let renewal = timeout(RENEWAL_TIMEOUT, gateway.renew_lease_on(shard, gateway.node())).await;
        let error = match renewal {
            Ok(Ok(())) => {
                observer.renewed(shard);
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        observer.failed(shard);
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
