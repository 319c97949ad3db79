//! The roles of API keys, cached for a few seconds, and which keys are worth a read from the store.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{Error, Gateway, model::credential::Role};
use countersign_wire::{
    api_key::{ApiKey, MacCheck},
    hash::Sha256Hex,
    mac::MacKey,
};
use tokio::time::Instant;

use crate::limits::FailureBudget;

/// A revoked key stops working everywhere within this time.
const CACHE_TTL: Duration = Duration::from_secs(5);

const MAX_CACHED_KEYS: usize = 10_000;

/// Keys without a MAC, made before there was one, that the store may reject at once, on this node.
const UNMARKED_BURST: u32 = 20;

/// In which one more such key may be rejected.
const UNMARKED_INTERVAL: Duration = Duration::from_millis(200);

/// Caches what the store said of keys, by the digest of the whole key: tenant and key id are part of what was proved.
/// Only keys that the gateway has made get in, so a flood of invented ones can't fill the memory.
#[derive(Debug)]
pub(crate) struct KeyCache {
    gateway: Gateway,
    mac_key: MacKey,
    /// Shared by all keys without a MAC, which anybody can invent.
    unmarked: FailureBudget,
    cached: Mutex<HashMap<Sha256Hex, Cached>>,
}

#[derive(Debug, Clone)]
struct Cached {
    /// `None` for a key that is revoked, which stays so. A key without a MAC is cached only while it has a role.
    role: Option<Role>,
    until: Instant,
}

impl KeyCache {
    pub(crate) fn new(gateway: Gateway, mac_key: MacKey) -> Self {
        let unmarked = FailureBudget::new(UNMARKED_BURST, UNMARKED_INTERVAL);
        Self { gateway, mac_key, unmarked, cached: Mutex::default() }
    }

    /// The role of a key; `None` if it is unknown, wrong or revoked. A key that the gateway did not make costs no read.
    pub(crate) async fn role_of(&self, key: &ApiKey) -> Result<Option<Role>, Error> {
        let digest = Sha256Hex::digest(key.expose().as_bytes());
        let known = self.cached().get(&digest).cloned();
        if let Some(Cached { role, until }) = &known
            && Instant::now() < *until
        {
            return Ok(role.clone());
        }
        let mac = key.check_mac(&self.mac_key);
        let role = match mac {
            MacCheck::Valid => self.gateway.authenticate(key).await?,
            MacCheck::Invalid => return Ok(None),
            // Who presents a key that was good before has not invented it.
            MacCheck::Absent if known.is_some() => self.gateway.authenticate(key).await?,
            MacCheck::Absent => self.role_of_unmarked(key).await?,
        };
        if role.is_some() || mac == MacCheck::Valid {
            self.insert(digest, role.clone());
        } else {
            self.cached().remove(&digest);
        }
        Ok(role)
    }

    async fn role_of_unmarked(&self, key: &ApiKey) -> Result<Option<Role>, Error> {
        self.unmarked.take().map_err(Error::RateLimited)?;
        let role = self.gateway.authenticate(key).await;
        if !matches!(role, Ok(None)) {
            self.unmarked.give_back();
        }
        role
    }

