//! Invitations: made, listed, revoked, traded for a key, deleted when they have expired.

use std::time::Duration;

use countersign_core::{
    model::{
        credential::Role,
        invitation::{Invitee, MAX_INVITATION_LIFE},
    },
    store::{Key, Kind},
    use_cases::{
        credentials::NewKey,
        invitations::{InvitationSpec, NewInvitation},
        join::JoinOutcome,
    },
};
use countersign_wire::{invitation::Invitation, key_nonce::KeyNonce, mac::MacKey};

use super::world::{World, approver, minutes, status_of};
use crate::store_suite::{StoreHarness, cases};

cases! {
    an_invitation_is_listed_and_revoked_in_its_tenant_only,
    an_invitation_is_stored_as_a_hash,
    an_invitation_lives_for_a_week_at_most,
    an_invitation_is_deleted_when_it_has_expired,
    an_invitation_is_good_for_one_key,
    the_same_nonce_gets_the_same_key_for_a_minute,
    who_joins_in_the_last_moment_can_still_ask_again,
    an_invitation_that_is_revoked_expired_unknown_or_of_another_tenant_is_invalid,
    a_key_outlives_the_revocation_of_its_invitation,
}

pub(super) fn mac_key() -> MacKey {
    MacKey::new([7; 32])
}

/// Invites ada, for so many minutes.
pub(super) async fn invite(world: &World, life: u64) -> NewInvitation {
    let spec = InvitationSpec {
        invitee: Invitee::Approver(approver("ada")),
        label: Some("phone".parse().unwrap()),
        life: Duration::from_mins(life),
    };
    world.gateway.invite(&world.tenant, spec, &mac_key()).await.unwrap()
}

pub(super) fn nonce(text: &str) -> KeyNonce {
    format!("{text:0>16}").parse().unwrap()
}

/// The key; `None` if the invitation is taken or invalid.
async fn join(world: &World, made: &NewInvitation, with: &str) -> Option<NewKey> {
    match world.gateway.join(&made.invitation, &nonce(with), &mac_key()).await.unwrap() {
        JoinOutcome::Joined(key) => Some(key),
        JoinOutcome::Taken | JoinOutcome::Invalid => None,
    }
}

async fn an_invitation_is_listed_and_revoked_in_its_tenant_only(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let made = invite(&world, 10).await;
    let id = made.invitation.id();
    let other = "other".parse().unwrap();
    let [(listed, stored)] =
        <[_; 1]>::try_from(world.gateway.invitations(&world.tenant, None, 100).await.unwrap().items).unwrap();
    assert_eq!((&listed, stored.revoked_at), (id, None));
    assert_eq!(stored.invitee, Invitee::Approver(approver("ada")));
    assert!(world.gateway.invitations(&other, None, 100).await.unwrap().items.is_empty());
    assert_eq!(status_of(&world.gateway.revoke_invitation(&other, id).await, 200), 404);
    let at = world.gateway.revoke_invitation(&world.tenant, id).await.unwrap();
    world.at_minute(1).await;
    assert_eq!(world.gateway.revoke_invitation(&world.tenant, id).await.unwrap(), at);
    assert_eq!(
        world.gateway.invitations(&world.tenant, None, 100).await.unwrap().items[0].1.revoked_at,
        Some(at)
    );
}

async fn an_invitation_is_stored_as_a_hash(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let text = invite(&world, 10).await.invitation.expose();
    let records = world.harness.store().scan(&world.tenant, Kind::Invitation, None, 10).await.unwrap();
    let stored = String::from_utf8(records[0].content.to_vec()).unwrap();
    assert!(stored.contains("secret_hash") && !stored.contains(&text[text.len() - 64..]), "{stored}");
}

async fn an_invitation_lives_for_a_week_at_most(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let invitee = Invitee::Approver(approver("ada"));
    for life in [Duration::ZERO, MAX_INVITATION_LIFE + Duration::from_secs(1)] {
        let spec = InvitationSpec { invitee: invitee.clone(), label: None, life };
        let made = world.gateway.invite(&world.tenant, spec, &mac_key()).await;
        assert_eq!(status_of(&made, 201), 400, "{life:?}");
    }
}

