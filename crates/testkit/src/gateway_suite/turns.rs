//! People who are asked one after the other: before their turn they know nothing of a request.

use std::time::Duration;

use countersign_core::{
    Error,
    model::{notification::ChannelKind, own_record::Sealed, viewer::Viewer},
    notices::Notice,
    use_cases::notifications::ChannelSpec,
};
use countersign_wire::{Label, exchange::ExchangeState, id::RequestId, timestamp::Timestamp};

use super::world::{World, approver, minutes, request, robot, status_of};
use crate::store_suite::{StoreHarness, cases, start};

cases! {
    before_their_turn_nobody_sees_a_request,
    at_their_turn_people_are_asked_once_by_one_node_and_may_answer,
    an_answer_or_an_end_comes_before_a_turn,
    who_was_never_asked_has_nothing_that_expired,
    at_their_turn_people_are_notified_and_not_before,
    a_turn_during_an_earlier_notification_is_not_forgotten,
    turns_that_nobody_could_keep_are_refused,
    approvers_are_not_told_of_turns,
}

fn id() -> RequestId {
    "r".parse().unwrap()
}

fn phone() -> ChannelSpec {
    ChannelSpec {
        id: "phone".parse().unwrap(),
        kind: ChannelKind::WebPush,
        label: Label::new("phone"),
        host: "push.example".to_owned(),
        address: Sealed { key_id: "k".to_owned(), text: "t".to_owned() },
    }
}

async fn at_second(world: &World, count: u64) {
    world.harness.set_now(start().plus(Duration::from_secs(count))).await;
}

/// Asks ada at once, and bob after five minutes.
async fn ask(world: &World) {
    world.submit(&request("r").in_turns(&[("ada", None), ("bob", Some(minutes(5)))])).await.unwrap();
}

/// Who was asked so far, and when.
async fn asked(world: &World) -> Vec<(String, Timestamp)> {
    let progress = world.gateway.progress(&world.tenant, Viewer::Operator, &id()).await.unwrap();
    progress.approvers.into_iter().map(|it| (it.approver.to_string(), it.rung)).collect()
}

async fn before_their_turn_nobody_sees_a_request(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    ask(&world).await;
    assert_eq!((world.inbox("ada").await, world.inbox("bob").await), (vec!["r".to_owned()], vec![]));
    at_second(&world, 299).await;
    world.gateway.sweep().await.unwrap();
    let (bob, id) = (approver("bob"), id());
    let viewer = Viewer::Approver(&bob);
    let status = world.gateway.status(&world.tenant, viewer, &id).await;
    let progress = world.gateway.progress(&world.tenant, viewer, &id).await;
    let hidden = world.gateway.hide(&world.tenant, &bob, &id).await;
    let decided = world.decide("bob", "r", "n").await;
    let statuses = [
        status_of(&status, 200),
        status_of(&progress, 200),
        status_of(&hidden, 200),
        status_of(&decided, 200),
    ];
    assert_eq!(statuses, [404; 4]);
    assert_eq!(asked(&world).await, [("ada".to_owned(), minutes(0))]);
    assert_eq!(world.inbox("bob").await, Vec::<String>::new());
}

async fn at_their_turn_people_are_asked_once_by_one_node_and_may_answer(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let other = world.second_gateway().await;
    ask(&world).await;
    at_second(&world, 301).await;
    let (here, there) = tokio::join!(world.gateway.sweep(), other.sweep());
    here.unwrap();
    there.unwrap();
    assert_eq!(world.inbox("bob").await, ["r"]);
    let at = start().plus(Duration::from_secs(301));
    assert_eq!(asked(&world).await, [("ada".to_owned(), minutes(0)), ("bob".to_owned(), at)]);
    at_second(&world, 302).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(asked(&world).await[1].1, at, "it is begun once");
    world.decide("bob", "r", "n").await.unwrap();
    assert_eq!((world.inbox("ada").await, world.inbox("bob").await), (vec![], vec![]));
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Decided);
}

