//! Submit, decide, withdraw, cancel: transitions, replays and rejections on a real store.

use std::{future::Future as _, time::Duration};

use countersign_core::{
    Gateway,
    delivery::{change_poller::ChangePoller, feed::FeedItem},
    model::{credential::Role, viewer::Viewer},
    notify::LocalDoorbell,
    use_cases::{acknowledge::Acknowledger, wait::WaitOutcome},
};
use countersign_wire::{
    ack::MessageAck, exchange::ExchangeState, id::RequestId, mac::MacKey, refresh::RefreshBody,
};

use super::world::{
    World, ack_of, approver, decide, decide_with, decision, gateway, minutes, request, robot, status_of,
    submit,
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    a_submission_is_pending_until_it_is_decided,
    the_same_submission_again_is_a_replay,
    another_submission_under_the_same_id_conflicts,
    the_same_decision_again_is_a_replay_however_it_is_spelled,
    another_decision_conflicts_and_changes_nothing,
    a_decision_is_kept_byte_for_byte,
    a_decision_with_a_key_that_another_node_has_revoked_is_not_committed,
    a_decision_on_a_withdrawn_exchange_is_not_found,
    a_withdrawn_exchange_leaves_the_inbox_and_its_approvers_are_notified,
    withdrawing_is_for_the_owner_only,
    an_exchange_past_its_time_is_stored_as_expired_by_the_next_writer,
    a_submission_that_has_already_expired_is_rejected,
    a_cancelled_exchange_can_be_cancelled_again_and_nothing_else,
    an_acknowledged_decision_is_delivered_and_not_sent_again,
    acknowledging_another_message_does_not_deliver,
    an_approver_outside_the_exchange_sees_nothing,
    tenants_with_the_same_ids_are_isolated,
    a_wait_is_answered_by_the_decision,
    a_caller_that_goes_away_does_not_take_the_ring_with_it,
    the_change_poller_makes_up_for_a_missed_ring,
    a_wait_on_an_exchange_that_ended_undecided_gets_no_decision,
    a_wait_on_an_unknown_exchange_is_not_found,
    a_decision_of_another_node_is_confirmed_before_it_is_sent,
    an_end_by_another_node_is_confirmed_before_it_is_told,
    a_refresh_is_coalesced_only_while_it_is_unacknowledged,
    whoever_always_comes_second_is_told_to_come_back,
}

async fn a_submission_is_pending_until_it_is_decided(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let submitted = world.submit(&request("r")).await.unwrap();
    assert_eq!((submitted.accepted.state, submitted.replayed), (ExchangeState::PendingApproval, false));
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::PendingApproval);
    let decided = world.decide("ada", "r", "n").await.unwrap();
    assert_eq!((decided.accepted.state, decided.replayed), (ExchangeState::Decided, false));
    let snapshot = world.status("r").await.unwrap();
    assert_eq!((snapshot.state, snapshot.created_at), (ExchangeState::Decided, minutes(0)));
    assert!(world.inbox("ada").await.is_empty());
}

async fn the_same_submission_again_is_a_replay(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let first = world.submit(&request("r")).await.unwrap();
    for minute in [0, 5, 20] {
        world.at_minute(minute).await;
        let again = world.submit(&request("r")).await.unwrap();
        assert_eq!(
            (again.accepted, again.replayed),
            (first.accepted.clone(), true),
            "after {minute} minutes"
        );
    }
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Expired);
}

async fn another_submission_under_the_same_id_conflicts(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    assert_eq!(status_of(&world.submit(&request("r").about("else")).await, 202), 409);
    assert_eq!(status_of(&world.submit(&request("r").by("stranger")).await, 202), 409);
    assert_eq!(world.inbox("ada").await, ["r"]);
}

async fn the_same_decision_again_is_a_replay_however_it_is_spelled(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let respelled = decision(&id, "r", "n", None).replace(',', " ,\n");
    let again = decide(&world.gateway, &world.tenant, &approver("ada"), &id, &respelled).await.unwrap();
    assert!(again.replayed);
}

async fn another_decision_conflicts_and_changes_nothing(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "first").await.unwrap();
    let before = world.status("r").await.unwrap();
    assert_eq!(status_of(&world.decide("bob", "r", "second").await, 200), 409);
    assert_eq!(world.status("r").await.unwrap(), before);
}

