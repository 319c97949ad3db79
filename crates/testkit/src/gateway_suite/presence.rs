//! Presence: how long an enforcer counts as online.

use std::time::Duration;

use countersign_core::{
    Gateway,
    model::channels::{Channels, NodeId},
    store::{Change, Key, Kind, Put},
    use_cases::presence::SelfDescription,
};
use countersign_wire::{
    parse,
    presence::{Hello, Status, Transport},
};

use super::world::{World, robot, status_of};
use crate::{
    recording_store::RecordingStore,
    store_suite::{StoreHarness, cases, start},
};

cases! {
    presence_is_online_for_ten_minutes_after_a_call,
    an_enforcer_is_offline_when_its_last_channel_closes_until_it_is_seen_again,
    the_list_has_every_enforcer_once_however_many_there_are,
    an_enforcer_that_was_offline_for_thirty_days_is_forgotten,
    an_enforcer_with_an_open_channel_is_kept_however_silent_it_is,
    a_channel_that_may_or_may_not_be_open_is_closed,
    a_closed_channel_that_a_failover_brings_back_goes_with_the_next_lease,
    a_channel_is_not_taken_for_another_that_got_its_number,
    openings_of_unknown_outcome_cost_one_task_and_a_bounded_list,
    a_record_that_is_written_often_has_one_due_entry,
    an_enforcer_that_returns_when_its_record_is_deleted_is_forgotten_later,
    capabilities_are_kept_as_they_were_written,
}

async fn presence_is_online_for_ten_minutes_after_a_call(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let description =
        SelfDescription { enforcer_label: Some("Robot".parse().unwrap()), ..SelfDescription::default() };
    world.gateway.record_presence(&world.tenant, &robot(), Transport::Websocket, description).await.unwrap();
    world
        .gateway
        .record_presence(&world.tenant, &robot(), Transport::Poll, SelfDescription::default())
        .await
        .unwrap();
    let seen = world.gateway.presence_of(&world.tenant, &robot()).await.unwrap();
    assert_eq!((seen.status, seen.transport), (Status::Online, Transport::Poll));
    assert_eq!(seen.enforcer_label, Some("Robot".parse().unwrap()));
    // A call within a minute of a recorded one is not recorded, but still counts for ten minutes.
    world.at_minute(10).await;
    assert_eq!(world.gateway.presence_of(&world.tenant, &robot()).await.unwrap().status, Status::Online);
    world.at_minute(11).await;
    let list = world.gateway.presence_page(&world.tenant, None).await.unwrap().records;
    assert_eq!((list.len(), list[0].status), (1, Status::Offline));
    let unknown = world.gateway.presence_of(&world.tenant, &"nobody".parse().unwrap()).await;
    assert_eq!(status_of(&unknown, 200), 404);
}

async fn an_enforcer_is_offline_when_its_last_channel_closes_until_it_is_seen_again(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let (gateway, tenant, robot) = (&world.gateway, &world.tenant, robot());
    let node = NodeId("node".to_owned());
    gateway.renew_lease(&node).await.unwrap();
    let seen = async || {
        gateway
            .record_presence(tenant, &robot, Transport::Websocket, SelfDescription::default())
            .await
            .unwrap();
    };
    let status = async || gateway.presence_of(tenant, &robot).await.unwrap().status;
    seen().await;
    let first = gateway.open_channel(tenant, &robot, &node, Transport::Websocket).await.unwrap();
    let second = gateway.open_channel(tenant, &robot, &node, Transport::Sse).await.unwrap();
    world.at_minute(1).await;
    gateway.renew_lease(&node).await.unwrap();
    gateway.close_channel(tenant, &robot, &first).await.unwrap();
    assert_eq!(status().await, Status::Online, "another channel is open");
    gateway.close_channel(tenant, &robot, &second).await.unwrap();
    assert_eq!(status().await, Status::Offline);
    world.at_minute(2).await;
    seen().await;
    assert_eq!(status().await, Status::Online);
}