async fn an_answer_or_an_end_comes_before_a_turn(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for (name, is_decided) in [("decided", true), ("withdrawn", false)] {
        let turns = [("ada", None), ("bob", Some(minutes(5)))];
        world.submit(&request(name).in_turns(&turns)).await.unwrap();
        if is_decided {
            world.decide("ada", name, "n").await.unwrap();
        } else {
            world.gateway.withdraw(&world.tenant, &robot(), &name.parse().unwrap()).await.unwrap();
        }
    }
    world.at_minute(6).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(world.inbox("bob").await, Vec::<String>::new());
    let (bob, decided) = (approver("bob"), "decided".parse().unwrap());
    let status = world.gateway.status(&world.tenant, Viewer::Approver(&bob), &decided);
    assert_eq!(status_of(&status.await, 200), 404, "what others have answered is not theirs");
}

async fn who_was_never_asked_has_nothing_that_expired(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    ask(&world).await;
    // Nobody has swept since, and the time of the request is over.
    world.at_minute(11).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::Expired);
    assert_eq!((world.expired("ada").await, world.expired("bob").await), (vec!["r".to_owned()], vec![]));
}

async fn at_their_turn_people_are_notified_and_not_before(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let mut queue = world.gateway.take_notices().unwrap();
    for who in ["ada", "bob"] {
        world.gateway.set_channel(&world.tenant, &approver(who), &phone()).await.unwrap();
    }
    let notice = Notice { tenant: world.tenant.clone(), request_id: id() };
    let planned = async || {
        let plan = world.gateway.notification_plan(&notice).await.unwrap().unwrap();
        plan.to.into_iter().map(|(who, _)| who.to_string()).collect::<Vec<_>>()
    };
    ask(&world).await;
    assert_eq!(queue.next().await, Some(notice.clone()));
    assert_eq!(planned().await, ["ada"]);
    world.gateway.record_notification(&notice, &[], None).await.unwrap();
    world.at_minute(5).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(queue.next().await, Some(notice.clone()), "the node that begins a turn notifies");
    assert_eq!(planned().await, ["ada", "bob"]);
}

async fn a_turn_during_an_earlier_notification_is_not_forgotten(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let mut queue = world.gateway.take_notices().unwrap();
    world.gateway.set_channel(&world.tenant, &approver("bob"), &phone()).await.unwrap();
    let notice = Notice { tenant: world.tenant.clone(), request_id: id() };
    ask(&world).await;
    assert_eq!(queue.next().await, Some(notice.clone()));
    world.at_minute(5).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(queue.next().await, Some(notice.clone()));
    // Who has notified those before notes it now; who was to notify of the turn dies.
    world.gateway.record_notification(&notice, &[], None).await.unwrap();
    at_second(&world, 316).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(queue.next().await, Some(notice));
}

async fn turns_that_nobody_could_keep_are_refused(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let refused = async |request| {
        let answer = world.submit(&request).await;
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{answer:?}");
        assert_eq!(status_of(&answer, 202), 422);
    };
    let turns = |turns: &[(&str, Option<Timestamp>)]| request("r").in_turns(turns);
    refused(turns(&[("ada", Some(minutes(1))), ("bob", Some(minutes(2)))])).await;
    refused(turns(&[("ada", None), ("bob", Some(minutes(10)))])).await;
    refused(turns(&[("ada", None), ("ada", Some(minutes(1)))])).await;
    refused(turns(&[("ada", None), ("bob", Some(minutes(1)))]).to("ada")).await;
    let names: Vec<String> = (0..21).map(|number| format!("a{number}")).collect();
    let many: Vec<(&str, Option<Timestamp>)> = names.iter().map(|name| (name.as_str(), None)).collect();
    refused(turns(&many)).await;
    world.submit(&turns(&many[..20])).await.unwrap();
    assert_eq!(world.inbox("a19").await, ["r"]);
}

async fn approvers_are_not_told_of_turns(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    ask(&world).await;
    let items = world.list("ada", countersign_core::use_cases::inbox::List::Active, 10).await;
    let body = std::str::from_utf8(&items[0].body).unwrap();
    assert!(body.contains("metadata") && !body.contains("turns") && !body.contains("bob"), "{body}");
}
