//! What an exchange costs in reads, and that what a node remembers never decides.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    Gateway,
    delivery::{
        change_poller::ChangePoller,
        feed::{Feed, FeedItem, Reader},
    },
    model::policy::Policy,
    notify::{LocalDoorbell, Ring},
    store::{Mailbox, MailboxKey},
    use_cases::acknowledge::Acknowledger,
};
use countersign_wire::{exchange::ExchangeState, presence::Transport};

use super::world::{
    World, ack_of, approver, decide, decision, gateway, minutes, request, robot, status_of, submit,
};
use crate::{
    recording_store::RecordingStore,
    store_suite::{StoreHarness, cases},
};

cases! {
    a_submission_reads_nothing,
    a_decision_reads_one_record_at_most,
    a_push_reads_nothing_on_the_node_of_the_commit,
    an_acknowledged_decision_reads_nothing_where_it_was_taken_in,
    a_decision_is_handed_over_to_the_node_of_the_newest_channel,
    what_is_not_handed_over_is_read_in_order,
    a_new_feed_is_not_handed_what_was_answered_before,
    a_policy_that_changed_elsewhere_counts_at_once,
    a_decision_elsewhere_is_found_by_the_commit,
    a_time_that_was_estimated_decides_nothing,
    a_number_of_another_history_is_a_change,
    another_history_empties_the_memory,
}

/// A gateway that counts its reads, and knows the time without asking.
fn counting(world: &World, seed: u64) -> (Gateway, Arc<RecordingStore>) {
    counting_beside(world, &LocalDoorbell::default(), seed)
}

/// As [`counting`], connected to others.
fn counting_beside(world: &World, doorbell: &LocalDoorbell, seed: u64) -> (Gateway, Arc<RecordingStore>) {
    let store = RecordingStore::new(world.harness.store());
    store.set_estimated_now(Some(minutes(0)));
    (gateway(store.clone(), doorbell, seed), store)
}

async fn submitted(gateway: &Gateway, world: &World, id: &str) {
    submit(gateway, &world.tenant, &request(id).to("ada")).await.unwrap();
}

async fn decided(gateway: &Gateway, world: &World, id: &str) {
    let decision = decision(&id.parse().unwrap(), id, "n", None);
    decide(gateway, &world.tenant, &approver("ada"), &id.parse().unwrap(), &decision).await.unwrap();
}

/// A feed that has read everything.
async fn feed_at_head(gateway: &Gateway, world: &World, reader: Reader) -> Feed {
    let mut feed = gateway.feed(&world.tenant, &reader, &[]);
    while feed.has_more() {
        feed.unread().await.unwrap();
    }
    feed
}

fn subjects(items: &[FeedItem]) -> Vec<&str> {
    items.iter().map(|item| item.delivery.subject.id.as_str()).collect()
}

async fn a_submission_reads_nothing(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "first").await;
    let before = store.reads();
    for id in ["r1", "r2", "r3"] {
        submitted(&node, &world, id).await;
    }
    assert_eq!(store.reads() - before, 0);
    submitted(&node, &world, "r1").await;
    assert_eq!(store.reads() - before, 0, "nor does a repeated one where it was taken in");
    let (other, elsewhere) = counting(&world, 6);
    submitted(&other, &world, "r1").await;
    assert!(elsewhere.reads() > 0, "another node finds out that it is repeated, and reads are counted");
    assert_eq!(world.inbox("ada").await, ["first", "r1", "r2", "r3"]);
}

async fn a_decision_reads_one_record_at_most(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ((node, store), (other, elsewhere)) = (counting(&world, 5), counting(&world, 6));
    for id in ["first", "here", "there"] {
        submitted(&node, &world, id).await;
    }
    decided(&node, &world, "first").await;
    let before = store.reads();
    decided(&node, &world, "here").await;
    assert_eq!(store.reads() - before, 0, "this node took the exchange in");
    // It learns of policy and keys with the same read.
    decided(&other, &world, "there").await;
    assert_eq!(elsewhere.reads(), 1);
}

