//! One shard fails, and the tenants of the other notice nothing.

use std::time::Duration;

use countersign_core::{
    Gateway,
    delivery::{change_poller::ChangePoller, feed::Reader},
    model::channels::{LEASE, NodeId},
    notify::LocalDoorbell,
    store::{CLAIM, Change, Due, Key, Kind, Mailbox, MailboxKey, Shard, Store as _, StoreError},
    use_cases::channels::ChannelRouting,
};
use countersign_wire::{id::TenantId, presence::Transport};
use tokio::time::{Instant, sleep, timeout};

use super::{
    harness::ShardedHarness,
    store::{Fault, FaultyShards},
};
use crate::{
    gateway_suite::world::{approver, gateway, request, robot, submit},
    store_suite::{Run, StoreHarness as _, start},
};

/// One claim about a store whose shards can fail.
#[derive(Debug, Clone, Copy)]
pub struct ShardedCase {
    /// The claim, as a function name.
    pub name: &'static str,
    /// Panics if the store violates the claim.
    pub run: fn(ShardedHarness) -> Run,
}

macro_rules! cases {
    ($($name:ident,)+) => {
        /// Every case with a shard that fails.
        pub const CASES: &[ShardedCase] = &[
            $(ShardedCase { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}

cases! {
    all_of_a_tenant_is_on_one_shard,
    a_claim_returns_what_the_other_shard_has,
    a_sweep_processes_what_is_due_on_the_other_shard,
    a_shard_that_hangs_after_a_claim_holds_up_a_sweep_until_the_claim_lapses,
    heads_are_known_where_their_shard_answers,
    a_position_is_not_believed_while_its_mailbox_is_unknown,
    the_change_poller_rings_for_the_other_shard_and_later_for_what_it_missed,
    a_poller_of_a_shard_does_not_notice_that_another_one_hangs,
    orphans_are_swept_and_the_time_is_known_while_one_shard_answers,
    a_lease_is_renewed_on_the_other_shard,
    a_node_that_one_shard_takes_for_dead_is_alive_on_the_other,
}

const FAILING: Shard = Shard(1);
const WORKING: Shard = Shard(0);
const FAULTS: [Fault; 2] = [Fault::Fails, Fault::Hangs];

/// Longer than a shard that hangs is waited for, and far shorter than a case may take.
const SOON: Duration = Duration::from_secs(20);

fn ours() -> Key {
    Key::new(Kind::Exchange, "ours")
}

/// A tenant of the shard that works, and one of the shard that fails.
fn tenants(store: &FaultyShards) -> [TenantId; 2] {
    [WORKING, FAILING].map(|shard| store.tenant_on(shard, 0))
}

fn inbox_of(tenant: &TenantId) -> MailboxKey {
    MailboxKey { tenant: tenant.clone(), mailbox: Mailbox::Approver(approver("ada")) }
}

fn node_on(harness: &ShardedHarness, doorbell: &LocalDoorbell) -> Gateway {
    gateway(harness.sharded().store(), doorbell, 1)
}

fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable(_)))
}

async fn all_of_a_tenant_is_on_one_shard(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let node = NodeId("node".to_owned());
    gateway.renew_lease(&node).await.unwrap();
    let lease = [Key::new(Kind::Lease, &node.0)];
    let channels = [Key::new(Kind::Channels, robot())];
    for (here, elsewhere) in [(WORKING, FAILING), (FAILING, WORKING)] {
        let tenant = harness.sharded().tenant_on(here, 3);
        gateway.open_channel(&tenant, &robot(), &node, Transport::Websocket).await.unwrap();
        submit(&gateway, &tenant, &request("r").to("ada")).await.unwrap();
        let nodes = here.nodes_tenant().unwrap();
        for (tenant, keys) in [(&nodes, &lease), (&tenant, &channels)] {
            assert!(harness.shard(here).load(tenant, keys).await.unwrap().first().is_some(), "{tenant}");
            assert!(harness.shard(elsewhere).load(tenant, keys).await.unwrap().first().is_none(), "{tenant}");
        }
        assert_eq!(harness.shard(here).heads(&[inbox_of(&tenant)]).await, Ok(vec![Some(1)]));
        assert_eq!(harness.shard(elsewhere).heads(&[inbox_of(&tenant)]).await, Ok(vec![Some(0)]));
    }
}

async fn a_claim_returns_what_the_other_shard_has(harness: ShardedHarness) {
    let store = harness.sharded();
    let [here, there] = tenants(store);
    for tenant in [&here, &there] {
        let mut change = Change::new(tenant.clone());
        change.due.push((start(), ours()));
        store.commit(change).await.unwrap();
    }
    let mut now = start();
    for fault in FAULTS {
        store.set_fault(FAILING, Some(fault));
        let expected = vec![Due { tenant: here.clone(), at: now, key: ours() }];
        assert_eq!(timeout(SOON, store.claim_due(10)).await.unwrap(), Ok((expected, now)), "{fault:?}");
        store.set_fault(WORKING, Some(fault));
        assert!(
            is_unavailable(&timeout(SOON, store.claim_due(10)).await.unwrap()),
            "{fault:?}: none answers"
        );
        store.set_fault(WORKING, None);
        store.set_fault(FAILING, None);
        let expected = vec![Due { tenant: there.clone(), at: now, key: ours() }];
        assert_eq!(store.claim_due(10).await, Ok((expected, now)), "what was not claimed is still due");
        now = now.plus(CLAIM);
        harness.set_now(now).await;
    }
}

async fn a_sweep_processes_what_is_due_on_the_other_shard(harness: ShardedHarness) {
    let doorbell = LocalDoorbell::default();
    let gateway = node_on(&harness, &doorbell);
    let store = harness.sharded();
    let [here, there] = tenants(store);
    for tenant in [&here, &there] {
        submit(&gateway, tenant, &request("r")).await.unwrap();
    }
    harness.set_now(request("r").expires_at).await;
    let expired = |tenant: &TenantId| MailboxKey { tenant: tenant.clone(), mailbox: Mailbox::ExpiredShared };
    for fault in FAULTS {
        store.set_fault(FAILING, Some(fault));
        timeout(SOON, gateway.sweep()).await.unwrap().unwrap();
        assert_eq!(store.heads(&[expired(&here), expired(&there)]).await, Ok(vec![Some(1), None]));
    }
    store.set_fault(FAILING, None);
    gateway.sweep().await.unwrap();
    assert_eq!(store.heads(&[expired(&there)]).await, Ok(vec![Some(1)]));
}

async fn a_shard_that_hangs_after_a_claim_holds_up_a_sweep_until_the_claim_lapses(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let store = harness.sharded();
    let [here, there] = tenants(store);
    submit(&gateway, &there, &request("r")).await.unwrap();
    harness.set_now(request("r").expires_at).await;
    store.set_fault(FAILING, Some(Fault::HangsAfterClaims));
    timeout(CLAIM + SOON, gateway.sweep()).await.unwrap().unwrap();
    submit(&gateway, &here, &request("r").for_minutes(11)).await.unwrap();
    harness.set_now(request("r").for_minutes(11).expires_at).await;
    store.set_fault(FAILING, Some(Fault::Hangs));
    timeout(SOON, gateway.sweep()).await.unwrap().unwrap();
    let expired = MailboxKey { tenant: here, mailbox: Mailbox::ExpiredShared };
    assert_eq!(store.heads(&[expired]).await, Ok(vec![Some(1)]), "the others go on");
}

async fn heads_are_known_where_their_shard_answers(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let store = harness.sharded();
    let [here, there] = tenants(store);
    for tenant in [&here, &there] {
        submit(&gateway, tenant, &request("r").to("ada")).await.unwrap();
    }
    let all = [&there, &here, &there, &here].map(inbox_of);
    assert_eq!(store.heads(&all).await, Ok(vec![Some(1); 4]));
    for fault in FAULTS {
        store.set_fault(FAILING, Some(fault));
        let heads = timeout(SOON, store.heads(&all)).await.unwrap();
        assert_eq!(heads, Ok(vec![None, Some(1), None, Some(1)]), "{fault:?}");
        let unknown = timeout(SOON, store.heads(&[inbox_of(&there)])).await.unwrap();
        assert!(is_unavailable(&unknown), "{fault:?}: nothing was read");
        assert_eq!(store.heads(&[]).await, Ok(vec![]));
    }
}

async fn a_position_is_not_believed_while_its_mailbox_is_unknown(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let store = harness.sharded();
    let [here, there] = tenants(store);
    let reader = Reader::Enforcer(robot());
    for fault in FAULTS {
        for (after, is_ahead) in [(0, false), (7, true)] {
            store.set_fault(FAILING, Some(fault));
            let feed = gateway.feed(&there, &reader, &[after]);
            assert!(timeout(SOON, feed.is_ahead()).await.unwrap().is_err(), "{fault:?}");
            assert_eq!(gateway.feed(&here, &reader, &[after]).is_ahead().await.unwrap(), is_ahead);
            store.set_fault(FAILING, None);
            assert_eq!(feed.is_ahead().await.unwrap(), is_ahead);
        }
    }
}

async fn the_change_poller_rings_for_the_other_shard_and_later_for_what_it_missed(harness: ShardedHarness) {
    let doorbell = LocalDoorbell::default();
    let (gateway, other) = (node_on(&harness, &doorbell), node_on(&harness, &LocalDoorbell::default()));
    let store = harness.sharded();
    let tenants = tenants(store);
    let reader = Reader::Requests(approver("ada"));
    let mut feeds = tenants.clone().map(|tenant| gateway.feed(&tenant, &reader, &[]));
    let mut poller = ChangePoller::default();
    while gateway.poll_changes(&mut poller).await.unwrap() > 0 {}
    for feed in &mut feeds {
        assert!(feed.unread().await.unwrap().is_empty());
        feed.rung().await;
        feed.unread().await.unwrap();
    }
    for (round, fault) in FAULTS.into_iter().enumerate() {
        // Another node commits, whose rings do not reach this one.
        for tenant in &tenants {
            submit(&other, tenant, &request(&format!("r-{round}")).to("ada")).await.unwrap();
        }
        store.set_fault(FAILING, Some(fault));
        assert!(timeout(SOON, gateway.poll_changes(&mut poller)).await.unwrap().is_err(), "{fault:?}");
        let [here, there] = &mut feeds;
        timeout(SOON, here.rung()).await.unwrap();
        assert_eq!(here.unread().await.unwrap().len(), 1, "{fault:?}");
        // A second round that fails forgets nothing either.
        assert!(timeout(SOON, gateway.poll_changes(&mut poller)).await.unwrap().is_err());
        store.set_fault(FAILING, None);
        assert_eq!(gateway.poll_changes(&mut poller).await.unwrap(), 1, "{fault:?}: only what was missed");
        timeout(SOON, there.rung()).await.unwrap();
        assert_eq!(there.unread().await.unwrap().len(), 1, "{fault:?}");
    }
}

async fn a_poller_of_a_shard_does_not_notice_that_another_one_hangs(harness: ShardedHarness) {
    let doorbell = LocalDoorbell::default();
    let (gateway, other) = (node_on(&harness, &doorbell), node_on(&harness, &LocalDoorbell::default()));
    let store = harness.sharded();
    let tenants = tenants(store);
    // A wait listens to a record, which is read from the shard of its tenant.
    let waits = tenants.clone().map(|tenant| {
        let (gateway, other) = (gateway.clone(), other.clone());
        tokio::spawn(async move {
            submit(&other, &tenant, &request("r")).await.unwrap();
            let (robot, id) = (robot(), "r".parse().unwrap());
            let viewer = countersign_core::model::viewer::Viewer::Enforcer(&robot);
            gateway.wait(&tenant, viewer, &id, SOON).await
        })
    });
    while gateway.listened_to().len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut poller = ChangePoller::of(WORKING);
    while gateway.poll_changes(&mut poller).await.unwrap() > 0 {}
    other.withdraw(&tenants[0], &robot(), &"r".parse().unwrap()).await.unwrap();
    store.set_fault(FAILING, Some(Fault::Hangs));
    assert_eq!(gateway.poll_changes(&mut poller).await.unwrap(), 1, "the tenant of its own shard");
    let mut hung = ChangePoller::of(FAILING);
    assert!(timeout(SOON, gateway.poll_changes(&mut hung)).await.unwrap().is_err(), "the other one hangs");
    let [here, there] = waits;
    timeout(SOON, here).await.unwrap().unwrap().unwrap();
    there.abort();
}

async fn orphans_are_swept_and_the_time_is_known_while_one_shard_answers(harness: ShardedHarness) {
    let store = harness.sharded();
    for fault in FAULTS {
        store.set_fault(FAILING, Some(fault));
        assert_eq!(timeout(SOON, store.sweep_orphans(start(), 10)).await.unwrap(), Ok(0), "{fault:?}");
        assert_eq!(timeout(SOON, store.sweep_audit(start(), 10)).await.unwrap(), Ok(0), "{fault:?}");
        assert_eq!(timeout(SOON, store.now()).await.unwrap(), Ok(start()), "{fault:?}");
        store.set_fault(WORKING, Some(fault));
        assert!(is_unavailable(&timeout(SOON, store.sweep_orphans(start(), 10)).await.unwrap()));
        assert!(is_unavailable(&timeout(SOON, store.sweep_audit(start(), 10)).await.unwrap()));
        assert!(is_unavailable(&timeout(SOON, store.now()).await.unwrap()));
        store.set_fault(WORKING, None);
    }
}

async fn a_lease_is_renewed_on_the_other_shard(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let node = NodeId("node".to_owned());
    let lease = [Key::new(Kind::Lease, &node.0)];
    let version = async |shard: Shard| {
        let loaded = harness.shard(shard).load(&shard.nodes_tenant().unwrap(), &lease).await.unwrap();
        loaded.first().map_or(0, |record| record.version)
    };
    gateway.renew_lease(&node).await.unwrap();
    let first = (version(WORKING).await, version(FAILING).await);
    for (fault, renewals) in FAULTS.into_iter().zip(1..) {
        harness.sharded().set_fault(FAILING, Some(fault));
        let renewing = gateway.clone();
        let all = tokio::spawn({
            let node = node.clone();
            async move { renewing.renew_lease(&node).await }
        });
        let until = Instant::now() + SOON;
        while version(WORKING).await < first.0 + renewals {
            assert!(Instant::now() < until, "{fault:?}");
            sleep(Duration::from_millis(20)).await;
        }
        // With a shard that hangs it never ends, so a node renews on each shard by itself.
        let all = timeout(Duration::from_secs(1), all).await;
        assert!(!matches!(all, Ok(Ok(Ok(())))), "{fault:?}");
        let now = (version(WORKING).await, version(FAILING).await);
        assert_eq!(now, (first.0 + renewals, first.1), "{fault:?}");
    }
}

async fn a_node_that_one_shard_takes_for_dead_is_alive_on_the_other(harness: ShardedHarness) {
    let gateway = node_on(&harness, &LocalDoorbell::default());
    let store = harness.sharded();
    let [here, there] = tenants(store);
    let (older, newer) = (NodeId("older".to_owned()), NodeId("newer".to_owned()));
    let mut numbers = Vec::new();
    for node in [&older, &newer] {
        gateway.renew_lease(node).await.unwrap();
    }
    for tenant in [&here, &there] {
        numbers.push(gateway.open_channel(tenant, &robot(), &older, Transport::Websocket).await.unwrap());
        gateway.open_channel(tenant, &robot(), &newer, Transport::Websocket).await.unwrap();
    }
    // The newer node does not reach one shard for longer than a lease lasts.
    store.set_fault(FAILING, Some(Fault::Fails));
    harness.set_now(start().plus(LEASE)).await;
    gateway.renew_lease(&newer).await.unwrap_err();
    let routing = async |tenant: &TenantId, at: usize| {
        gateway.channel_routing(tenant, &robot(), &older, &numbers[at]).await
    };
    let left_to_newer = Some(ChannelRouting { decisions: false, other: false });
    assert_eq!(routing(&here, 0).await.unwrap(), left_to_newer, "its node is alive there");
    assert!(routing(&there, 1).await.is_err(), "not known");
    store.set_fault(FAILING, None);
    assert_eq!(routing(&here, 0).await.unwrap(), left_to_newer);
    let taken_over = Some(ChannelRouting { decisions: true, other: true });
    assert_eq!(routing(&there, 1).await.unwrap(), taken_over, "its node has not been heard of there");
    gateway.renew_lease(&newer).await.unwrap();
    assert_eq!(routing(&there, 1).await.unwrap(), left_to_newer);
}
