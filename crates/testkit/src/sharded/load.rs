//! A tenant is moved while others write to it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign_core::store::{
    Change, DeliveryQuery, Guard, Key, Kind, Mailbox, NewDelivery, Outcome, Put, Shard, Store, StoreError,
};
use countersign_store_sharded::{MoveError, Moved, Progress, ShardedStore};
use countersign_wire::{id::TenantId, msg_type::MsgType};
use tokio::time::{Instant, sleep};

use super::{harness::ShardedHarness, store::FaultyShards};
use crate::store_suite::start;

pub(super) const FIRST: Shard = Shard(0);
pub(super) const SECOND: Shard = Shard(1);
pub(super) const SOON: Duration = Duration::from_secs(20);

pub(super) async fn move_to(store: &ShardedStore, tenant: &TenantId, to: Shard) -> Result<Moved, MoveError> {
    store.move_tenant(tenant, to, &|_: Progress| {}).await
}

/// Conflicts where it is admitted, so that it says where a tenant can be written to and writes nothing.
pub(super) fn probe(tenant: &TenantId) -> Change {
    let mut change = Change::new(tenant.clone());
    change.guards.push(Guard::Version(Key::new(Kind::Exchange, "nobody's"), 1));
    change
}

/// Waits until a node knows that the tenant is there, and with which epoch.
pub(super) async fn settle(store: &ShardedStore, tenant: &TenantId, at: Shard) {
    let until = Instant::now() + SOON;
    while store.shard_of(tenant) != at || store.commit(probe(tenant)).await.is_err() {
        assert!(Instant::now() < until, "a node does not notice");
        sleep(Duration::from_millis(20)).await;
    }
}

/// One record and one delivery.
fn numbered(tenant: &TenantId, writer: usize, number: u64) -> Change {
    let key = Key::new(Kind::Exchange, format_args!("{writer}-{number:06}"));
    let mut change = Change::new(tenant.clone());
    change.guards.push(Guard::Absent(key.clone()));
    change.puts.push(Put { key: key.clone(), content: number.to_string().into() });
    change.deliveries.push(NewDelivery {
        mailbox: Mailbox::Shared,
        msg_id: format!("m-{writer}-{number}").parse().unwrap(),
        msg_type: MsgType::ApprovalRequest,
        subject: key,
        payload: None,
        until: start(),
    });
    change
}

/// Commits until it is stopped; returns the number that each acknowledged delivery got, and how many were refused.
async fn write(
    store: Arc<dyn Store>,
    tenant: TenantId,
    writer: usize,
    stop: Arc<AtomicBool>,
) -> (Vec<(String, u64)>, u64) {
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        match store.commit(numbered(&tenant, writer, number)).await {
            Ok(Outcome::Committed { numbers, .. }) => {
                acknowledged.push((format!("{writer}-{number:06}"), numbers[0]));
            }
            Err(StoreError::Moved) => {
                refused += 1;
                sleep(Duration::from_millis(2)).await;
            }
            unexpected => unreachable!("{unexpected:?}"),
        }
    }
    (acknowledged, refused)
}

/// The number of each delivery, by what it is about.
async fn delivered(store: &ShardedStore, tenant: &TenantId) -> BTreeMap<String, u64> {
    let (mut found, mut after) = (BTreeMap::new(), 0);
    loop {
        let query = DeliveryQuery {
            mailbox: Mailbox::Shared,
            after,
            up_to: None,
            limit: 1_000,
            unless_marked: None,
            only_relevant: false,
        };
        let page = store.deliveries(tenant, query).await.unwrap();
        found.extend(page.deliveries.into_iter().map(|delivery| (delivery.subject.id, delivery.number)));
        if page.read_to == page.head {
            return found;
        }
        after = page.read_to;
    }
}

async fn exchanges(store: &ShardedStore, tenant: &TenantId) -> usize {
    let (mut records, mut after) = (0, None::<String>);
    loop {
        let page = store.scan(tenant, Kind::Exchange, after.as_deref(), 1_000).await.unwrap();
        let Some(last) = page.last() else { return records };
        after = Some(last.key.id.clone());
        records += page.len();
    }
}

pub(super) async fn nothing_is_lost_of_a_tenant_that_is_moved_under_load(harness: ShardedHarness) {
    let second = harness.second().await;
    let store = harness.sharded();
    let moved = store.tenant_on(FIRST, 0);
    let others = [store.tenant_on(FIRST, 1), store.tenant_on(SECOND, 0)];
    let stop = Arc::new(AtomicBool::new(false));
    let of = |node: &FaultyShards, tenant: &TenantId, writer| {
        tokio::spawn(write(node.store(), tenant.clone(), writer, Arc::clone(&stop)))
    };
    let ours: Vec<_> = [store, &second, store, &second]
        .into_iter()
        .enumerate()
        .map(|(writer, node)| of(node, &moved, writer))
        .collect();
    let theirs: Vec<_> = others.iter().map(|tenant| of(&second, tenant, 0)).collect();
    for to in [SECOND, FIRST, SECOND] {
        sleep(Duration::from_millis(300)).await;
        move_to(store, &moved, to).await.unwrap();
    }
    settle(store, &moved, SECOND).await;
    sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::SeqCst);
    let (mut acknowledged, mut refused) = (BTreeMap::new(), 0);
    for writer in ours {
        let (written, not_written) = writer.await.unwrap();
        assert!(!written.is_empty());
        acknowledged.extend(written);
        refused += not_written;
    }
    assert!(refused > 0, "it was written to while it moved");
    for writer in theirs {
        let (written, refused) = writer.await.unwrap();
        assert!(!written.is_empty());
        assert_eq!(refused, 0, "other tenants notice nothing");
    }
    let found = delivered(store, &moved).await;
    assert_eq!(found, acknowledged, "what was acknowledged is there, once, and nothing else");
    let numbers: Vec<u64> = {
        let mut numbers: Vec<u64> = found.values().copied().collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "numbers have no gaps");
    let records = exchanges(store, &moved).await;
    assert_eq!(records, found.len());
}
