//! What API keys are for, and which of them are worth a read from the store.

use std::time::Duration;

use countersign_core::{
    Error, Gateway,
    model::credential::{ActiveKey, CertificateSpec, Role},
    use_cases::credentials::Recognized,
};
use countersign_wire::{
    api_key::{ApiKey, MacCheck},
    failure::Failure,
    mac::MacKey,
};
use tokio::time::Instant;

use crate::limits::FailureBudget;

/// Keys without a MAC, made before there was one, that the store may reject at once, on this node.
const UNMARKED_BURST: u32 = 20;

/// In which one more such key may be rejected.
const UNMARKED_INTERVAL: Duration = Duration::from_millis(200);

/// Checks keys, by what the node knows of them or by a read.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    gateway: Gateway,
    mac_key: MacKey,
    /// Shared by all keys without a MAC, which anybody can invent.
    unmarked: FailureBudget,
}

/// An active key, as the store described it a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedKey {
    pub(crate) role: Role,
    /// When it expires, on this process's clock; `None` if it does not. The store said how long it is still valid, so a
    /// node whose clock is wrong is right about it.
    pub(crate) expires: Option<Instant>,
}

impl CheckedKey {
    /// `asked` is when the store was asked: it was asked before it looked at its clock, so this is never too late.
    pub(crate) fn new(active: ActiveKey, asked: Instant) -> Self {
        Self { role: active.role, expires: active.expires_in.and_then(|left| asked.checked_add(left)) }
    }
}

impl ApiKeys {
    pub(crate) fn new(gateway: Gateway, mac_key: MacKey) -> Self {
        let unmarked = FailureBudget::new(UNMARKED_BURST, UNMARKED_INTERVAL);
        Self { gateway, mac_key, unmarked }
    }

    /// What a key is for; `None` if it is unknown, wrong or revoked, or has expired. A key that the gateway did not make
    /// costs no read.
    pub(crate) async fn active(&self, key: &ApiKey) -> Result<Option<CheckedKey>, Error> {
        let mac = key.check_mac(&self.mac_key);
        if mac == MacCheck::Invalid {
            return Ok(None);
        }
        let asked = Instant::now();
        let active = match (self.gateway.recognize(key), mac) {
            (Recognized::Lately(active), _) => active,
            (Recognized::Suspended, _) => return Err(Failure::Forbidden.into()),
            // Who presents a key that was good before has not invented it.
            (Recognized::Before, _) | (Recognized::Unknown, MacCheck::Valid) => {
                self.gateway.authenticate(key).await?
            }
            (Recognized::Unknown, _) => self.active_unmarked(key).await?,
        };
        Ok(active.map(|active| CheckedKey::new(active, asked)))
    }

    /// What a certificate that an authority vouches for is for; `None` if it is revoked or has expired.
    pub(crate) async fn active_certificate(
        &self,
        certificate: &CertificateSpec,
    ) -> Result<Option<CheckedKey>, Error> {
        let asked = Instant::now();
        let active = match self.gateway.recognize_certificate(certificate) {
            Recognized::Lately(Some(active)) => Some(active),
            Recognized::Suspended => return Err(Failure::Forbidden.into()),
            _ => self.gateway.authenticate_certificate(certificate).await?,
        };
        Ok(active.map(|active| CheckedKey::new(active, asked)))
    }

    async fn active_unmarked(&self, key: &ApiKey) -> Result<Option<ActiveKey>, Error> {
        self.unmarked.take().map_err(Error::RateLimited)?;
        let active = self.gateway.authenticate(key).await;
        if !matches!(active, Ok(None)) {
            self.unmarked.give_back();
        }
        active
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, extract::Request, http::HeaderMap};
    use bytes::Bytes;
    use countersign_core::{
        model::credential::Credential,
        store::{Change, Key, Kind, Put, Store as _},
        use_cases::credentials::KeySpec,
    };
    use countersign_wire::{api_key::KeyId, timestamp::Timestamp};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{router::router, test_node::TestNode};

    /// For so long the store is not asked again about a key that has not changed.
    const RECOGNIZED_FOR: Duration = Duration::from_secs(5);

