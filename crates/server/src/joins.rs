//! Joining with an invitation, and how much of the store those may use who can't.

use std::{collections::HashSet, time::Duration};

use countersign_core::{
    Error, Gateway,
    use_cases::{
        credentials::NewKey,
        join::{Described, JoinOutcome},
    },
};
use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::TenantId,
    invitation::{Invitation, InvitationId},
    key_nonce::KeyNonce,
    mac::MacKey,
};
use parking_lot::Mutex;

use crate::limits::FailureBudgets;

/// Attempts with one invitation that the store may reject at once, on this node, and in which time one more.
const INVITATION_BURST: u32 = 10;
const INVITATION_INTERVAL: Duration = Duration::from_secs(1);

/// The same for all invitations of a tenant.
const TENANT_BURST: u32 = 40;
const TENANT_INTERVAL: Duration = Duration::from_millis(200);

/// Invitations that are known to be invalid for good.
const MAX_INVALID: usize = 10_000;

/// Nobody needs a credential to join, so every attempt is a stranger's. One with an invitation that the gateway did not
/// make costs no read, and one with an invitation that is used up costs one. The rest have a budget for each invitation
/// and each tenant: whoever has a valid invitation waits only while others of the same tenant fail.
#[derive(Debug)]
pub(crate) struct Joins {
    gateway: Gateway,
    mac_key: MacKey,
    of_invitation: FailureBudgets<InvitationId>,
    of_tenant: FailureBudgets<TenantId>,
    /// Hashes of the secrets of invitations that can never be used again.
    invalid: Mutex<HashSet<Sha256Hex>>,
}

impl Joins {
    pub(crate) fn new(gateway: Gateway, mac_key: MacKey) -> Self {
        let of_invitation = FailureBudgets::new(INVITATION_BURST, INVITATION_INTERVAL);
        let of_tenant = FailureBudgets::new(TENANT_BURST, TENANT_INTERVAL);
        Self { gateway, mac_key, of_invitation, of_tenant, invalid: Mutex::default() }
    }

    /// The key for an invitation. Why there is none is not said: whoever has no valid invitation learns nothing from it.
    pub(crate) async fn join(&self, invitation: &str, nonce: &KeyNonce) -> Result<NewKey, Error> {
        let (invitation, hash) = self.possible(invitation)?;
        self.take(&invitation).map_err(Error::RateLimited)?;
        match self.gateway.join(&invitation, nonce, &self.mac_key).await {
            Ok(JoinOutcome::Joined(key)) => {
                self.give_back(&invitation);
                Ok(key)
            }
            Ok(JoinOutcome::Taken) => Err(Failure::NotFound.into()),
            Ok(JoinOutcome::Invalid) => {
                self.remember_invalid(hash);
                Err(Failure::NotFound.into())
            }
            // That the store failed is not the client's fault.
            Err(error) => {
                self.give_back(&invitation);
                Err(error)
            }
        }
    }

    /// What an invitation is for, for whoever has it. Costs as much as joining.
    pub(crate) async fn describe(&self, invitation: &str) -> Result<(TenantId, Described), Error> {
        let (invitation, _) = self.possible(invitation)?;
        self.take(&invitation).map_err(Error::RateLimited)?;
        match self.gateway.describe_invitation(&invitation).await {
            Ok(Some(described)) => {
                self.give_back(&invitation);
                Ok((invitation.tenant().clone(), described))
            }
            Ok(None) => Err(Failure::NotFound.into()),
            Err(error) => {
                self.give_back(&invitation);
                Err(error)
            }
        }
    }

    /// An invitation that this gateway has made and that may be good, with the hash of its secret.
    fn possible(&self, invitation: &str) -> Result<(Invitation, Sha256Hex), Error> {
        let invitation: Invitation = invitation.parse().map_err(|_| Failure::NotFound)?;
        let hash = invitation.secret_hash();
        match !invitation.is_made_with(&self.mac_key) || self.invalid.lock().contains(&hash) {
            true => Err(Failure::NotFound.into()),
            false => Ok((invitation, hash)),
        }
    }

    /// The error is the time until another attempt may fail.
    fn take(&self, invitation: &Invitation) -> Result<(), Duration> {
        self.of_invitation.take(invitation.id())?;
        self.of_tenant
            .take(invitation.tenant())
            .inspect_err(|_| self.of_invitation.give_back(invitation.id()))
    }

    fn give_back(&self, invitation: &Invitation) {
        self.of_invitation.give_back(invitation.id());
        self.of_tenant.give_back(invitation.tenant());
    }

    /// Only invitations that the gateway has made get in, so invented ones can't fill it.
    fn remember_invalid(&self, hash: Sha256Hex) {
        let mut invalid = self.invalid.lock();
        if invalid.len() >= MAX_INVALID {
            invalid.clear();
        }
        invalid.insert(hash);
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, extract::Request, http::HeaderMap};
    use bytes::Bytes;
    use countersign_core::{model::invitation::Invitee, use_cases::invitations::InvitationSpec};
    use http_body_util::BodyExt as _;
    use serde_json::json;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{router::router, test_node::TestNode};

