//! Submitting, deciding, withdrawing, cancelling: edges, replays and refusals on a real store.

use std::time::Duration;

use countersign_core::{
    Gateway,
    delivery::change_poller::ChangePoller,
    notify::{Doorbell as _, LocalDoorbell},
};
use countersign_core::{
    model::viewer::Viewer,
    use_cases::{acknowledge::Acknowledger, wait::WaitOutcome},
};
use countersign_wire::{exchange::State, id::RequestId, refresh::RefreshBody};

use super::{
    cases,
    world::{World, approver, decide, decision, minutes, request, robot, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    a_submission_is_pending_until_it_is_decided,
    the_same_submission_again_is_a_replay,
    another_submission_under_the_same_id_conflicts,
    the_same_decision_again_is_a_replay_however_it_is_spelled,
    another_decision_conflicts_and_changes_nothing,
    a_decision_is_kept_byte_for_byte,
    a_decision_on_a_withdrawn_exchange_is_not_found,
    a_withdrawn_exchange_leaves_the_inbox_and_its_approvers_are_told,
    withdrawing_is_for_the_owner_only,
    an_exchange_past_its_time_is_written_as_expired_by_whoever_meets_it,
    a_submission_that_is_past_already_is_refused,
    a_cancelled_exchange_can_be_cancelled_again_and_nothing_else,
    an_acknowledged_decision_is_delivered_and_never_told_again,
    acknowledging_another_message_does_not_deliver,
    an_approver_outside_the_exchange_sees_nothing,
    tenants_with_the_same_ids_do_not_meet,
    a_wait_is_answered_by_the_decision,
    a_ring_that_was_lost_is_found_on_patrol,
    a_wait_on_what_ended_without_a_decision_gets_nothing,
    a_wait_on_nothing_is_not_found,
    a_decision_of_another_node_is_confirmed_before_it_is_told,
    a_refresh_reaches_the_enforcer_once_a_minute,
}

async fn a_submission_is_pending_until_it_is_decided(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let submitted = world.submit(&request("r")).await.unwrap();
    assert_eq!((submitted.accepted.state, submitted.replayed), (State::PendingApproval, false));
    assert_eq!(world.status("r").await.unwrap().state, State::PendingApproval);
    let decided = world.decide("ada", "r", "n").await.unwrap();
    assert_eq!((decided.accepted.state, decided.replayed), (State::Decided, false));
    let standing = world.status("r").await.unwrap();
    assert_eq!((standing.state, standing.created_at), (State::Decided, minutes(0)));
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
    assert_eq!(world.status("r").await.unwrap().state, State::Expired);
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

async fn a_decision_on_a_withdrawn_exchange_is_not_found(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await.unwrap();
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 404);
    let again = world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await;
    assert_eq!(status_of(&again, 200), 409);
}

async fn a_withdrawn_exchange_leaves_the_inbox_and_its_approvers_are_told(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r").to("ada")).await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Approver(approver("ada"));
    let mut feed = world.gateway.feed(&world.tenant, &reader, &[]);
    assert_eq!(feed.next().await.unwrap()[0].delivery.msg_type.as_str(), "approval.request");
    world.gateway.withdraw(&world.tenant, &robot(), &"r".parse().unwrap()).await.unwrap();
    let told = feed.next().await.unwrap();
    assert_eq!((told.len(), told[0].delivery.msg_type.as_str()), (1, "exchange.withdrawn"));
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

async fn an_exchange_past_its_time_is_written_as_expired_by_whoever_meets_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.at_minute(10).await;
    // Readers take it as expired without writing.
    assert_eq!(world.status("r").await.unwrap().state, State::Expired);
    assert!(world.inbox("ada").await.is_empty());
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 409);
    // The clock going back does not revive what was written.
    world.at_minute(5).await;
    assert_eq!(world.status("r").await.unwrap().state, State::Expired);
    assert_eq!(world.expired("ada").await, ["r"]);
}

async fn a_submission_that_is_past_already_is_refused(harness: Box<dyn StoreHarness>) {
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
        assert_eq!(cancelled.state, State::Cancelled);
    }
    assert_eq!(status_of(&world.decide("ada", "r", "n").await, 200), 409);
    assert_eq!(status_of(&world.gateway.withdraw(&world.tenant, &robot(), &id).await, 200), 409);
    assert!(world.inbox("ada").await.is_empty());
}

async fn an_acknowledged_decision_is_delivered_and_never_told_again(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Enforcer(robot());
    let told = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(told[0].delivery.msg_type.as_str(), "decision.deliver");
    let again = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(again, told, "unacknowledged, it is told anew with the same id");

    let by = Acknowledger::Enforcer(&"stranger".parse().unwrap());
    assert_eq!(status_of(&world.gateway.acknowledge(&world.tenant, by, &id, None).await, 200), 404);
    assert_eq!(world.status("r").await.unwrap().state, State::Decided);

    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id, Some(&told[0].delivery.msg_id)).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, State::Delivered);
    world.gateway.acknowledge(&world.tenant, by, &id, Some(&told[0].delivery.msg_id)).await.unwrap();
    assert!(world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap().is_empty());
}