    const ULID: &str = "01J2V8V3K6B2Z9X6G1V7Y2QK8H";

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

        async fn key(&self) -> ApiKey {
            self.node
                .app
                .gateway
                .create_key(&self.node.tenant, Role::Operator, &self.node.app.mac_key)
                .await
                .unwrap()
                .key
        }

        /// A key as they were made before there was a MAC.
        async fn old_key(&self, number: usize) -> ApiKey {
            let key_id = KeyId::from_ulid_text(&ulid(number));
            let key = ApiKey::new(self.node.tenant.clone(), key_id, [9; 32]).unwrap();
            let credential = Credential {
                role: Role::Operator,
                secret_hash: key.secret_hash(),
                created_at: Timestamp::from_unix_micros(0),
                revoked_at: None,
                expires_at: None,
                label: None,
                rotation: None,
                rotated_from: None,
                certificate: None,
            };
            let mut change = Change::new(self.node.tenant.clone());
            change.puts.push(Put {
                key: Key::new(Kind::Credential, key.key_id()),
                content: serde_json::to_vec(&credential).unwrap().into(),
            });
            self.node.store.commit(change).await.unwrap();
            key
        }

        async fn call(&self, path: &str, header: (&str, &str)) -> (u16, HeaderMap, Bytes) {
            let request = Request::get(path).header("host", "g").header(header.0, header.1);
            let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let (mut parts, body) = answer.into_parts();
            assert!(parts.headers.remove("x-request-id").is_some());
            (parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
        }

        async fn status(&self, key: &ApiKey) -> u16 {
            self.call("/v1/status", ("x-api-key", &key.expose())).await.0
        }

        fn forged(&self, key_id: &KeyId, number: usize) -> ApiKey {
            let mut secret = [0; 32];
            secret[..8].copy_from_slice(&number.to_be_bytes());
            ApiKey::new(self.node.tenant.clone(), key_id.clone(), secret).unwrap()
        }
    }

    fn ulid(number: usize) -> String {
        format!("01J2V8V3K6B2Z9X6G1V{number:07}")
    }

    #[tokio::test]
    async fn three_thousand_keys_with_a_forged_id_cost_the_store_nothing_and_look_like_any_bad_key() {
        let fixture = Fixture::new();
        let real = fixture.key().await;
        let other_mac = MacKey::new([1; 32]);
        let tenant = || fixture.node.tenant.clone();
        let any_bad_key = fixture.call("/v1/status", ("x-api-key", "csk_made_up")).await;
        assert_eq!(any_bad_key.0, 401);
        let before = fixture.node.store.calls();
        for number in 0..1_000 {
            for forged in [
                ApiKey::with_mac(tenant(), &ulid(number), [0; 32], &other_mac).unwrap(),
                // Its id is known to whoever may list keys, and is no secret.
                fixture.forged(real.key_id(), number),
                ApiKey::with_mac(format!("t{number}").parse().unwrap(), ULID, [0; 32], &other_mac).unwrap(),
            ] {
                let answer = fixture.call("/v1/status", ("x-api-key", &forged.expose())).await;
                assert_eq!(answer, any_bad_key);
            }
        }
        assert_eq!(fixture.node.store.calls(), before);
        assert_eq!(fixture.status(&real).await, 200);
        assert_eq!(fixture.status(&fixture.key().await).await, 200);
        assert!(fixture.node.store.calls() > before, "calls are counted");
    }