async fn a_decision_is_kept_byte_for_byte(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let spelled = decision(&id, "r", "n", None).replace(',', " ,\r\n");
    decide(&world.gateway, &world.tenant, &approver("ada"), &id, &spelled).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().decision.unwrap(), spelled.as_bytes());
    let waited =
        world.gateway.wait(&world.tenant, Viewer::Enforcer(&robot()), &id, Duration::ZERO).await.unwrap();
    assert!(matches!(waited, WaitOutcome::Decided { decision, .. } if decision == spelled.as_bytes()));
}

async fn a_decision_with_a_key_that_another_node_has_revoked_is_not_committed(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let (mac_key, role) = (MacKey::new([7; 32]), Role::Approver(Some(approver("ada"))));
    let key = world.gateway.create_key(&world.tenant, role, &mac_key).await.unwrap().key;
    for id in ["r", "s"] {
        world.submit(&request(id)).await.unwrap();
    }
    let decide = async |about: &str| {
        let id: RequestId = about.parse().unwrap();
        let (by, text) = (approver("ada"), decision(&id, about, "n", None));
        decide_with(Some(key.key_id()), &world.gateway, &world.tenant, &by, &id, &text).await
    };
    assert_eq!(status_of(&decide("r").await, 200), 200);
    // Nothing of it reaches the node that decides.
    let elsewhere = gateway(world.harness.second_handle().await, &LocalDoorbell::default(), 2);
    elsewhere.revoke_key(&world.tenant, key.key_id()).await.unwrap();
    assert_eq!(status_of(&decide("s").await, 200), 401);
    assert_eq!(world.status("s").await.unwrap().state, ExchangeState::PendingApproval);
}

async fn a_decision_on_a_withdrawn_exchange_is_not_found(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await.unwrap();
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 404);
    let again = world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await;
    assert_eq!(status_of(&again, 200), 409);
}

async fn a_withdrawn_exchange_leaves_the_inbox_and_its_approvers_are_notified(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    world.submit(&request("r").to("ada")).await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Approver(approver("ada"));
    let mut feed = world.gateway.feed(&world.tenant, &reader, &[]);
    assert_eq!(feed.next().await.unwrap()[0].delivery.msg_type.as_str(), "approval.request");
    world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await.unwrap();
    let items = feed.next().await.unwrap();
    assert_eq!((items.len(), items[0].delivery.msg_type.as_str()), (1, "exchange.withdrawn"));
    assert!(world.inbox("ada").await.is_empty());
}

async fn withdrawing_is_for_the_owner_only(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let id = "r".parse().unwrap();
    let stranger = world.gateway.withdraw(&world.tenant, &"stranger".parse().unwrap(), &id).await;
    let unknown = world.gateway.withdraw(&world.tenant, &robot(), &"unknown".parse().unwrap()).await;
    assert_eq!((status_of(&stranger, 200), status_of(&unknown, 200)), (404, 404));
    assert_eq!(world.inbox("ada").await, ["r"]);
}

async fn an_exchange_past_its_time_is_stored_as_expired_by_the_next_writer(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.at_minute(10).await;
    // Reads treat it as expired without writing.
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Expired);
    assert!(world.inbox("ada").await.is_empty());
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 409);
    // A clock that goes back does not revert the stored state.
    world.at_minute(5).await;
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Expired);
    assert_eq!(world.expired("ada").await, ["r"]);
}

async fn a_submission_that_has_already_expired_is_rejected(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    assert_eq!(status_of(&world.submit(&request("r").for_minutes(0)).await, 202), 422);
    assert_eq!(status_of(&world.status("r").await, 200), 404);
}

async fn a_cancelled_exchange_can_be_cancelled_again_and_nothing_else(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    for _ in 0..2 {
        let cancelled = world.gateway.cancel(&world.tenant, &id).await.unwrap();
        assert_eq!(cancelled.state, ExchangeState::Cancelled);
    }
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 409);
    assert_eq!(status_of(&world.gateway.withdraw(&world.tenant, &robot(), &id).await, 200), 409);
    assert!(world.inbox("ada").await.is_empty());
}