async fn acknowledging_another_message_does_not_deliver(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id, Some(&"another".parse().unwrap())).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, State::Decided);
    world.gateway.acknowledge(&world.tenant, by, &id, None).await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, State::Delivered);
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

async fn tenants_with_the_same_ids_do_not_meet(harness: Box<dyn StoreHarness>) {
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
    while world.doorbell.listened_to().is_empty() {
        tokio::task::yield_now().await;
    }
    world.decide("ada", "r", "n").await.unwrap();
    assert!(matches!(waiting.await.unwrap().unwrap(), WaitOutcome::Decided { .. }));
    assert!(world.doorbell.listened_to().is_empty(), "a wait that is over listens to nothing");
}

async fn a_ring_that_was_lost_is_found_on_patrol(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    // Another node whose doorbell is not connected with ours.
    let elsewhere = LocalDoorbell::default();
    let node = super::world::gateway(world.harness.second_handle().await, &elsewhere, 2);
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
    while elsewhere.listened_to().len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut patrol = ChangePoller::default();
    while node.poll_changes(&mut patrol).await.unwrap() > 0 {}
    world.decide("ada", "r", "n").await.unwrap();
    assert_eq!(node.poll_changes(&mut patrol).await.unwrap(), 2, "the exchange and the mailbox");
    assert!(matches!(waiting.await.unwrap().unwrap(), WaitOutcome::Decided { .. }));
    assert_eq!(reading.await.unwrap().unwrap().len(), 1);
}

async fn a_wait_on_what_ended_without_a_decision_gets_nothing(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let pending =
        world.gateway.wait(&world.tenant, Viewer::Enforcer(&robot()), &id, Duration::ZERO).await.unwrap();
    assert_eq!(pending, WaitOutcome::NotDecided { state: State::PendingApproval });
    world.gateway.withdraw(&world.tenant, &robot(), &id).await.unwrap();
    let ended =
        world.gateway.wait(&world.tenant, Viewer::Enforcer(&robot()), &id, Duration::ZERO).await.unwrap();
    assert_eq!(ended, WaitOutcome::NotDecided { state: State::Withdrawn });
}

async fn a_wait_on_nothing_is_not_found(harness: Box<dyn StoreHarness>) {
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

async fn a_decision_of_another_node_is_confirmed_before_it_is_told(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let recording = crate::recording::Recording::new(world.harness.store());
    let other = super::world::gateway(recording.clone(), &world.doorbell, 2);
    let (enforcer, id): (_, RequestId) = (robot(), "r".parse().unwrap());
    world.submit(&request("r").to("ada")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    let wait = async |gateway: &Gateway| {
        gateway.wait(&world.tenant, Viewer::Enforcer(&enforcer), &id, Duration::ZERO).await.unwrap()
    };
    let confirms = || {
        let changes = recording.take();
        assert!(changes.iter().all(|change| change.puts.is_empty() && change.guards.len() == 1));
        changes.len()
    };
    // The node that took it in knows.
    assert!(matches!(wait(&world.gateway).await, WaitOutcome::Decided { .. }));
    // Another one asks the store once, however often and over whatever it tells.
    assert!(matches!(wait(&other).await, WaitOutcome::Decided { .. }));
    assert_eq!(confirms(), 1);
    assert!(matches!(wait(&other).await, WaitOutcome::Decided { .. }));
    other.status(&world.tenant, Viewer::Enforcer(&enforcer), &id).await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Enforcer(enforcer.clone());
    let told = other.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    other.message(&world.tenant, &told[0].delivery).await.unwrap().unwrap();
    assert_eq!(confirms(), 0);
    let third = super::world::gateway(recording.clone(), &world.doorbell, 3);
    third.message(&world.tenant, &told[0].delivery).await.unwrap().unwrap();
    assert_eq!(confirms(), 1);
    let fourth = super::world::gateway(recording.clone(), &world.doorbell, 4);
    fourth.status(&world.tenant, Viewer::Enforcer(&enforcer), &id).await.unwrap();
    assert_eq!(confirms(), 1);
}

async fn a_refresh_reaches_the_enforcer_once_a_minute(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (ada, id): (_, RequestId) = (approver("ada"), "r".parse().unwrap());
    world.submit(&request("r")).await.unwrap();
    let refresh = async || world.gateway.refresh(&world.tenant, &ada, &id, &RefreshBody::default()).await;
    let told =
        async || world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap().len() - 1;
    refresh().await.unwrap();
    refresh().await.unwrap();
    assert_eq!(told().await, 1);
    let first = world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap();
    world.at_minute(1).await;
    refresh().await.unwrap();
    assert_eq!(told().await, 1, "what was not heard yet is said anew, not twice");
    assert_ne!(world.gateway.store().deliveries_by_subject(&world.tenant, "r").await.unwrap(), first);
    let unknown =
        world.gateway.refresh(&world.tenant, &ada, &"x".parse().unwrap(), &RefreshBody::default()).await;
    assert_eq!(status_of(&unknown, 202), 404);
}