    const NONCE: &str = "0123456789abcdef";

    struct Fixture {
        node: TestNode,
        router: Router,
    }

    impl Fixture {
        fn new() -> Self {
            let node = TestNode::new();
            let router = router(node.app.clone());
            Self { node, router }
        }

        async fn invite(&self) -> Invitation {
            let invitee = Invitee::Approver("ada".parse().unwrap());
            let spec = InvitationSpec { invitee, label: None, life: Duration::from_mins(1) };
            self.node
                .app
                .gateway
                .invite(&self.node.tenant, spec, &self.node.app.mac_key)
                .await
                .unwrap()
                .invitation
        }

        async fn join(&self, invitation: &str, nonce: &str) -> (u16, HeaderMap, Bytes) {
            let body = json!({ "invitation": invitation, "nonce": nonce }).to_string();
            let request =
                Request::post("/platform/v1/join").header("host", "g").body(Body::from(body)).unwrap();
            let (mut parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
            assert!(parts.headers.remove("x-request-id").is_some());
            (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
        }
    }

    #[tokio::test]
    async fn three_thousand_forged_invitations_cost_the_store_nothing_and_look_like_any_invalid_one() {
        let fixture = Fixture::new();
        let real = fixture.invite().await;
        let any_invalid = fixture.join("nonsense", NONCE).await;
        assert_eq!(any_invalid.0, 404);
        let (made, other_mac) = (real.expose(), MacKey::new([1; 32]));
        let before = fixture.node.store.calls();
        for number in 0..1_000 {
            let ulid = format!("01J2V8V3K6B2Z9X6G1V{number:07}");
            let invented = Invitation::new(fixture.node.tenant.clone(), &ulid, [0; 32], &other_mac).unwrap();
            // Its id is known to whoever may list invitations, and is no secret.
            let listed = format!("{}{number:064x}", &made[..made.len() - 64]);
            let elsewhere = made.replacen("acme", &format!("t{number}"), 1);
            for forged in [invented.expose(), listed, elsewhere] {
                assert_eq!(fixture.join(&forged, NONCE).await, any_invalid, "{forged}");
            }
        }
        assert_eq!(fixture.node.store.calls(), before);
        assert_eq!(fixture.join(&made, NONCE).await.0, 201);
        assert!(fixture.node.store.calls() > before, "calls are counted");
    }

    #[tokio::test]
    async fn an_invitation_that_is_used_up_costs_one_read_and_keeps_nobody_from_joining() {
        let fixture = Fixture::new();
        let old = fixture.invite().await;
        fixture.node.app.gateway.revoke_invitation(&fixture.node.tenant, old.id()).await.unwrap();
        let before = fixture.node.store.calls();
        for _ in 0..1_000 {
            assert_eq!(fixture.join(&old.expose(), NONCE).await.0, 404);
        }
        assert_eq!(fixture.node.store.calls(), before + 1);
        assert_eq!(fixture.join(&fixture.invite().await.expose(), NONCE).await.0, 201);
    }

    #[tokio::test]
    async fn a_thousand_guesses_at_the_nonce_cost_the_store_at_most_fifty_reads() {
        let fixture = Fixture::new();
        let invitation = fixture.invite().await.expose();
        assert_eq!(fixture.join(&invitation, NONCE).await.0, 201);
        let before = fixture.node.store.calls();
        let mut limited = 0;
        for number in 0..1_000 {
            match fixture.join(&invitation, &format!("{number:016}")).await {
                (404, ..) => {}
                (429, headers, _) => {
                    assert_eq!(headers["retry-after"], "1");
                    limited += 1;
                }
                (status, ..) => panic!("{status}"),
            }
        }
        let cost = fixture.node.store.calls() - before;
        assert!(
            (u64::from(INVITATION_BURST)..=50).contains(&cost) && limited > 900,
            "{cost} calls, {limited}"
        );
    }

    #[tokio::test]
    async fn whoever_guesses_at_one_tenants_invitation_keeps_nobody_of_another_from_joining() {
        let fixture = Fixture::new();
        for _ in 0..3 {
            let invitation = fixture.invite().await.expose();
            assert_eq!(fixture.join(&invitation, NONCE).await.0, 201);
            while fixture.join(&invitation, "another-nonce-16").await.0 != 429 {}
        }
        let mut other = fixture;
        other.node.tenant = "other".parse().unwrap();
        for _ in 0..20 {
            assert_eq!(other.join(&other.invite().await.expose(), NONCE).await.0, 201);
        }
    }

    #[tokio::test]
    async fn a_store_that_fails_uses_up_no_budget() {
        let fixture = Fixture::new();
        let invitation = fixture.invite().await.expose();
        fixture.node.store.set_loads_fail(true);
        for _ in 0..INVITATION_BURST * 2 {
            assert_eq!(fixture.join(&invitation, NONCE).await.0, 503);
        }
        fixture.node.store.set_loads_fail(false);
        assert_eq!(fixture.join(&invitation, NONCE).await.0, 201);
    }
}
