//! Presence: how long an enforcer counts as online.

use countersign_core::use_cases::presence::SelfDescription;
use countersign_wire::presence::{Status, Transport};

use super::{
    cases,
    world::{World, robot, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    presence_is_online_for_ten_minutes_after_a_call,
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
    let list = world.gateway.presence_list(&world.tenant).await.unwrap();
    assert_eq!((list.len(), list[0].status), (1, Status::Offline));
    let unknown = world.gateway.presence_of(&world.tenant, &"nobody".parse().unwrap()).await;
    assert_eq!(status_of(&unknown, 200), 404);
}
