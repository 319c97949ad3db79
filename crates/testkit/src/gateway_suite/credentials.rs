//! API keys: authentication, tenant isolation, revocation and its notification.

use std::time::Duration;

use countersign_core::{
    Error,
    model::credential::Role,
    use_cases::{credentials::KeySpec, rotate::RotatedKey},
};
use countersign_wire::{Label, api_key::ApiKey};
use tokio::time::timeout;

use super::{
    invitations::{mac_key, nonce},
    world::{World, minutes, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    a_key_is_good_until_it_is_revoked_and_only_in_its_tenant,
    listeners_of_a_key_are_notified_of_its_revocation,
    a_key_is_good_until_it_expires_by_the_stores_clock,
    a_key_that_is_rotated_has_one_successor_and_ends_after_the_overlap,
    a_successor_lives_no_longer_than_the_operator_allowed,
    a_key_that_is_no_longer_good_can_not_be_rotated,
    a_successor_is_rotated_after_a_minute,
    a_chain_of_keys_is_revoked_as_a_whole_from_any_of_them,
    a_key_that_has_ended_is_deleted_after_a_while,
    keys_are_listed_page_by_page,
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
        !format!("{:?}", world.gateway.keys(&world.tenant, None, 100).await.unwrap().items)
            .contains(&text[text.len() - 72..])
    );
    assert!(world.gateway.keys(&"other".parse().unwrap(), None, 100).await.unwrap().items.is_empty());
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
    let (key_id, listed) = world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.remove(0);
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

/// Rotates a key with an overlap of so many minutes.
async fn rotate(world: &World, key: &ApiKey, with: &str, overlap: u64) -> Result<RotatedKey, Error> {
    world.gateway.rotate_key(key, &nonce(with), Duration::from_mins(overlap), &mac_key()).await
}

async fn a_key_that_is_rotated_has_one_successor_and_ends_after_the_overlap(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let role = Role::Enforcer(Some(robot()));
    let spec = KeySpec { role, label: Some("laptop".parse().unwrap()), expires_at: None };
    let old = world.gateway.create_key(&world.tenant, spec.clone(), &mac_key()).await.unwrap().key;
    let listener = world.gateway.listen_to_key(&world.tenant, old.key_id().as_str());
    let made = rotate(&world, &old, "a", 10).await.unwrap();
    timeout(Duration::from_secs(5), listener.rung()).await.expect("who holds it learns when it ends");
    assert_eq!(made.new.spec, spec);
    let good = async |key: &ApiKey| world.gateway.authenticate(key).await.unwrap();
    assert_eq!(good(&made.new.key).await.unwrap().expires_in, None);
    assert!(good(&old).await.unwrap().expires_in.unwrap() <= Duration::from_mins(10));
    let second = world.second_gateway().await;
    let again = second.rotate_key(&old, &nonce("a"), Duration::ZERO, &mac_key()).await.unwrap();
    assert_eq!((again.new.key, again.previous_expires_at), (made.new.key.clone(), made.previous_expires_at));
    assert_eq!(status_of(&rotate(&world, &old, "b", 10).await, 201), 409);
    world.at_minute(2).await;
    assert_eq!(status_of(&rotate(&world, &old, "a", 10).await, 201), 409, "for a minute, and no longer");
    world.at_minute(11).await;
    assert!(good(&old).await.is_none() && good(&made.new.key).await.is_some());
    assert_eq!(world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.len(), 2);
}

async fn a_successor_lives_no_longer_than_the_operator_allowed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let spec = KeySpec { expires_at: Some(minutes(10)), ..Role::Operator.into() };
    let old = world.gateway.create_key(&world.tenant, spec, &mac_key()).await.unwrap().key;
    let made = rotate(&world, &old, "a", 60).await.unwrap();
    assert_eq!(made.previous_expires_at, minutes(10), "never later than it had");
    assert_eq!(made.new.spec.expires_at, Some(minutes(10)));
    assert_eq!(rotate(&world, &old, "a", 60).await.unwrap().new.spec, made.new.spec);
    world.at_minute(5).await;
    let second = rotate(&world, &made.new.key, "b", 1).await.unwrap();
    assert_eq!(second.new.spec.expires_at, Some(minutes(10)));
    world.at_minute(10).await;
    for key in [&old, &made.new.key, &second.new.key] {
        assert!(world.gateway.authenticate(key).await.unwrap().is_none());
    }
}