async fn an_acknowledged_decision_is_delivered_and_not_sent_again(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Enforcer(robot());
    let items = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(items[0].delivery.msg_type.as_str(), "decision.deliver");
    let again = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    let deliveries = |items: Vec<FeedItem>| items.into_iter().map(|item| item.delivery).collect::<Vec<_>>();
    assert_eq!(
        deliveries(again),
        deliveries(items.clone()),
        "redelivered with the same id until it is acknowledged"
    );

    let by = Acknowledger::Enforcer(&"stranger".parse().unwrap());
    assert_eq!(
        status_of(&world.gateway.acknowledge(&world.tenant, by, &id, &MessageAck::default()).await, 200),
        404
    );
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Decided);

    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id, &ack_of(&items[0].delivery.msg_id)).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Delivered);
    world.gateway.acknowledge(&world.tenant, by, &id, &ack_of(&items[0].delivery.msg_id)).await.unwrap();
    assert!(world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap().is_empty());
}

async fn acknowledging_another_message_does_not_deliver(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id, &ack_of(&"another".parse().unwrap())).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Decided);
    world.gateway.acknowledge(&world.tenant, by, &id, &MessageAck::default()).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Delivered);
}

async fn an_approver_outside_the_exchange_sees_nothing(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r").to("ada")).await.unwrap();
    assert_eq!(status_of(&world.decide("bob", "r", "n").await, 200), 404);
    let bob = approver("bob");
    let seen = world.gateway.status(&world.tenant, Viewer::Approver(&bob), &"r".parse().unwrap()).await;
    assert_eq!(status_of(&seen, 200), 404);
    assert!(world.inbox("bob").await.is_empty());
    world.decide("ada", "r", "n").await.unwrap();
}

async fn tenants_with_the_same_ids_are_isolated(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.tenant = "other".parse().unwrap();
    assert_eq!(status_of(&world.status("r").await, 200), 404);
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 404);
    world.submit(&request("r").about("else")).await.unwrap();
    world.tenant = "acme".parse().unwrap();
    assert_eq!(world.status("r").await.unwrap().artifact_hash, super::world::hash("r"));
}

async fn a_wait_is_answered_by_the_decision(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let (gateway, tenant) = (world.gateway.clone(), world.tenant.clone());
    let waiting = tokio::spawn(async move {
        gateway
            .wait(&tenant, Viewer::Enforcer(&robot()), &"r".parse().unwrap(), Duration::from_secs(30))
            .await
    });
    while world.gateway.listened_to().is_empty() {
        tokio::task::yield_now().await;
    }
    world.decide("ada", "r", "n").await.unwrap();
    assert!(matches!(waiting.await.unwrap().unwrap(), WaitOutcome::Decided { .. }));
    assert!(world.gateway.listened_to().is_empty(), "a finished wait has no listeners");
}

async fn the_change_poller_makes_up_for_a_missed_ring(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    // Another node, whose doorbell is not connected to ours.
    let elsewhere = LocalDoorbell::default();
    let node = gateway(world.harness.second_handle().await, &elsewhere, 2);
    let (gateway, tenant) = (node.clone(), world.tenant.clone());
    let waiting = tokio::spawn(async move {
        gateway
            .wait(&tenant, Viewer::Enforcer(&robot()), &"r".parse().unwrap(), Duration::from_secs(30))
            .await
    });
    let (gateway, tenant) = (node.clone(), world.tenant.clone());
    let reading = tokio::spawn(async move {
        gateway.feed(&tenant, &countersign_core::delivery::feed::Reader::Enforcer(robot()), &[]).next().await
    });
    while node.listened_to().len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut poller = ChangePoller::default();
    while node.poll_changes(&mut poller).await.unwrap() > 0 {}
    world.decide("ada", "r", "n").await.unwrap();
    // The exchange and the mailbox, unless one of the two is still reading and so finds the decision by itself.
    assert!(node.poll_changes(&mut poller).await.unwrap() <= 2);
    assert!(matches!(waiting.await.unwrap().unwrap(), WaitOutcome::Decided { .. }));
    assert_eq!(reading.await.unwrap().unwrap().len(), 1);
}

