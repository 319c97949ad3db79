//! A gateway on a store under test, and helpers for what clients do.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    Error, Gateway,
    model::viewer::Viewer,
    notify::LocalDoorbell,
    random::RandomSource,
    retention::Retention,
    store::Store,
    use_cases::{
        decide::DecisionSubmission,
        inbox::{Item, List, Position},
        status::ExchangeSnapshot,
        submit::{Submission, Submitted},
    },
};
use countersign_wire::{
    ack::MessageAck,
    api_key::KeyId,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    keys::SigningKey,
    parse,
    timestamp::Timestamp,
};
use parking_lot::Mutex;

use crate::store_suite::{StoreHarness, start};

/// A random source with a seed, so that tests are reproducible.
#[derive(Debug)]
pub struct Seeded(Mutex<u64>);

impl Seeded {
    /// Different seeds give different ids.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(seed)))
    }
}

impl RandomSource for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self.0.lock();
        for byte in buffer {
            // SplitMix64.
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = *state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (mixed ^ (mixed >> 31)).to_le_bytes()[0];
        }
    }
}

/// A gateway over `store` that shares its doorbell with others of the same test.
pub fn gateway(store: Arc<dyn Store>, doorbell: &LocalDoorbell, seed: u64) -> Gateway {
    Gateway::new(store, doorbell, Seeded::new(seed), Retention::default())
}

/// One tenant on one gateway.
pub struct World {
    /// The store under test.
    pub harness: Box<dyn StoreHarness>,
    /// Shared by all gateways of the world.
    pub doorbell: LocalDoorbell,
    pub gateway: Gateway,
    /// Used by all helpers; a case may switch to another tenant.
    pub tenant: TenantId,
}

/// A request to be submitted.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: RequestId,
    pub enforcer: EnforcerId,
    /// The artifact's content; its hash is the artifact hash.
    pub about: String,
    /// The only approver who may decide; `None` for all.
    pub to: Option<ApproverId>,
    pub expires_at: Timestamp,
    /// Who is asked when; empty if nobody has to wait for their turn.
    pub turns: Vec<(ApproverId, Option<Timestamp>)>,
}

/// A request of `robot` about `id`, for all approvers, valid for ten minutes.
pub fn request(id: &str) -> Request {
    Request {
        id: id.parse().unwrap(),
        enforcer: robot(),
        about: id.to_owned(),
        to: None,
        expires_at: minutes(10),
        turns: Vec::new(),
    }
}

impl Request {
    #[must_use]
    pub fn to(self, approver: &str) -> Self {
        Self { to: Some(approver.parse().unwrap()), ..self }
    }

    /// Valid until `count` minutes after the start.
    #[must_use]
    pub fn for_minutes(self, count: u64) -> Self {
        Self { expires_at: minutes(count), ..self }
    }

    #[must_use]
    pub fn by(self, enforcer: &str) -> Self {
        Self { enforcer: enforcer.parse().unwrap(), ..self }
    }

    #[must_use]
    pub fn about(self, about: &str) -> Self {
        Self { about: about.to_owned(), ..self }
    }

    /// Asks each of these from a time on, or at once.
    #[must_use]
    pub fn in_turns(self, turns: &[(&str, Option<Timestamp>)]) -> Self {
        let turns = turns.iter().map(|(who, at)| (approver(who), *at)).collect();
        Self { turns, ..self }
    }

