//! Presence: how long an enforcer counts as online.

use countersign_core::{model::channels::NodeId, use_cases::presence::SelfDescription};
use countersign_wire::presence::{Status, Transport};

use super::{
    cases,
    world::{World, robot, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    presence_is_online_for_ten_minutes_after_a_call,
    an_enforcer_is_offline_when_its_last_channel_closes_until_it_is_seen_again,
    the_list_has_every_enforcer_once_however_many_there_are,
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
    gateway.close_channel(tenant, &robot, first).await.unwrap();
    assert_eq!(status().await, Status::Online, "another channel is open");
    gateway.close_channel(tenant, &robot, second).await.unwrap();
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