    fn insert(&self, digest: Sha256Hex, role: Option<Role>) {
        let now = Instant::now();
        let mut cached = self.cached();
        if cached.len() >= MAX_CACHED_KEYS {
            cached.retain(|_, known| now < known.until);
        }
        if cached.len() < MAX_CACHED_KEYS {
            cached.insert(digest, Cached { role, until: now + CACHE_TTL });
        }
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<Sha256Hex, Cached>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{Router, body::Body, extract::Request, http::HeaderMap};
    use bytes::Bytes;
    use countersign_core::{
        model::credential::Credential,
        notify::LocalDoorbell,
        retention::Retention,
        store::{Change, Key, Kind, Put, Store as _},
    };
    use countersign_store_sqlite::{Options, SqliteStore};
    use countersign_testkit::recording_store::RecordingStore;
    use countersign_wire::{api_key::KeyId, id::TenantId, timestamp::Timestamp};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{
        random::SystemRandom,
        router::router,
        secrets::Secrets,
        state::{AppState, Settings, SharedState},
    };

    const ULID: &str = "01J2V8V3K6B2Z9X6G1V7Y2QK8H";

    struct Fixture {
        app: SharedState,
        router: Router,
        store: Arc<RecordingStore>,
        tenant: TenantId,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let inner = SqliteStore::open(folder.path().join("db"), Options::default()).unwrap();
            let store = RecordingStore::new(Arc::new(inner));
            let doorbell = Arc::new(LocalDoorbell::default());
            let gateway = Gateway::new(store.clone(), doorbell, Arc::new(SystemRandom), Retention::default());
            let app = AppState::new(gateway, "gw".parse().unwrap(), Secrets::random(), Settings::default())
                .unwrap();
            let router = router(app.clone());
            Self { app, router, store, tenant: "acme".parse().unwrap(), _folder: folder }
        }

        async fn key(&self) -> ApiKey {
            self.app.gateway.create_key(&self.tenant, Role::Operator, &self.app.mac_key).await.unwrap().key
        }

        /// A key as they were made before there was a MAC.
        async fn old_key(&self, number: usize) -> ApiKey {
            let key_id = KeyId::from_ulid_text(&ulid(number));
            let key = ApiKey::new(self.tenant.clone(), key_id, [9; 32]).unwrap();
            let credential = Credential {
                role: Role::Operator,
                secret_hash: key.secret_hash(),
                created_at: Timestamp::from_unix_micros(0),
                revoked_at: None,
            };
            let mut change = Change::new(self.tenant.clone());
            change.puts.push(Put {
                key: Key::new(Kind::Credential, key.key_id()),
                content: serde_json::to_vec(&credential).unwrap().into(),
            });
            self.store.commit(change).await.unwrap();
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
            ApiKey::new(self.tenant.clone(), key_id.clone(), secret).unwrap()
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
        let tenant = || fixture.tenant.clone();
        let any_bad_key = fixture.call("/v1/status", ("x-api-key", "csk_made_up")).await;
        assert_eq!(any_bad_key.0, 401);
        let before = fixture.store.calls();
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
        assert_eq!(fixture.store.calls(), before);
        assert_eq!(fixture.status(&real).await, 200);
        assert!(fixture.store.calls() > before, "calls are counted");
    }

    #[tokio::test]
    async fn three_thousand_invented_keys_without_a_mac_cost_the_store_at_most_fifty_reads() {
        let fixture = Fixture::new();
        let cached = fixture.old_key(0).await;
        assert_eq!(fixture.status(&cached).await, 200);
        let before = fixture.store.calls();
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
        let cost = fixture.store.calls() - before;
        assert!((u64::from(UNMARKED_BURST)..=50).contains(&cost), "{cost} calls; 401 and 429: {answers:?}");
        // A key that was good before does not wait, also when the store has to be asked again.
        assert_eq!(fixture.status(&cached).await, 200);
        fixture.app.keys.cached().values_mut().for_each(|known| known.until = Instant::now());
        let before = fixture.store.calls();
        assert_eq!(fixture.status(&cached).await, 200);
        assert_eq!(fixture.store.calls(), before + 1);
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
        fixture.app.gateway.revoke_key(&fixture.tenant, old[0].key_id()).await.unwrap();
        fixture.app.keys.cached().clear();
        assert_eq!(fixture.status(&old[0]).await, 401);
        assert_eq!(fixture.status(&old[1]).await, 200);
    }

    #[tokio::test]
    async fn a_revoked_key_costs_a_read_now_and_then_and_not_with_each_request() {
        let fixture = Fixture::new();
        let key = fixture.key().await;
        fixture.app.gateway.revoke_key(&fixture.tenant, key.key_id()).await.unwrap();
        let before = fixture.store.calls();
        for _ in 0..1_000 {
            assert_eq!(fixture.status(&key).await, 401);
        }
        let cost = fixture.store.calls() - before;
        assert!(cost <= 10, "{cost}");
    }

    #[tokio::test]
    async fn three_thousand_forged_tickets_cost_the_store_nothing() {
        let fixture = Fixture::new();
        let (gateway, mac_key) = (&fixture.app.gateway, &fixture.app.mac_key);
        let principal = fixture.key().await.key_id().to_string();
        let made = gateway.create_ticket(&fixture.tenant, Role::Approver(None), principal, mac_key);
        let (ticket, _) = made.await.unwrap();
        let before = fixture.store.calls();
        for number in 0..3_000 {
            let forged = format!("ticket.acme.{number:064x}{}", &ticket[ticket.len() - 16..]);
            let answer = fixture.call("/v1/ws", ("sec-websocket-protocol", &forged)).await;
            assert_eq!(answer.0, 401);
        }
        assert_eq!(fixture.store.calls(), before);
        assert!(gateway.redeem_ticket(&ticket, mac_key).await.unwrap().is_some());
    }
}