async fn a_wait_on_an_exchange_that_ended_undecided_gets_no_decision(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let pending =
        world.gateway.wait(&world.tenant, Viewer::Enforcer(&robot()), &id, Duration::ZERO).await.unwrap();
    assert_eq!(pending, WaitOutcome::NotDecided { state: ExchangeState::PendingApproval });
    world.gateway.withdraw(&world.tenant, &robot(), &id).await.unwrap();
    let ended =
        world.gateway.wait(&world.tenant, Viewer::Enforcer(&robot()), &id, Duration::ZERO).await.unwrap();
    assert_eq!(ended, WaitOutcome::NotDecided { state: ExchangeState::Withdrawn });
}

async fn a_wait_on_an_unknown_exchange_is_not_found(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let waited = world
        .gateway
        .wait(&world.tenant, Viewer::Enforcer(&robot()), &"r".parse().unwrap(), Duration::ZERO)
        .await;
    assert_eq!(status_of(&waited, 200), 404);
    world.submit(&request("r")).await.unwrap();
    let stranger = "stranger".parse().unwrap();
    let waited = world
        .gateway
        .wait(&world.tenant, Viewer::Enforcer(&stranger), &"r".parse().unwrap(), Duration::ZERO)
        .await;
    assert_eq!(status_of(&waited, 200), 404);
}

async fn whoever_always_comes_second_is_told_to_come_back(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let store = crate::recording_store::RecordingStore::new(world.harness.store());
    let gateway = gateway(store.clone(), &world.doorbell, 2);
    store.set_commits_conflict(true);
    let submitted = submit(&gateway, &world.tenant, &request("r")).await;
    assert_eq!(status_of(&submitted, 202), 503);
    store.set_commits_conflict(false);
    submit(&gateway, &world.tenant, &request("r")).await.unwrap();
}

async fn an_end_by_another_node_is_confirmed_before_it_is_told(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (enforcer, id): (_, RequestId) = (robot(), "r".parse().unwrap());
    world.submit(&request("r")).await.unwrap();
    world.gateway.withdraw(&world.tenant, &enforcer, &id).await.unwrap();
    let recording = crate::recording_store::RecordingStore::new(world.harness.store());
    let node = |seed| gateway(recording.clone(), &world.doorbell, seed);
    let viewer = Viewer::Enforcer(&enforcer);
    let (reads, waits) = (node(2), node(3));
    for _ in 0..2 {
        let snapshot = reads.status(&world.tenant, viewer, &id).await.unwrap();
        assert_eq!(snapshot.state, ExchangeState::Withdrawn);
        let waited = waits.wait(&world.tenant, viewer, &id, Duration::ZERO).await.unwrap();
        assert_eq!(waited, WaitOutcome::NotDecided { state: ExchangeState::Withdrawn });
    }
    let confirms = recording.take_committed();
    assert!(confirms.iter().all(|change| change.puts.is_empty() && change.guards.len() == 1));
    assert_eq!(confirms.len(), 2, "each node once");
}