async fn a_key_that_is_no_longer_good_can_not_be_rotated(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let make = async |expires_at| {
        let spec = KeySpec { expires_at, ..Role::Operator.into() };
        world.gateway.create_key(&world.tenant, spec, &mac_key()).await.unwrap().key
    };
    let (revoked, expired, good) = (make(None).await, make(Some(minutes(1))).await, make(None).await);
    let guessed = ApiKey::new(world.tenant.clone(), good.key_id().clone(), [0; 32]).unwrap();
    let elsewhere = ApiKey::new("other".parse().unwrap(), good.key_id().clone(), [0; 32]).unwrap();
    world.gateway.revoke_key(&world.tenant, revoked.key_id()).await.unwrap();
    world.at_minute(1).await;
    for key in [&revoked, &expired, &guessed, &elsewhere] {
        assert_eq!(status_of(&rotate(&world, key, "a", 1).await, 201), 401, "{key:?}");
    }
    assert_eq!(world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.len(), 3);
}

async fn a_successor_is_rotated_after_a_minute(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let old = world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap().key;
    let next = rotate(&world, &old, "a", 60).await.unwrap().new.key;
    assert_eq!(
        status_of(&rotate(&world, &next, "b", 60).await, 201),
        429,
        "or there would be no end of keys"
    );
    world.at_minute(2).await;
    rotate(&world, &next, "b", 60).await.unwrap();
}

async fn a_chain_of_keys_is_revoked_as_a_whole_from_any_of_them(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for named in 0..3 {
        world.at_minute(named * 10).await;
        let mut chain =
            vec![world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap().key];
        for number in 1..3 {
            world.at_minute(named * 10 + number * 2).await;
            let last = chain.last().unwrap();
            chain.push(rotate(&world, last, "a", 60).await.unwrap().new.key);
        }
        let all = world.gateway.keys(&world.tenant, None, 100).await.unwrap().items;
        let listed = |key: &ApiKey| &all.iter().find(|(id, _)| id == key.key_id()).unwrap().1;
        assert_eq!(listed(&chain[0]).rotated_from, None);
        assert_eq!(listed(&chain[2]).rotated_from.as_deref(), Some(chain[1].key_id().as_str()));
        let named = usize::try_from(named).unwrap();
        let bystander =
            world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap().key;
        world.gateway.revoke_key(&world.tenant, chain[named].key_id()).await.unwrap();
        for key in &chain {
            assert!(world.gateway.authenticate(key).await.unwrap().is_none(), "by that of number {named}");
        }
        assert!(world.gateway.authenticate(&bystander).await.unwrap().is_some());
    }
}

async fn a_key_that_has_ended_is_deleted_after_a_while(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let make = async |expires_at| {
        let spec = KeySpec { expires_at, ..Role::Operator.into() };
        world.gateway.create_key(&world.tenant, spec, &mac_key()).await.unwrap().key
    };
    let (lasting, revoked, rotated) = (make(None).await, make(None).await, make(None).await);
    let _expiring = make(Some(minutes(1))).await;
    let successor = rotate(&world, &rotated, "a", 1).await.unwrap().new.key;
    world.gateway.revoke_key(&world.tenant, revoked.key_id()).await.unwrap();
    let left = async || {
        world.gateway.sweep().await.unwrap();
        let keys = world.gateway.keys(&world.tenant, None, 100).await.unwrap().items;
        keys.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    world.at_minute(89 * 24 * 60).await;
    assert_eq!(left().await.len(), 5);
    world.at_minute(91 * 24 * 60).await;
    let mut kept = [lasting.key_id().clone(), successor.key_id().clone()];
    kept.sort();
    assert_eq!(left().await, kept);
}

async fn keys_are_listed_page_by_page(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for _ in 0..5 {
        world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap();
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.gateway.keys(&world.tenant, after.as_deref(), 2).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.into_iter().map(|(id, _)| id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let all = world.gateway.keys(&world.tenant, None, 100).await.unwrap().items;
    assert_eq!(seen, all.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
}