    fn metadata(&self) -> String {
        let turn = |(who, at): &(ApproverId, Option<Timestamp>)| match at {
            Some(at) => format!(r#"{{"approverId":"{who}","at":"{at}"}}"#),
            None => format!(r#"{{"approverId":"{who}"}}"#),
        };
        if self.turns.is_empty() {
            return String::new();
        }
        let turns: Vec<String> = self.turns.iter().map(turn).collect();
        format!(r#","metadata":{{"org.countersign.turns":[{}]}}"#, turns.join(","))
    }

    /// The body with its spacing, which the gateway must keep byte for byte.
    pub fn body(&self) -> String {
        format!(
            r#"{{ "ciphertext":"{}", "artifactType":"command.review","artifactHash":"{}" , "expiresAt":"{}"{}}}"#,
            self.about,
            hash(&self.about),
            self.expires_at,
            self.metadata()
        )
    }
}

/// The enforcer that most cases submit as.
pub fn robot() -> EnforcerId {
    "robot".parse().unwrap()
}

pub fn approver(name: &str) -> ApproverId {
    name.parse().unwrap()
}

/// `count` minutes after the start.
pub fn minutes(count: u64) -> Timestamp {
    start().plus(Duration::from_mins(count))
}

/// The hash of what a request is about.
pub fn hash(about: &str) -> Sha256Hex {
    Sha256Hex::digest(about.as_bytes())
}

/// A decision on `about`, distinguished from others by its nonce, signed if there is a key.
pub fn decision(id: &RequestId, about: &str, nonce: &str, key: Option<&SigningKey>) -> String {
    let unsigned = format!(
        r#"{{"requestId":"{id}","artifactHashAlg":"SHA-256","artifactHash":"{}","repoRef":"repo","decision":"approve","scope":"once","expiresAt":"2030-01-01T00:00:00Z","nonce":"{nonce}","sigAlg":"Ed25519","signerKeyId":"k","signature":"unchecked"}}"#,
        hash(about)
    );
    let Some(key) = key else { return unsigned };
    let signed = parse::<countersign_wire::decision::Decision<'_>>(unsigned.as_bytes()).unwrap();
    serde_json::to_string(&signed.into_view().sign(key).unwrap()).unwrap()
}

pub async fn submit(gateway: &Gateway, tenant: &TenantId, request: &Request) -> Result<Submitted, Error> {
    let body = request.body();
    let submission = Submission {
        tenant: tenant.clone(),
        enforcer: request.enforcer.clone(),
        request_id: request.id.clone(),
        body: parse(body.as_bytes()).unwrap(),
        expires_at: None,
        recipient: request.to.clone(),
        trace: None,
        idempotency_key: None,
    };
    gateway.submit(submission).await
}

pub async fn decide(
    gateway: &Gateway,
    tenant: &TenantId,
    by: &ApproverId,
    id: &RequestId,
    decision: &str,
) -> Result<Submitted, Error> {
    decide_with(None, gateway, tenant, by, id, decision).await
}

/// As [`decide`], with a key of this id.
pub async fn decide_with(
    credential: Option<&KeyId>,
    gateway: &Gateway,
    tenant: &TenantId,
    by: &ApproverId,
    id: &RequestId,
    decision: &str,
) -> Result<Submitted, Error> {
    let decision = parse(decision.as_bytes()).unwrap();
    let submission = DecisionSubmission {
        tenant: tenant.clone(),
        approver: by.clone(),
        request_id: id.clone(),
        decision,
        idempotency_key: None,
        credential: credential.map(|key_id| key_id.as_str().into()),
    };
    gateway.decide(submission).await
}

impl World {
    /// A tenant `acme` on an empty store.
    pub fn new(harness: Box<dyn StoreHarness>) -> Self {
        let doorbell = LocalDoorbell::default();
        let gateway = gateway(harness.store(), &doorbell, 1);
        Self { harness, doorbell, gateway, tenant: "acme".parse().unwrap() }
    }

    /// Another gateway on the same data, as on another node.
    pub async fn second_gateway(&self) -> Gateway {
        gateway(self.harness.second_handle().await, &self.doorbell, 2)
    }

    /// Sets the clock to `count` minutes after the start.
    pub async fn at_minute(&self, count: u64) {
        self.harness.set_now(minutes(count)).await;
    }

    pub async fn submit(&self, request: &Request) -> Result<Submitted, Error> {
        submit(&self.gateway, &self.tenant, request).await
    }

    /// Approves a request whose content is its id.
    pub async fn decide(&self, by: &str, id: &str, nonce: &str) -> Result<Submitted, Error> {
        let id: RequestId = id.parse().unwrap();
        let decision = decision(&id, id.as_str(), nonce, None);
        decide(&self.gateway, &self.tenant, &approver(by), &id, &decision).await
    }

    /// The status of an exchange as the operator sees it.
    pub async fn status(&self, id: &str) -> Result<ExchangeSnapshot, Error> {
        self.gateway.status(&self.tenant, Viewer::Operator, &id.parse().unwrap()).await
    }

    /// All pages of an approver's list.
    pub async fn list(&self, who: &str, list: List, limit: u32) -> Vec<Item> {
        let mut items = Vec::new();
        let mut position = Some(Position::default());
        while let Some(from) = position {
            if list == List::Expired {
                self.gateway.expire_overdue(&self.tenant, &approver(who)).await.unwrap();
            }
            let page = self.gateway.inbox(&self.tenant, &approver(who), list, from, limit).await.unwrap();
            assert!(page.items.len() <= limit as usize);
            items.extend(page.items);
            position = page.next;
        }
        items
    }

    /// The ids on an approver's active list.
    pub async fn inbox(&self, who: &str) -> Vec<String> {
        ids(&self.list(who, List::Active, 50).await)
    }

    /// The ids on an approver's expired list.
    pub async fn expired(&self, who: &str) -> Vec<String> {
        ids(&self.list(who, List::Expired, 50).await)
    }
}

fn ids(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.request_id.to_string()).collect()
}

/// The HTTP status of an outcome, with `success` for what succeeded.
pub fn status_of<T>(outcome: &Result<T, Error>, success: u16) -> u16 {
    match outcome {
        Ok(_) => success,
        Err(error) => error.failure().status(),
    }
}

/// An acknowledgement of one message.
pub fn ack_of(msg_id: &MsgId) -> MessageAck {
    MessageAck { msg_id: Some(msg_id.clone()), ..MessageAck::default() }
}
