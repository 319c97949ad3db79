//! A tenant is moved from one shard to the other: all of it arrives, once, and it is never in both places.

use std::time::Duration;

use bytes::Bytes;
use countersign_core::{
    notify::LocalDoorbell,
    store::{
        Change, Delivery, DeliveryQuery, Due, Epoch, Key, Kind, Mailbox, MailboxKey, Mark, MarkKind, Outcome,
        PayloadId, Put, Record, Shard, Store, StoreError,
    },
};
use countersign_store_sharded::{MoveError, Moved, Options};
use countersign_wire::id::TenantId;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    cases::ShardedCase,
    harness::ShardedHarness,
    load::{
        FIRST, SECOND, SOON, move_to, nothing_is_lost_of_a_tenant_that_is_moved_under_load, probe, settle,
    },
    store::Fault,
};
use crate::{
    gateway_suite::world::{approver, decide, decision, gateway, request, submit},
    store_suite::{StoreHarness as _, start},
};

macro_rules! cases {
    ($($name:ident,)+) => {
        /// Every case with a tenant that is moved.
        pub const MOVES: &[ShardedCase] = &[
            $(ShardedCase { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}

cases! {
    a_tenant_that_was_moved_is_the_same_elsewhere,
    a_change_is_refused_where_its_tenant_is_not,
    a_mover_may_be_killed_after_each_step_and_the_move_goes_on,
    a_mover_may_be_killed_after_each_step_and_the_tenant_is_taken_back,
    nothing_is_lost_of_a_tenant_that_is_moved_under_load,
    a_node_that_has_not_heard_of_a_move_reads_nothing_where_the_tenant_was,
    a_version_does_not_repeat_on_the_other_shard,
    what_is_due_is_claimed_where_its_tenant_is,
    time_does_not_go_back_for_a_tenant,
    a_tenant_is_moved_only_between_shards_that_are_there,
    what_nodes_share_is_not_moved,
    what_is_left_on_a_shard_that_is_away_is_said,
    many_readers_ask_a_shard_once_who_is_on_it,
}

/// Short, so that a move does not take long.
pub const OPTIONS: Options =
    Options { patience: Duration::from_secs(30), believed_for: Duration::from_millis(150) };

/// A mailbox with its newest number, all that lies in it, and what of that an approver is shown.
type Lying = (Mailbox, Option<u64>, Vec<Delivery>, Vec<Delivery>);

/// Everything of a tenant that the port shows.
#[derive(Debug, PartialEq)]
struct Contents {
    records: Vec<Record>,
    mailboxes: Vec<Lying>,
    payloads: Vec<Option<Bytes>>,
    stored_bytes: u64,
}

fn mailboxes() -> [Mailbox; 4] {
    let ada = || approver("ada");
    [Mailbox::Approver(ada()), Mailbox::News(ada()), Mailbox::Shared, Mailbox::SharedNews]
}

async fn contents(store: &dyn Store, tenant: &TenantId) -> Contents {
    let mut records = Vec::new();
    for kind in Kind::ALL {
        records.extend(store.scan(tenant, *kind, None, 1_000).await.unwrap());
    }
    let (mut lying, mut ids) = (Vec::new(), vec![large_payload(tenant)]);
    for mailbox in mailboxes() {
        let query = |unless_marked| DeliveryQuery {
            mailbox: mailbox.clone(),
            after: 0,
            up_to: None,
            limit: 1_000,
            unless_marked,
            only_relevant: false,
        };
        let all = store.deliveries(tenant, query(None)).await.unwrap().deliveries;
        let shown = query(Some((approver("ada"), MarkKind::Hidden)));
        let shown = store.deliveries(tenant, shown).await.unwrap().deliveries;
        let key = MailboxKey { tenant: tenant.clone(), mailbox: mailbox.clone() };
        ids.extend(all.iter().filter_map(|delivery| delivery.payload));
        lying.push((mailbox, store.heads(&[key]).await.unwrap()[0], all, shown));
    }
    let payloads = store.payloads(tenant, &ids).await.unwrap();
    Contents { records, mailboxes: lying, payloads, stored_bytes: store.stored_bytes(tenant).await.unwrap() }
}

fn large_payload(tenant: &TenantId) -> PayloadId {
    PayloadId(tenant.as_str().bytes().fold(7, |id, byte| (id << 8) ^ u128::from(byte)))
}

/// Exchanges, decided and not, with all that comes with them; a large payload, and a mark.
async fn fill(harness: &ShardedHarness, tenant: &TenantId) {
    let seed = tenant.as_str().bytes().fold(0, |seed, byte| (seed << 4) ^ u64::from(byte));
    let node = gateway(harness.sharded().store(), &LocalDoorbell::default(), seed);
    for number in 0..5 {
        let id = format!("r-{number}");
        let to = if number % 2 == 0 { request(&id).to("ada") } else { request(&id) };
        submit(&node, tenant, &to).await.unwrap();
    }
    let id = "r-1".parse().unwrap();
    decide(&node, tenant, &approver("ada"), &id, &decision(&id, "r-1", "once", None)).await.unwrap();
    let mut change = Change::new(tenant.clone());
    change.payloads.push((large_payload(tenant), vec![7; 3 << 20].into()));
    change.marks.push(Mark {
        mailbox: Mailbox::Approver(approver("ada")),
        number: 1,
        subject: Key::new(Kind::Exchange, "r-0"),
        reader: approver("ada"),
        kind: MarkKind::Hidden,
    });
    assert!(matches!(harness.store().commit(change).await, Ok(Outcome::Committed { .. })));
}

async fn a_tenant_that_was_moved_is_the_same_elsewhere(harness: ShardedHarness) {
    let (store, second) = (harness.sharded(), harness.second().await);
    let [tenant, other] = [0, 1].map(|number| store.tenant_on(FIRST, number));
    fill(&harness, &tenant).await;
    fill(&harness, &other).await;
    let (before, of_other) = (contents(&**store, &tenant).await, contents(&**store, &other).await);
    assert!(before.records.len() >= 5 && before.mailboxes.iter().any(|(.., all, shown)| all != shown));
    for (from, to) in [(FIRST, SECOND), (SECOND, FIRST), (FIRST, SECOND)] {
        assert!(matches!(move_to(store, &tenant, to).await, Ok(Moved::Arrived(copied)) if copied.rows > 10));
        for node in [store, &second].map(|node| &**node) {
            let until = Instant::now() + SOON;
            while node.shard_of(&tenant) != to {
                assert!(Instant::now() < until, "a node does not notice");
                sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(contents(node, &tenant).await, before);
            assert_eq!(contents(node, &other).await, of_other);
            assert!(node.tenants(to, None, 10).await.unwrap().contains(&tenant));
            assert!(!node.tenants(from, None, 10).await.unwrap().contains(&tenant));
        }
        let left = contents(&*harness.shard(from), &tenant).await;
        assert_eq!((left.records.len(), left.stored_bytes), (0, 0), "nothing is left behind");
        assert!(left.mailboxes.iter().all(|(_, head, all, _)| *head == Some(0) && all.is_empty()));
        assert!(left.payloads.iter().all(Option::is_none));
        assert_eq!(move_to(store, &tenant, to).await.unwrap(), Moved::WasThere);
    }
    // It goes on where it was: the next numbers follow, and what was once is refused.
    let node = gateway(second.store(), &LocalDoorbell::default(), 2);
    let id = "r-1".parse().unwrap();
    decide(&node, &tenant, &approver("bob"), &id, &decision(&id, "r-1", "again", None)).await.unwrap_err();
    submit(&node, &tenant, &request("new").to("ada")).await.unwrap();
    let inbox = MailboxKey { tenant: tenant.clone(), mailbox: Mailbox::Approver(approver("ada")) };
    let heads: Vec<Option<u64>> =
        before.mailboxes.iter().map(|(_, head, ..)| head.map(|head| head + 1)).collect();
    assert_eq!(second.heads(&[inbox]).await.unwrap(), heads[..1]);
}

/// Where the tenant, which is at home on the first shard, can be written to. Nobody takes it to have been on the other one
/// always, so that is not tried.
async fn writable(harness: &ShardedHarness, tenant: &TenantId) -> Vec<(Shard, Epoch)> {
    let mut writable = Vec::new();
    let mut newest = 0;
    for shard in [FIRST, SECOND] {
        let residence = harness.relocation(shard).residence(tenant).await.unwrap();
        newest = newest.max(residence.map_or(0, |residence| residence.epoch.0));
    }
    for shard in [FIRST, SECOND] {
        let oldest = newest.saturating_sub(3).max(u64::from(shard != FIRST));
        for epoch in (oldest..newest + 3).map(Epoch) {
            match harness.relocation(shard).commit_in(epoch, probe(tenant)).await {
                Ok(Outcome::Conflict { .. }) => writable.push((shard, epoch)),
                Err(StoreError::Moved) => {}
                unexpected => unreachable!("{unexpected:?}"),
            }
        }
    }
    writable
}

async fn a_change_is_refused_where_its_tenant_is_not(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    let residence = harness.relocation(FIRST).residence(&tenant).await;
    assert_eq!(residence, Ok(None), "one that was never moved takes no row");
    move_to(store, &tenant, SECOND).await.unwrap();
    assert_eq!(writable(&harness, &tenant).await, [(SECOND, Epoch(1))]);
    move_to(store, &tenant, FIRST).await.unwrap();
    assert_eq!(writable(&harness, &tenant).await, [(FIRST, Epoch(2))]);
    let before = contents(&**store, &tenant).await;
    // A change of a tenant that is elsewhere shares its transaction with others, and fails alone.
    let mut writes = Change::new(tenant.clone());
    writes.puts.push(Put { key: Key::new(Kind::Exchange, "late"), content: "late".into() });
    let other = store.tenant_on(SECOND, 0);
    let (second, ours) = (harness.relocation(SECOND), Change { tenant: other.clone(), ..writes.clone() });
    let (refused, written) =
        tokio::join!(second.commit_in(Epoch(1), writes), second.commit_in(Epoch(0), ours));
    assert_eq!(refused, Err(StoreError::Moved));
    assert!(matches!(written, Ok(Outcome::Committed { .. })));
    assert_eq!(contents(&**store, &tenant).await, before);
    assert!(contents(&*harness.shard(SECOND), &tenant).await.records.is_empty());
}

/// Whether the tenant can be written to in no more than one place.
async fn assert_in_one_place(harness: &ShardedHarness, tenant: &TenantId, steps: i64) {
    let writable = writable(harness, tenant).await;
    assert!(writable.len() <= 1, "after {steps} steps: {writable:?}");
}

async fn a_mover_may_be_killed_after_each_step_and_the_move_goes_on(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    let before = contents(&**store, &tenant).await;
    let mut to = SECOND;
    for steps in 1.. {
        store.kill_mover_after(Some(steps));
        let killed = move_to(store, &tenant, to).await.is_err();
        store.kill_mover_after(None);
        assert_in_one_place(&harness, &tenant, steps).await;
        move_to(store, &tenant, to).await.unwrap();
        assert_eq!(writable(&harness, &tenant).await.len(), 1);
        settle(store, &tenant, to).await;
        assert!(store.tenants(to, None, 10).await.unwrap().contains(&tenant));
        assert_eq!(contents(&**store, &tenant).await, before, "killed after {steps} steps");
        let from = if to == FIRST { SECOND } else { FIRST };
        assert!(contents(&*harness.shard(from), &tenant).await.records.is_empty());
        to = from;
        if !killed {
            assert!(steps > 12, "a move has more steps than {steps}");
            return;
        }
    }
}

async fn a_mover_may_be_killed_after_each_step_and_the_tenant_is_taken_back(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    let before = contents(&**store, &tenant).await;
    for steps in 1.. {
        store.kill_mover_after(Some(steps));
        let killed = move_to(store, &tenant, SECOND).await.is_err();
        // Who takes it back is killed too, once.
        store.kill_mover_after(Some(steps.rem_euclid(5) + 3));
        drop(move_to(store, &tenant, FIRST).await);
        store.kill_mover_after(None);
        assert_in_one_place(&harness, &tenant, steps).await;
        move_to(store, &tenant, FIRST).await.unwrap();
        settle(store, &tenant, FIRST).await;
        assert_eq!(contents(&**store, &tenant).await, before, "killed after {steps} steps");
        if !killed {
            assert!(steps > 12, "a move has more steps than {steps}");
            return;
        }
    }
}

async fn a_node_that_has_not_heard_of_a_move_reads_nothing_where_the_tenant_was(harness: ShardedHarness) {
    let (store, deaf) = (harness.sharded(), harness.second().await);
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    let exchange = [Key::new(Kind::Exchange, "r-0")];
    assert!(deaf.load(&tenant, &exchange).await.unwrap().first().is_some());
    for shard in [FIRST, SECOND] {
        deaf.set_fault(shard, Some(Fault::SaysNothingOfMoves));
    }
    move_to(store, &tenant, SECOND).await.unwrap();
    assert_eq!(deaf.shard_of(&tenant), FIRST, "it has not heard of it");
    let inbox = MailboxKey { tenant: tenant.clone(), mailbox: Mailbox::Approver(approver("ada")) };
    assert!(deaf.load(&tenant, &exchange).await.is_err());
    assert!(deaf.stored_bytes(&tenant).await.is_err());
    assert!(deaf.scan(&tenant, Kind::Exchange, None, 10).await.is_err());
    assert!(deaf.heads(&[inbox]).await.is_err());
    assert_eq!(deaf.commit(probe(&tenant)).await, Err(StoreError::Moved));
    for shard in [FIRST, SECOND] {
        deaf.set_fault(shard, None);
    }
    settle(&deaf, &tenant, SECOND).await;
    assert!(deaf.load(&tenant, &exchange).await.unwrap().first().is_some());
}

async fn a_version_does_not_repeat_on_the_other_shard(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    let key = Key::new(Kind::Exchange, "again");
    let put = || {
        let mut change = Change::new(tenant.clone());
        change.puts.push(Put { key: key.clone(), content: "x".into() });
        change
    };
    let version = |outcome| match outcome {
        Ok(Outcome::Committed { versions, .. }) => versions[0],
        unexpected => unreachable!("{unexpected:?}"),
    };
    // One shard has used many more versions than the other.
    let mut last = 0;
    for _ in 0..20 {
        last = version(store.commit(put()).await);
        let mut delete = Change::new(tenant.clone());
        delete.deletes.push(key.clone());
        store.commit(delete).await.unwrap();
    }
    move_to(store, &tenant, SECOND).await.unwrap();
    settle(store, &tenant, SECOND).await;
    let next = version(store.commit(put()).await);
    assert!(next > last, "{next} after {last}");
}

async fn what_is_due_is_claimed_where_its_tenant_is(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    let key = Key::new(Kind::Exchange, "due");
    let mut change = Change::new(tenant.clone());
    change.due.push((start(), key.clone()));
    store.commit(change).await.unwrap();
    // Killed when all of it has arrived: both shards have what is due, and neither may say so.
    store.kill_mover_after(Some(9));
    move_to(store, &tenant, SECOND).await.unwrap_err();
    store.kill_mover_after(None);
    let until = Instant::now() + SOON;
    while store.load(&tenant, &[]).await != Err(StoreError::Moved) {
        assert!(Instant::now() < until, "a node does not notice");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.claim_due(10).await.unwrap().0, []);
    move_to(store, &tenant, SECOND).await.unwrap();
    settle(store, &tenant, SECOND).await;
    let now = start().plus(countersign_core::store::CLAIM);
    harness.set_now(now).await;
    let (due, _) = store.claim_due(10).await.unwrap();
    let [Due { tenant: of, key: claimed, .. }] = &due[..] else { unreachable!("{due:?}") };
    assert_eq!((of, claimed), (&tenant, &key));
}

async fn time_does_not_go_back_for_a_tenant(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    harness.set_now_of(FIRST, start().plus(Duration::from_mins(5))).await;
    let refused = move_to(store, &tenant, SECOND).await;
    assert!(matches!(refused, Err(MoveError::Clock { behind, .. }) if behind == Duration::from_mins(5)));
    assert_eq!(writable(&harness, &tenant).await, [(FIRST, Epoch(0))], "it has not left");
    // A little behind, and the tenant waits until it is not.
    harness.set_now_of(SECOND, start().plus(Duration::from_secs(299))).await;
    let on_its_way = tokio::spawn({
        let (store, tenant) = (store.store(), tenant.clone());
        async move { move_to(&store, &tenant, SECOND).await }
    });
    let arriving = || async { harness.relocation(SECOND).commit_in(Epoch(1), probe(&tenant)).await };
    sleep(OPTIONS.believed_for * 4).await;
    assert_eq!(arriving().await, Err(StoreError::Moved), "the clock is still behind");
    harness.set_now_of(SECOND, start().plus(Duration::from_mins(5))).await;
    assert!(matches!(on_its_way.await.unwrap(), Ok(Moved::Arrived(_))));
    assert!(arriving().await.is_ok());
}

async fn a_tenant_is_moved_only_between_shards_that_are_there(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    let before = contents(&**store, &tenant).await;
    assert!(matches!(move_to(store, &tenant, Shard(2)).await, Err(MoveError::NoSuchShard)));
    store.set_fault(SECOND, Some(Fault::Fails));
    move_to(store, &tenant, SECOND).await.unwrap_err();
    assert_eq!(contents(&**store, &tenant).await, before, "it is where it was");
    store.set_fault(SECOND, None);
    store.set_fault(FIRST, Some(Fault::Fails));
    assert!(matches!(move_to(store, &tenant, SECOND).await, Err(MoveError::Away { .. })));
    store.set_fault(FIRST, None);
    assert_eq!(contents(&**store, &tenant).await, before);
    // One that is on its way can be taken back.
    store.kill_mover_after(Some(7));
    move_to(store, &tenant, SECOND).await.unwrap_err();
    store.kill_mover_after(None);
    move_to(store, &tenant, FIRST).await.unwrap();
    settle(store, &tenant, FIRST).await;
    assert_eq!(contents(&**store, &tenant).await, before);
    // The shard that it has left says where it is, and that one says nothing.
    move_to(store, &tenant, SECOND).await.unwrap();
    store.set_fault(SECOND, Some(Fault::Fails));
    for to in [FIRST, SECOND] {
        let refused = move_to(store, &tenant, to).await;
        assert!(matches!(&refused, Err(MoveError::Away { name }) if name == "shard-1"), "{refused:?}");
    }
}

async fn what_nodes_share_is_not_moved(harness: ShardedHarness) {
    let store = harness.sharded();
    for (of, to) in [(FIRST, SECOND), (SECOND, FIRST), (FIRST, FIRST)] {
        let nodes = of.nodes_tenant().unwrap();
        assert!(matches!(move_to(store, &nodes, to).await, Err(MoveError::OfNodes)));
        assert_eq!(store.shard_of(&nodes), of);
        assert!(store.commit(probe(&nodes)).await.is_ok());
    }
}

async fn what_is_left_on_a_shard_that_is_away_is_said(harness: ShardedHarness) {
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    for to in [SECOND, FIRST] {
        move_to(store, &tenant, to).await.unwrap();
    }
    store.set_fault(SECOND, Some(Fault::Fails));
    let refused = move_to(store, &tenant, FIRST).await;
    assert!(matches!(&refused, Err(MoveError::NotTidied { names }) if names == &["shard-1"]), "{refused:?}");
    store.set_fault(SECOND, None);
    assert_eq!(move_to(store, &tenant, FIRST).await.unwrap(), Moved::WasThere);
}

async fn many_readers_ask_a_shard_once_who_is_on_it(harness: ShardedHarness) {
    const READERS: usize = 100;
    let store = harness.sharded();
    let tenant = store.tenant_on(FIRST, 0);
    fill(&harness, &tenant).await;
    // What is known of the shard is too old to be believed.
    store.set_fault(FIRST, Some(Fault::SaysNothingOfMoves));
    sleep(OPTIONS.believed_for * 2).await;
    assert!(store.load(&tenant, &[]).await.is_err());
    let before = store.asked_of_moves(FIRST);
    store.set_fault(FIRST, Some(Fault::SaysLateOfMoves));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (store, tenant) = (store.store(), tenant.clone());
        readers.spawn(async move { store.load(&tenant, &[]).await.is_ok() });
    }
    assert!(readers.join_all().await.into_iter().all(|has_read| has_read));
    let asked = store.asked_of_moves(FIRST) - before;
    assert!(asked < READERS / 4, "the shard was asked {asked} times");
}
