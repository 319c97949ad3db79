//! What a node does beside requests for as long as it runs: sweep, poll the store for changes, renew its leases.

use std::{cmp::min, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout},
};

use crate::{
    Error, Gateway, delivery::change_poller::ChangePoller, metrics::Pending, model::channels::HEARTBEAT,
    store::Shard,
};

/// How often due records are processed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often the store is polled for changes that no ring announced.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A poll that failed is retried after this: what it would have found, a revocation for example, is late already.
const POLL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// How often pending requests are counted, for metrics. Less often where a count takes long, but within
/// [`MAX_COUNT_INTERVAL`].
const COUNT_INTERVAL: Duration = Duration::from_secs(10);
const MAX_COUNT_INTERVAL: Duration = Duration::from_mins(5);

/// Of so many seconds, one goes into counting at most.
const COUNTING_SHARE: u32 = 100;

/// A count that takes longer is given up.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// Deliveries that are counted on a shard at most, so that a flood of requests costs no more than this.
const MAX_COUNTED: u32 = 100_000;

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
    spawn(Box::pin(count_pending(gateway.clone())));
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

/// Each node counts all that is pending in the store, so that any one of them shows it.
async fn count_pending(gateway: Gateway) {
    loop {
        let started = Instant::now();
        let counted = timeout(COUNT_TIMEOUT, pending(&gateway)).await;
        *gateway.metrics().requests.pending.lock() = counted.ok().and_then(Result::ok);
        let pause = started.elapsed().saturating_mul(COUNTING_SHARE).max(COUNT_INTERVAL);
        sleep(min(pause, MAX_COUNT_INTERVAL)).await;
    }
}

async fn pending(gateway: &Gateway) -> Result<Pending, Error> {
    let mut all = Pending::default();
    for shard in gateway.shards() {
        let found = gateway.store().in_inboxes(shard, MAX_COUNTED).await?;
        all.requests += found.records;
        all.oldest = all.oldest.into_iter().chain(found.oldest).min();
    }
    Ok(all)
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
