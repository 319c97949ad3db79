//! Invitations: made, listed, revoked, deleted when they have expired.

use std::time::Duration;

use countersign_core::{
    model::invitation::{Invitee, MAX_INVITATION_LIFE},
    store::{Key, Kind},
    use_cases::invitations::{InvitationSpec, NewInvitation},
};
use countersign_wire::mac::MacKey;

use super::{
    cases,
    world::{World, approver, minutes, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    an_invitation_is_listed_and_revoked_in_its_tenant_only,
    an_invitation_is_stored_as_a_hash,
    an_invitation_lives_for_a_week_at_most,
    an_invitation_is_deleted_when_it_has_expired,
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

async fn an_invitation_is_listed_and_revoked_in_its_tenant_only(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(0).await;
    let made = invite(&world, 10).await;
    let id = made.invitation.id();
    let other = "other".parse().unwrap();
    let [(listed, stored)] =
        <[_; 1]>::try_from(world.gateway.invitations(&world.tenant).await.unwrap()).unwrap();
    assert_eq!((&listed, stored.revoked_at), (id, None));
    assert_eq!(stored.invitee, Invitee::Approver(approver("ada")));
    assert!(world.gateway.invitations(&other).await.unwrap().is_empty());
    assert_eq!(status_of(&world.gateway.revoke_invitation(&other, id).await, 200), 404);
    let at = world.gateway.revoke_invitation(&world.tenant, id).await.unwrap();
    world.at_minute(1).await;
    assert_eq!(world.gateway.revoke_invitation(&world.tenant, id).await.unwrap(), at);
    assert_eq!(world.gateway.invitations(&world.tenant).await.unwrap()[0].1.revoked_at, Some(at));
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
    assert_eq!(world.gateway.invitations(&world.tenant).await.unwrap().len(), 1, "also before it is swept");
    let revoked = world.gateway.revoke_invitation(&world.tenant, short.invitation.id()).await;
    assert_eq!(status_of(&revoked, 200), 404);
    world.harness.set_now(minutes(12)).await;
    world.gateway.sweep().await.unwrap();
    let keys = [&short, &long].map(|made| Key::new(Kind::Invitation, made.invitation.id()));
    let loaded = world.harness.store().load(&world.tenant, &keys).await.unwrap();
    assert_eq!(loaded.records.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
}