async fn a_push_reads_nothing_on_the_node_of_the_commit(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "first").await;
    decided(&node, &world, "first").await;
    let mut inbox = feed_at_head(&node, &world, Reader::Requests(approver("ada"))).await;
    let mut decisions = feed_at_head(&node, &world, Reader::Enforcer(robot())).await;
    let before = store.reads();
    for id in ["r1", "r2"] {
        submitted(&node, &world, id).await;
        inbox.rung().await;
        let items = inbox.handed_over();
        assert_eq!(subjects(&items), [id]);
        let message = items[0].handed_over.message().unwrap();
        assert_eq!(message.msg_id, items[0].delivery.msg_id);
        assert!(!inbox.has_more(), "nothing is left to read");
        decided(&node, &world, id).await;
        decisions.rung().await;
        let items = decisions.handed_over();
        let message = items[0].handed_over.message().unwrap();
        assert_eq!(message.body, decision(&id.parse().unwrap(), id, "n", None));
        assert!(!decisions.has_more());
        // The same as whoever reads it gets.
        let (other, _) = counting(&world, 9);
        let read = other.message(&world.tenant, &items[0].delivery).await.unwrap();
        assert_eq!(read.as_ref(), Some(&message));
    }
    assert_eq!(store.reads() - before, 0);
}

async fn an_acknowledged_decision_reads_nothing_where_it_was_taken_in(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "r").await;
    decided(&node, &world, "r").await;
    let mut feed = node.feed(&world.tenant, &Reader::Enforcer(robot()), &[]);
    let msg_id = feed.unread().await.unwrap()[0].delivery.msg_id.clone();
    let before = store.reads();
    let (enforcer, id) = (robot(), "r".parse().unwrap());
    let by = Acknowledger::Enforcer(&enforcer);
    node.acknowledge(&world.tenant, by, &id, &ack_of(&msg_id)).await.unwrap();
    assert_eq!(store.reads() - before, 0);
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Delivered);
    let mut again = node.feed(&world.tenant, &Reader::Enforcer(robot()), &[]);
    assert!(again.unread().await.unwrap().is_empty(), "it is not sent again");
    node.acknowledge(&world.tenant, by, &id, &ack_of(&msg_id)).await.unwrap();
    let stranger = "stranger".parse().unwrap();
    let refused =
        node.acknowledge(&world.tenant, Acknowledger::Enforcer(&stranger), &id, &ack_of(&msg_id)).await;
    assert_eq!(status_of(&refused, 200), 404);
}

async fn a_decision_is_handed_over_to_the_node_of_the_newest_channel(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let beside = |seed: u64| counting_beside(&world, &world.doorbell, seed);
    let ((node, _), (other, elsewhere)) = (beside(5), beside(6));
    other.renew_lease(other.node()).await.unwrap();
    let enforcer = robot();
    let transport = Transport::Websocket;
    let channel = other.open_channel(&world.tenant, &enforcer, other.node(), transport).await.unwrap();
    submitted(&node, &world, "first").await;
    let mut feed = feed_at_head(&other, &world, Reader::Enforcer(enforcer.clone())).await;
    decided(&node, &world, "first").await;
    feed.rung().await;
    assert_eq!(subjects(&feed.unread().await.unwrap()), ["first"], "the node that decided may not know yet");
    // The node that decided learns of the channel beside the request.
    let mut handed_over = Vec::new();
    for attempt in 0..50 {
        let id = format!("r{attempt}");
        submitted(&node, &world, &id).await;
        let before = elsewhere.reads();
        decided(&node, &world, &id).await;
        feed.rung().await;
        handed_over = feed.handed_over();
        if !handed_over.is_empty() {
            assert_eq!(subjects(&handed_over), [id]);
            assert_eq!(elsewhere.reads(), before);
            break;
        }
        feed.unread().await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(handed_over[0].handed_over.message().is_some());
    let routing = other.known_routing(&world.tenant, &enforcer, &channel);
    assert!(routing.is_some_and(|routing| routing.decisions), "whose turn it is is known without a read");
}

async fn what_is_not_handed_over_is_read_in_order(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, _) = counting(&world, 5);
    // A node whose rings do not reach this one.
    let elsewhere = gateway(world.harness.store(), &LocalDoorbell::default(), 6);
    let mut inbox = feed_at_head(&node, &world, Reader::Requests(approver("ada"))).await;
    submitted(&elsewhere, &world, "r1").await;
    submitted(&node, &world, "r2").await;
    submitted(&elsewhere, &world, "r3").await;
    submitted(&node, &world, "r4").await;
    inbox.rung().await;
    assert!(inbox.handed_over().is_empty(), "the second does not come next");
    let mut seen = Vec::new();
    while inbox.has_more() {
        seen.extend(inbox.unread().await.unwrap());
    }
    assert_eq!(subjects(&seen), ["r1", "r2", "r3", "r4"]);
    submitted(&node, &world, "r5").await;
    inbox.rung().await;
    assert_eq!(subjects(&inbox.handed_over()), ["r5"]);
}