async fn the_list_has_every_enforcer_once_however_many_there_are(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for number in 0..1_203 {
        let enforcer = format!("robot-{number:04}").parse().unwrap();
        let description = SelfDescription::default();
        world.gateway.record_presence(&world.tenant, &enforcer, Transport::Poll, description).await.unwrap();
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = world.gateway.presence_page(&world.tenant, after.as_deref()).await.unwrap();
        listed.extend(page.records.into_iter().map(|record| record.enforcer_device_id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..1_203).map(|number| format!("robot-{number:04}")).collect();
    assert_eq!(listed, expected);
}

async fn at_day(world: &World, days: u64) {
    world.harness.set_now(start().plus(Duration::from_hours(24 * days))).await;
}

async fn seen(world: &World) {
    let says = SelfDescription::default();
    world.gateway.record_presence(&world.tenant, &robot(), Transport::Poll, says).await.unwrap();
}

async fn is_known(world: &World) -> bool {
    world.gateway.sweep().await.unwrap();
    world.gateway.presence_of(&world.tenant, &robot()).await.is_ok()
}

async fn an_enforcer_that_was_offline_for_thirty_days_is_forgotten(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    seen(&world).await;
    at_day(&world, 20).await;
    seen(&world).await;
    for day in [29, 31, 49] {
        at_day(&world, day).await;
        assert!(is_known(&world).await, "day {day}");
    }
    at_day(&world, 50).await;
    assert!(!is_known(&world).await);
    seen(&world).await;
    assert!(is_known(&world).await, "a new record");
    at_day(&world, 80).await;
    assert!(!is_known(&world).await);
}

async fn an_enforcer_with_an_open_channel_is_kept_however_silent_it_is(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (gateway, node) = (&world.gateway, NodeId("node".to_owned()));
    seen(&world).await;
    gateway.renew_lease(&node).await.unwrap();
    gateway.open_channel(&world.tenant, &robot(), &node, Transport::Websocket).await.unwrap();
    for day in 30..35 {
        at_day(&world, day).await;
        gateway.renew_lease(&node).await.unwrap();
        assert!(is_known(&world).await, "day {day}");
    }
    // The node dies without closing the channel.
    for (day, expected) in [(40, true), (63, true), (65, false)] {
        at_day(&world, day).await;
        assert_eq!(is_known(&world).await, expected, "day {day}");
    }
}

async fn a_channel_that_may_or_may_not_be_open_is_closed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (tenant, robot) = (&world.tenant, robot());
    let store = RecordingStore::new(world.harness.store());
    let other = super::world::gateway(store.clone(), &world.doorbell, 2);
    let gateway = &world.gateway;
    for gateway in [gateway, &other] {
        gateway.renew_lease(gateway.node()).await.unwrap();
    }
    let open = async |gateway: &Gateway| {
        gateway.open_channel(tenant, &robot, gateway.node(), Transport::Websocket).await
    };
    let first = open(gateway).await.unwrap();
    let gets_decisions = async || {
        let routing = gateway.channel_routing(tenant, &robot, gateway.node(), &first).await;
        routing.unwrap().is_some_and(|routing| routing.decisions)
    };
    store.take_committed();
    store.set_outcomes_unknown(true);
    assert_eq!(status_of(&open(&other).await, 200), 503);
    store.set_outcomes_unknown(false);
    // Its node may be closing it already, so the store is not asked which one is the newest.
    let opened = store.take_committed();
    let channels =
        opened.first().and_then(|change| change.puts.iter().find(|put| put.key.kind == Kind::Channels));
    assert!(channels.is_some(), "the store has it: {opened:?}");
    // Nobody serves it, so its node closes it.
    let closed = async {
        while !gets_decisions().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
}

async fn a_closed_channel_that_a_failover_brings_back_goes_with_the_next_lease(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let (gateway, tenant, robot) = (&world.gateway, &world.tenant, robot());
    let node = gateway.node();
    gateway.renew_lease(node).await.unwrap();
    let lost = gateway.open_channel(tenant, &robot, node, Transport::Websocket).await.unwrap();
    let store = world.harness.store();
    let key = Key::new(Kind::Channels, &robot);
    let opened =
        store.load(tenant, std::slice::from_ref(&key)).await.unwrap().records.pop().flatten().unwrap();
    gateway.close_channel(tenant, &robot, &lost).await.unwrap();
    // Its commit did not wait for a disk, so it may be undone.
    let mut undone = Change::new(tenant.clone());
    undone.puts.push(Put { key: key.clone(), content: opened.content });
    store.commit(undone).await.unwrap();
    let is_open = async || {
        let routing = gateway.channel_routing(tenant, &robot, node, &lost).await;
        routing.unwrap().is_some()
    };
    assert!(is_open().await);
    gateway.renew_lease(node).await.unwrap();
    let closed = async {
        while is_open().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
}

async fn a_channel_is_not_taken_for_another_that_got_its_number(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (gateway, tenant, robot) = (&world.gateway, &world.tenant, robot());
    let node = gateway.node();
    gateway.renew_lease(node).await.unwrap();
    let open = async || gateway.open_channel(tenant, &robot, node, Transport::Websocket).await.unwrap();
    let lost = open().await;
    // A failover undoes it, and the next one gets its number.
    let mut undone = Change::new(tenant.clone());
    undone.deletes.push(Key::new(Kind::Channels, &robot));
    world.harness.store().commit(undone).await.unwrap();
    let next = open().await;
    assert_eq!(lost.number, next.number);
    assert_eq!(gateway.channel_routing(tenant, &robot, node, &lost).await.unwrap(), None);
    gateway.close_channel(tenant, &robot, &lost).await.unwrap();
    assert!(gateway.channel_routing(tenant, &robot, node, &next).await.unwrap().is_some());
}

async fn openings_of_unknown_outcome_cost_one_task_and_a_bounded_list(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (tenant, robot) = (&world.tenant, robot());
    let store = RecordingStore::new(world.harness.store());
    let gateway = super::world::gateway(store.clone(), &world.doorbell, 2);
    gateway.renew_lease(gateway.node()).await.unwrap();
    let open = async || gateway.open_channel(tenant, &robot, gateway.node(), Transport::Websocket).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    open().await.unwrap();
    store.take_committed();
    let before = tasks();
    store.set_outcomes_unknown(true);
    for _ in 0..64 {
        assert_eq!(status_of(&open().await, 200), 503);
    }
    // A store may have a task or two of its own.
    assert!(tasks() <= before + 4, "{before} tasks became {}", tasks());
    let last_opened = |change: &Change| {
        let put = change.puts.iter().find(|put| put.key.kind == Kind::Channels);
        put.map_or(0, |put| serde_json::from_slice::<Channels>(&put.content).unwrap().last)
    };
    let opened = store.take_committed().iter().map(last_opened).max();
    // Some of them meet the task that closes, and are not written.
    assert!(
        (2..=1 + 16).contains(&opened.unwrap()),
        "what a node can't close bounds what it opens: {opened:?}"
    );
    store.set_outcomes_unknown(false);
    let again = async {
        while open().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.unwrap();
}

async fn a_record_that_is_written_often_has_one_due_entry(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = RecordingStore::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    for minute in 0..20 {
        world.at_minute(minute).await;
        seen(&world).await;
    }
    let due = || recording.take_committed().into_iter().flat_map(|change| change.due).collect::<Vec<_>>();
    let entries = due();
    assert_eq!((entries.len(), entries[0].1.kind), (1, Kind::Presence));
    at_day(&world, 30).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(due().len(), 1, "put off, once");
}

async fn an_enforcer_that_returns_when_its_record_is_deleted_is_forgotten_later(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    seen(&world).await;
    world.harness.set_now(start().plus(Duration::from_secs(30 * 86_400 - 1))).await;
    seen(&world).await;
    at_day(&world, 59).await;
    assert!(is_known(&world).await);
    at_day(&world, 60).await;
    assert!(!is_known(&world).await);
}

async fn capabilities_are_kept_as_they_were_written(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let written = r#"{"push":true,"org.example.big":12345678901234567890123,"org.example.list":[ null ]}"#;
    let hello = format!(r#"{{"msgType":"hello","capabilities":{written}}}"#);
    let capabilities = parse::<Hello>(hello.as_bytes()).unwrap().into_view().capabilities;
    let says = SelfDescription { capabilities, ..SelfDescription::default() };
    world.gateway.record_presence(&world.tenant, &robot(), Transport::Websocket, says).await.unwrap();
    seen(&world).await;
    let record = world.gateway.presence_of(&world.tenant, &robot()).await.unwrap();
    assert_eq!(serde_json::to_string(&record.capabilities).unwrap(), written);
}