async fn an_invitation_is_deleted_when_it_has_expired(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let (short, long) = (invite(&world, 10).await, invite(&world, 60).await);
    world.gateway.revoke_invitation(&world.tenant, short.invitation.id()).await.unwrap();
    world.at_minute(11).await;
    assert_eq!(
        world.gateway.invitations(&world.tenant, None, 100).await.unwrap().items.len(),
        1,
        "also before it is swept"
    );
    let revoked = world.gateway.revoke_invitation(&world.tenant, short.invitation.id()).await;
    assert_eq!(status_of(&revoked, 200), 404);
    world.harness.set_now(minutes(12)).await;
    world.gateway.sweep().await.unwrap();
    let keys = [&short, &long].map(|made| Key::new(Kind::Invitation, made.invitation.id()));
    let loaded = world.harness.store().load(&world.tenant, &keys).await.unwrap();
    assert_eq!(loaded.records.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
}

async fn an_invitation_is_good_for_one_key(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let made = invite(&world, 10).await;
    let key = join(&world, &made, "a").await.unwrap();
    assert_eq!(key.spec.label, Some("phone".parse().unwrap()));
    assert_eq!(key.key.tenant(), &world.tenant);
    let active = world.gateway.authenticate(&key.key).await.unwrap().unwrap();
    assert_eq!((active.role, active.expires_in), (Role::Approver(Some(approver("ada"))), None));
    assert!(join(&world, &made, "b").await.is_none());
    assert_eq!(world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.len(), 1);
    let (_, listed) = world.gateway.invitations(&world.tenant, None, 100).await.unwrap().items.remove(0);
    assert_eq!(listed.used.unwrap().key_id, key.key.key_id().as_str());
}

async fn the_same_nonce_gets_the_same_key_for_a_minute(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let made = invite(&world, 10).await;
    let first = join(&world, &made, "a").await.unwrap();
    world.harness.set_now(minutes(1).minus(Duration::from_secs(5))).await;
    let second = world.second_gateway().await;
    match second.join(&made.invitation, &nonce("a"), &mac_key()).await.unwrap() {
        JoinOutcome::Joined(again) => assert_eq!(again.key, first.key, "on another node too"),
        other => panic!("{other:?}"),
    }
    let other = world.gateway.join(&made.invitation, &nonce("b"), &mac_key()).await.unwrap();
    assert!(matches!(other, JoinOutcome::Taken), "{other:?}");
    world.harness.set_now(minutes(1).plus(Duration::from_secs(5))).await;
    for with in ["a", "b"] {
        let late = world.gateway.join(&made.invitation, &nonce(with), &mac_key()).await.unwrap();
        assert!(matches!(late, JoinOutcome::Invalid), "{late:?}");
    }
    assert_eq!(world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.len(), 1);
}

async fn who_joins_in_the_last_moment_can_still_ask_again(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let made = invite(&world, 10).await;
    world.harness.set_now(minutes(10).minus(Duration::from_secs(5))).await;
    let first = join(&world, &made, "a").await.unwrap();
    world.harness.set_now(minutes(10).plus(Duration::from_secs(30))).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(join(&world, &made, "a").await.unwrap().key, first.key);
}

async fn an_invitation_that_is_revoked_expired_unknown_or_of_another_tenant_is_invalid(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let (revoked, used, expired) =
        (invite(&world, 10).await, invite(&world, 10).await, invite(&world, 2).await);
    join(&world, &used, "a").await.unwrap();
    for made in [&revoked, &used] {
        world.gateway.revoke_invitation(&world.tenant, made.invitation.id()).await.unwrap();
    }
    let ulid = &expired.invitation.id().as_str()[..26];
    let elsewhere = |tenant: &str, secret| {
        Invitation::new(tenant.parse().unwrap(), ulid, [secret; 32], &mac_key()).unwrap()
    };
    world.at_minute(2).await;
    for invitation in [
        &revoked.invitation,
        &used.invitation,
        &expired.invitation,
        // As a forger with the gateway's key would make them.
        &elsewhere("other", 1),
        &elsewhere(world.tenant.as_str(), 1),
    ] {
        let outcome = world.gateway.join(invitation, &nonce("a"), &mac_key()).await.unwrap();
        assert!(matches!(outcome, JoinOutcome::Invalid), "{invitation:?} {outcome:?}");
    }
    assert_eq!(world.gateway.keys(&world.tenant, None, 100).await.unwrap().items.len(), 1);
}

async fn a_key_outlives_the_revocation_of_its_invitation(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let made = invite(&world, 10).await;
    let key = join(&world, &made, "a").await.unwrap().key;
    world.gateway.revoke_invitation(&world.tenant, made.invitation.id()).await.unwrap();
    assert!(world.gateway.authenticate(&key).await.unwrap().is_some());
}