async fn a_new_feed_is_not_handed_what_was_answered_before(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, _) = counting(&world, 5);
    let _listens = node.feed(&world.tenant, &Reader::Requests(approver("ada")), &[]);
    submitted(&node, &world, "r").await;
    decided(&node, &world, "r").await;
    let mut late = node.feed(&world.tenant, &Reader::Requests(approver("ada")), &[]);
    assert!(late.handed_over().is_empty());
    assert!(late.unread().await.unwrap().is_empty(), "it is decided");
}

async fn a_policy_that_changed_elsewhere_counts_at_once(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "first").await;
    let before = store.reads();
    // Nobody rings for it here.
    let elsewhere = gateway(world.harness.store(), &LocalDoorbell::default(), 6);
    let strict = Policy { require_idempotency_key: true, ..Policy::default() };
    elsewhere.set_policy(&world.tenant, &strict).await.unwrap();
    let refused = submit(&node, &world.tenant, &request("r").to("ada")).await;
    assert_eq!(status_of(&refused, 202), 400);
    assert!(store.reads() > before);
    elsewhere.set_policy(&world.tenant, &Policy::default()).await.unwrap();
    submitted(&node, &world, "r").await;
}

async fn a_decision_elsewhere_is_found_by_the_commit(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, _) = counting(&world, 5);
    submitted(&node, &world, "r").await;
    let elsewhere = gateway(world.harness.store(), &LocalDoorbell::default(), 6);
    decided(&elsewhere, &world, "r").await;
    let id = "r".parse().unwrap();
    let other = decision(&id, "r", "another", None);
    let refused = decide(&node, &world.tenant, &approver("ada"), &id, &other).await;
    assert_eq!(status_of(&refused, 200), 409);
    let same = decision(&id, "r", "n", None);
    assert!(decide(&node, &world.tenant, &approver("ada"), &id, &same).await.unwrap().replayed);
}

async fn a_time_that_was_estimated_decides_nothing(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "first").await;
    let estimate = |minute: u64| store.set_estimated_now(Some(minutes(minute)));
    // It is ahead: the exchange is still pending, and a new one is not refused.
    submitted(&node, &world, "early").await;
    estimate(60);
    decided(&node, &world, "early").await;
    submitted(&node, &world, "also early").await;
    // It is behind: what has expired can't be decided, or be submitted.
    estimate(0);
    submitted(&node, &world, "late").await;
    world.at_minute(11).await;
    let id = "late".parse().unwrap();
    let late = decision(&id, "late", "n", None);
    let refused = decide(&node, &world.tenant, &approver("ada"), &id, &late).await;
    assert_eq!(status_of(&refused, 200), 409);
    let refused = submit(&node, &world.tenant, &request("too late")).await;
    assert_eq!(status_of(&refused, 202), 422);
    // The longest life counts from the store's time.
    let max_life = Some(Duration::from_mins(5));
    node.set_policy(&world.tenant, &Policy { max_life, ..Policy::default() }).await.unwrap();
    let until = |minute: u64| request(&format!("until-{minute}")).for_minutes(minute);
    estimate(13);
    let refused = submit(&node, &world.tenant, &until(17)).await;
    assert_eq!(status_of(&refused, 202), 403);
    submit(&node, &world.tenant, &until(16)).await.unwrap();
}

async fn a_number_of_another_history_is_a_change(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "r1").await;
    let mailbox = Mailbox::Approver(approver("ada"));
    let mailbox = Ring::Mailbox(MailboxKey { tenant: world.tenant.clone(), mailbox });
    let _listener = node.listen(vec![mailbox]);
    let mut poller = ChangePoller::default();
    let mut changes = async || node.poll_changes(&mut poller).await.unwrap();
    assert_eq!(changes().await, 1);
    while changes().await > 0 {}
    // A failover undoes a delivery, and before the next round another one has its number.
    store.set_timeline(7);
    assert_eq!(changes().await, 1, "the same number");
    while changes().await > 0 {}
}

async fn another_history_empties_the_memory(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (node, store) = counting(&world, 5);
    submitted(&node, &world, "r1").await;
    let mut inbox = feed_at_head(&node, &world, Reader::Requests(approver("ada"))).await;
    let before: Vec<u64> = inbox.positions();
    assert_eq!(before, [1, 0]);
    store.set_timeline(7);
    let reads = store.reads();
    submitted(&node, &world, "r2").await;
    assert_eq!(node.timeline(), 7);
    submitted(&node, &world, "r3").await;
    assert!(store.reads() > reads, "nothing is known of the other history");
    inbox.rung().await;
    assert_eq!(subjects(&inbox.unread().await.unwrap()), ["r1", "r2", "r3"], "from the beginning");
}