async fn a_decision_of_another_node_is_confirmed_before_it_is_sent(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let recording = crate::recording_store::RecordingStore::new(world.harness.store());
    let other = gateway(recording.clone(), &world.doorbell, 2);
    let (enforcer, id): (_, RequestId) = (robot(), "r".parse().unwrap());
    world.submit(&request("r").to("ada")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let wait = async |gateway: &Gateway| {
        gateway.wait(&world.tenant, Viewer::Enforcer(&enforcer), &id, Duration::ZERO).await.unwrap()
    };
    let confirms = || {
        let changes = recording.take_committed();
        assert!(changes.iter().all(|change| change.puts.is_empty() && change.guards.len() == 1));
        changes.len()
    };
    // The node that accepted the decision knows that it is durable.
    assert!(matches!(wait(&world.gateway).await, WaitOutcome::Decided { .. }));
    // Another node confirms with the store once, however often and over whichever route it sends the decision.
    assert!(matches!(wait(&other).await, WaitOutcome::Decided { .. }));
    assert_eq!(confirms(), 1);
    assert!(matches!(wait(&other).await, WaitOutcome::Decided { .. }));
    other.status(&world.tenant, Viewer::Enforcer(&enforcer), &id).await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Enforcer(enforcer.clone());
    let items = other.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    other.message(&world.tenant, &items[0].delivery).await.unwrap().unwrap();
    assert_eq!(confirms(), 0);
    let third = gateway(recording.clone(), &world.doorbell, 3);
    third.message(&world.tenant, &items[0].delivery).await.unwrap().unwrap();
    assert_eq!(confirms(), 1);
    let fourth = gateway(recording.clone(), &world.doorbell, 4);
    fourth.status(&world.tenant, Viewer::Enforcer(&enforcer), &id).await.unwrap();
    assert_eq!(confirms(), 1);
}

async fn a_refresh_is_coalesced_only_while_it_is_unacknowledged(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (ada, id): (_, RequestId) = (approver("ada"), "r".parse().unwrap());
    world.submit(&request("r")).await.unwrap();
    let refresh = async || world.gateway.refresh(&world.tenant, &ada, &id, &RefreshBody::default()).await;
    let enforcer = robot();
    let outstanding = async || {
        let about = world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap();
        let mut refreshes = about.into_iter().filter(|(_, it)| it.msg_type.as_str() == "refresh.request");
        let first = refreshes.next().map(|(_, delivery)| delivery.msg_id);
        assert!(refreshes.next().is_none(), "never two");
        first
    };
    refresh().await.unwrap();
    let first = outstanding().await.unwrap();
    world.at_minute(5).await;
    refresh().await.unwrap();
    assert_eq!(outstanding().await.as_ref(), Some(&first), "the enforcer has not heard of the first yet");
    let by = Acknowledger::Enforcer(&enforcer);
    world.gateway.acknowledge(&world.tenant, by, &id, &ack_of(&first)).await.unwrap();
    assert_eq!(outstanding().await, None);
    refresh().await.unwrap();
    assert_ne!(outstanding().await.unwrap(), first, "at once, however soon after the first");
    // An acknowledgement of everything at once, the decision included, ends it too.
    world.decide("ada", "r", "n").await.unwrap();
    world.gateway.acknowledge(&world.tenant, by, &id, &MessageAck::default()).await.unwrap();
    assert_eq!(outstanding().await, None);
    refresh().await.unwrap();
    assert!(outstanding().await.is_some());
    let unknown =
        world.gateway.refresh(&world.tenant, &ada, &"x".parse().unwrap(), &RefreshBody::default()).await;
    assert_eq!(status_of(&unknown, 202), 404);
}

async fn a_caller_that_goes_away_does_not_take_the_ring_with_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let mut rung_without_a_caller = 0;
    // On a busy machine a commit takes long. A decision that never began makes each round take as long, so only the second
    // time has much patience, and there is one only if the first has shown nothing.
    for first_patience in [500, 3_000] {
        for polls in 0..60_u32 {
            let patience = if rung_without_a_caller == 0 { first_patience } else { 100 };
            let id = format!("r-{first_patience}-{polls}");
            let is_rung = is_rung_without_a_caller(&world, &id, polls, Duration::from_millis(patience));
            rung_without_a_caller += u32::from(is_rung.await);
        }
        if rung_without_a_caller > 0 {
            break;
        }
    }
    assert!(rung_without_a_caller > 0, "the caller never left at the right moment");
}

/// Leaves after so many polls of a decision; returns whether it was committed and rung for all the same.
async fn is_rung_without_a_caller(world: &World, id: &str, polls: u32, patience: Duration) -> bool {
    let request = request(id).to("ada");
    world.submit(&request).await.unwrap();
    let exchange = countersign_core::store::Key::new(countersign_core::store::Kind::Exchange, &request.id);
    let ring = countersign_core::notify::Ring::Record(world.tenant.clone(), exchange);
    let listener = world.gateway.listen(vec![ring]);
    let ada = approver("ada");
    let decision = decision(&request.id, id, "n", None);
    {
        let mut deciding = Box::pin(decide(&world.gateway, &world.tenant, &ada, &request.id, &decision));
        for _ in 0..polls {
            let polled =
                std::future::poll_fn(|context| std::task::Poll::Ready(deciding.as_mut().poll(context)));
            if polled.await.is_ready() {
                return false;
            }
            tokio::task::yield_now().await;
        }
    }
    let committed = async {
        while world.status(id).await.unwrap().state != ExchangeState::Decided {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    if tokio::time::timeout(patience, committed).await.is_err() {
        return false;
    }
    let heard = tokio::time::timeout(Duration::from_secs(20), listener.rung()).await;
    assert!(heard.is_ok(), "after {polls} polls the decision was committed and nobody was told");
    true
}