    #[tokio::test]
    async fn three_thousand_invented_keys_without_a_mac_cost_the_store_at_most_fifty_reads() {
        let fixture = Fixture::new();
        let cached = fixture.old_key(0).await;
        assert_eq!(fixture.status(&cached).await, 200);
        let before = fixture.node.store.calls();
        let mut answers = [0, 0];
        for number in 0..3_000 {
            let invented = fixture.forged(&KeyId::from_ulid_text(&ulid(1 + number)), number);
            let answer = fixture.call("/v1/status", ("x-api-key", &invented.expose())).await;
            match answer.0 {
                401 => answers[0] += 1,
                429 => {
                    assert_eq!(answer.1["retry-after"], "1");
                    answers[1] += 1;
                }
                status => panic!("{status}"),
            }
        }
        let cost = fixture.node.store.calls() - before;
        assert!((u64::from(UNMARKED_BURST)..=50).contains(&cost), "{cost} calls; 401 and 429: {answers:?}");
        // A key that was good before does not wait, also when the store has to be asked again.
        assert_eq!(fixture.status(&cached).await, 200);
        tokio::time::sleep(RECOGNIZED_FOR).await;
        let before = fixture.node.store.calls();
        assert_eq!(fixture.status(&cached).await, 200);
        assert_eq!(fixture.node.store.calls(), before + 1);
        // With a MAC nobody waits.
        assert_eq!(fixture.status(&fixture.key().await).await, 200);
    }

    #[tokio::test]
    async fn keys_without_a_mac_work_however_many_there_are_until_they_are_revoked() {
        let fixture = Fixture::new();
        let mut old = Vec::new();
        for number in 0..UNMARKED_BURST as usize * 3 {
            old.push(fixture.old_key(number).await);
        }
        for key in &old {
            assert_eq!(fixture.status(key).await, 200);
        }
        fixture.node.app.gateway.revoke_key(&fixture.node.tenant, old[0].key_id()).await.unwrap();
        assert_eq!(fixture.status(&old[0]).await, 401);
        assert_eq!(fixture.status(&old[1]).await, 200);
    }

    #[tokio::test]
    async fn a_revoked_key_costs_a_read_now_and_then_and_not_with_each_request() {
        let fixture = Fixture::new();
        let key = fixture.key().await;
        fixture.node.app.gateway.revoke_key(&fixture.node.tenant, key.key_id()).await.unwrap();
        let before = fixture.node.store.calls();
        for _ in 0..1_000 {
            assert_eq!(fixture.status(&key).await, 401);
        }
        let cost = fixture.node.store.calls() - before;
        assert!(cost <= 10, "{cost}");
    }

    #[tokio::test]
    async fn an_expired_key_is_refused_on_time_although_it_was_cached() {
        let fixture = Fixture::new();
        // Shorter than it may be cached, or the store would be asked again anyway.
        let valid = RECOGNIZED_FOR * 4 / 5;
        let started = Instant::now();
        let expires_at = Some(fixture.node.store.now().await.unwrap().plus(valid));
        let spec = KeySpec { expires_at, ..Role::Operator.into() };
        let made = fixture
            .node
            .app
            .gateway
            .create_key(&fixture.node.tenant, spec, &fixture.node.app.mac_key)
            .await
            .unwrap();
        assert_eq!(fixture.status(&made.key).await, 200);
        let mut expires = started;
        while let Some(active) = fixture.node.app.keys.active(&made.key).await.unwrap() {
            // At the end of what is cached the store is asked, which may say that a moment is left.
            assert!(active.expires > Some(expires), "it is valid for as long as it is cached");
            expires = active.expires.unwrap();
            tokio::time::sleep_until(expires).await;
        }
        assert_eq!(fixture.status(&made.key).await, 401);
        assert!(started.elapsed() + Duration::from_millis(50) > valid, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn three_thousand_forged_tickets_cost_the_store_nothing() {
        let fixture = Fixture::new();
        let (gateway, mac_key) = (&fixture.node.app.gateway, &fixture.node.app.mac_key);
        let principal = fixture.key().await.key_id().to_string();
        let made = gateway.create_ticket(&fixture.node.tenant, Role::Approver(None), principal, mac_key);
        let (ticket, _) = made.await.unwrap();
        let before = fixture.node.store.calls();
        for number in 0..3_000 {
            let forged = format!("ticket.acme.{number:064x}{}", &ticket[ticket.len() - 16..]);
            let answer = fixture.call("/v1/ws", ("sec-websocket-protocol", &forged)).await;
            assert_eq!(answer.0, 401);
        }
        assert_eq!(fixture.node.store.calls(), before);
        assert!(gateway.redeem_ticket(&ticket, mac_key).await.unwrap().is_some());
    }
}
