//! API keys: authentication, tenant isolation, revocation and its notification.

use std::time::Duration;

use countersign_core::{model::credential::Role, use_cases::credentials::KeySpec};
use countersign_wire::{Label, api_key::ApiKey, mac::MacKey};
use tokio::time::timeout;

use super::{
    cases,
    world::{World, minutes, robot, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    a_key_is_good_until_it_is_revoked_and_only_in_its_tenant,
    listeners_of_a_key_are_notified_of_its_revocation,
    a_key_is_good_until_it_expires_by_the_stores_clock,
}

fn mac_key() -> MacKey {
    MacKey::new([7; 32])
}

async fn a_key_is_good_until_it_is_revoked_and_only_in_its_tenant(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let role = Role::Enforcer(Some(robot()));
    let made = world.gateway.create_key(&world.tenant, role.clone(), &mac_key()).await.unwrap();
    let good = async |key: &ApiKey| world.gateway.authenticate(key).await.unwrap().map(|active| active.role);
    assert_eq!(good(&made.key).await, Some(role));
    let id = made.key.key_id().clone();
    let guessed = ApiKey::new(world.tenant.clone(), id.clone(), [0; 32]).unwrap();
    assert_eq!(good(&guessed).await, None);
    let text = made.key.expose();
    assert!(
        !format!("{:?}", world.gateway.keys(&world.tenant).await.unwrap()).contains(&text[text.len() - 72..])
    );
    assert!(world.gateway.keys(&"other".parse().unwrap()).await.unwrap().is_empty());
    assert_eq!(status_of(&world.gateway.revoke_key(&"other".parse().unwrap(), &id).await, 200), 404);
    let at = world.gateway.revoke_key(&world.tenant, &id).await.unwrap();
    assert_eq!(world.gateway.revoke_key(&world.tenant, &id).await.unwrap(), at);
    assert_eq!(good(&made.key).await, None);
}

async fn listeners_of_a_key_are_notified_of_its_revocation(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let made = world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap();
    let key_id = made.key.key_id().clone();
    let listener = world.gateway.listen_to_key(&world.tenant, key_id.as_str());
    assert!(world.gateway.active_key(&world.tenant, key_id.as_str()).await.unwrap().is_some());
    assert!(timeout(Duration::from_millis(50), listener.rung()).await.is_err());
    world.gateway.revoke_key(&world.tenant, &key_id).await.unwrap();
    timeout(Duration::from_secs(5), listener.rung()).await.unwrap();
    assert!(world.gateway.active_key(&world.tenant, key_id.as_str()).await.unwrap().is_none());
}

async fn a_key_is_good_until_it_expires_by_the_stores_clock(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let label: Label = "build server".parse().unwrap();
    let spec = KeySpec { role: Role::Operator, label: Some(label.clone()), expires_at: Some(minutes(10)) };
    let made = world.gateway.create_key(&world.tenant, spec.clone(), &mac_key()).await.unwrap();
    let (key_id, listed) = world.gateway.keys(&world.tenant).await.unwrap().remove(0);
    assert_eq!((listed.expires_at, listed.label), (Some(minutes(10)), Some(label)));
    world.at_minute(4).await;
    let active = world.gateway.authenticate(&made.key).await.unwrap().unwrap();
    let left = active.expires_in.unwrap();
    assert!(left <= Duration::from_mins(6) && left > Duration::from_mins(5), "{left:?}");
    assert_eq!(
        world.gateway.active_key(&world.tenant, key_id.as_str()).await.unwrap().unwrap().role,
        spec.role
    );
    world.at_minute(10).await;
    assert_eq!(world.gateway.authenticate(&made.key).await.unwrap(), None);
    assert_eq!(world.gateway.active_key(&world.tenant, key_id.as_str()).await.unwrap(), None);
    let late = world.gateway.create_key(&world.tenant, spec, &mac_key()).await;
    assert_eq!(status_of(&late, 201), 400);
}
