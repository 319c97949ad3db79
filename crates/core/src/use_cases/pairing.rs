//! The four calls of pairing.

use std::time::Duration;

use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, PairingNonce, TenantId},
    pairing::{
        CompleteRequest, CompleteResponse, InitiateRequest, InitiateResponse, PairingCode, PairingStatus,
        ResolveResponse,
    },
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::Viewer;
use crate::{
    Error, Gateway,
    edges::{Actor, note},
    gateway::Attempt,
    pairing::{CODE_LIFE, PairedApprover, PairedEnforcer, Pairing, Progress, Refusal, Route},
    store::{Change, Guard, Key, Kind, Put, StoreError},
    stored::{Stored as _, unchanged},
};

/// The wrong codes of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongCodes {
    /// How many.
    pub count: u32,
    /// Until when they count.
    pub until: Timestamp,
}

/// So many may be wrong within [`WRONG_CODES_COUNT_FOR`].
const WRONG_CODES: u32 = 5;

/// For how long a principal's wrong codes are held against it, from the first.
const WRONG_CODES_COUNT_FOR: Duration = Duration::from_mins(10);

/// What is to be counted of a code.
#[derive(Clone, Copy)]
enum Code {
    Tried,
    WasRight,
}

/// Where a code leads.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CodePointer {
    nonce: PairingNonce,
}

/// A key for codes: who reads the store must not be able to try all of them.
#[derive(Clone)]
pub struct CodeKey(pub [u8; 32]);

impl std::fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CodeKey(…)")
    }
}

impl CodeKey {
    /// SHA-256 over key and code. Neither length varies, so nothing can be appended.
    fn hash(&self, code: PairingCode) -> String {
        Sha256Hex::digest(&[self.0.as_slice(), code.letters()].concat()).to_string()
    }
}

fn code_key(code_hash: &str) -> Key {
    Key::new(Kind::PairingCode, code_hash)
}

impl Gateway {
    /// An enforcer begins. It must be the one that its credential names.
    pub async fn initiate_pairing(
        &self,
        tenant: &TenantId,
        request: InitiateRequest,
        codes: &CodeKey,
    ) -> Result<InitiateResponse, Error> {
        loop {
            let now = self.store.now().await?;
            let code = PairingCode::draw(|| self.chance.byte());
            let nonce: PairingNonce = self.chance.secret().parse().map_err(|_| Failure::Internal)?;
            let expires_at = now.plus(CODE_LIFE);
            let code_hash = codes.hash(code);
            let pairing = Pairing {
                enforcer: request.enforcer_id.clone(),
                enforcer_label: request.enforcer_label.clone(),
                workspace_name: request.workspace_name.clone(),
                public_key: request.public_key.clone(),
                code_hash: code_hash.clone(),
                expires_at,
                progress: Progress::Pending,
            };
            let (key, code_key) = (Pairing::key(&nonce), code_key(&code_hash));
            let pointer = serde_json::to_vec(&CodePointer { nonce: nonce.clone() })
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let mut change = Change::new(tenant.clone());
            change.guards.extend([Guard::Absent(key.clone()), Guard::Absent(code_key.clone())]);
            change
                .puts
                .extend([pairing.put(key.clone())?, Put { key: code_key.clone(), content: pointer.into() }]);
            let actor = Actor::Enforcer(request.enforcer_id.as_str());
            change.audit.push(note(key.clone(), actor, "pairing.initiated")?);
            change.due.extend([(expires_at.plus(self.retention.idempotency), key), (expires_at, code_key)]);
            // Lost: the code is in use; draw another.
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(InitiateResponse { code, nonce, expires_at });
            }
        }
    }

    /// An approver has typed a code. The first binds the pairing to themselves. Who guesses is stopped;
    /// `principal` names the credential, whatever approver it acts as. The count is in the store, so that
    /// neither another node nor a restart forgets it.
    pub async fn resolve_pairing(
        &self,
        tenant: &TenantId,
        principal: &str,
        approver: Option<&ApproverId>,
        code: PairingCode,
        codes: &CodeKey,
    ) -> Result<ResolveResponse, Error> {
        // Counted as wrong before it is looked at: however many come at once, no more than so many are looked at.
        self.count_code(tenant, principal, Code::Tried).await?;
        let resolved = self.resolve_code(tenant, approver, code, codes).await;
        if !matches!(resolved, Err(Error::Pairing(Refusal::NotFound))) {
            self.count_code(tenant, principal, Code::WasRight).await?;
        }
        resolved
    }

    async fn count_code(&self, tenant: &TenantId, principal: &str, code: Code) -> Result<(), Error> {
        let key = WrongCodes::key(principal);
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&key)).await?;
            let known = WrongCodes::read(loaded.first())?;
            let current = known.as_ref().map(|known| known.value.clone()).filter(|it| loaded.now < it.until);
            let next = match (current, code) {
                (Some(current), Code::Tried) if current.count >= WRONG_CODES => {
                    return Err(Error::TryLater(current.until.since(loaded.now)));
                }
                (Some(current), Code::Tried) => WrongCodes { count: current.count + 1, ..current },
                (Some(current), Code::WasRight) => {
                    WrongCodes { count: current.count.saturating_sub(1), ..current }
                }
                (None, Code::Tried) => WrongCodes { count: 1, until: loaded.now.plus(WRONG_CODES_COUNT_FOR) },
                (None, Code::WasRight) => return Ok(()),
            };
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(key.clone(), known.as_ref()));
            change.due.push((next.until, key.clone()));
            change.puts.push(next.put(key.clone())?);
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(());
            }
        }
    }

    async fn resolve_code(
        &self,
        tenant: &TenantId,
        approver: Option<&ApproverId>,
        code: PairingCode,
        codes: &CodeKey,
    ) -> Result<ResolveResponse, Error> {
        let code_key = code_key(&codes.hash(code));
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&code_key)).await?;
            let Some(record) = loaded.records.into_iter().next().flatten() else {
                return Err(Refusal::NotFound.into());
            };
            let pointer: CodePointer = serde_json::from_slice(&record.content)
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let key = Pairing::key(&pointer.nonce);
            let loaded = self.store.load(tenant, std::slice::from_ref(&key)).await?;
            let Some(known) = Pairing::read(loaded.first())? else {
                return Err(Refusal::NotFound.into());
            };
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(key.clone(), Some(&known)));
            if let Some(progress) = known.value.resolve(approver, loaded.now)? {
                change.guards.push(Guard::Before(known.value.expires_at));
                let actor = Actor::Approver(approver.map_or("any", ApproverId::as_str));
                change.audit.push(note(key.clone(), actor, "pairing.resolved")?);
                change.puts.push(Pairing { progress, ..known.value.clone() }.put(key)?);
            }
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(ResolveResponse {
                    nonce: pointer.nonce,
                    enforcer_label: known.value.enforcer_label,
                    workspace_name: known.value.workspace_name,
                    public_key: known.value.public_key,
                });
            }
        }
    }

    /// An approver finishes: the pair is known, its keys are registered, and a token leads there.
    pub async fn complete_pairing(
        &self,
        tenant: &TenantId,
        request: &CompleteRequest,
    ) -> Result<CompleteResponse, Error> {
        let approver = &request.approver_id;
        let key = Pairing::key(&request.nonce);
        loop {
            let approver_key = PairedApprover::key(approver);
            let loaded = self.store.load(tenant, &[key.clone(), approver_key.clone()]).await?;
            let Some(known) = Pairing::read(loaded.records[0].as_ref())? else {
                return Err(Refusal::NotFound.into());
            };
            if let Err(refusal) = known.value.check_completion(approver, loaded.now) {
                let mut change = Change::new(tenant.clone());
                change.guards.push(unchanged(key.clone(), Some(&known)));
                self.refuse_resting_on(change, refusal).await?;
                continue;
            }
            if known.value.public_key.shares_a_key_with(&request.public_key) {
                // One key on both sides is no pair.
                let fault = countersign_wire::Error::breaks("publicKey", "is the enforcer's own");
                return Err(Error::Faulty { failure: Failure::Validation, fault });
            }
            let enforcer_key = PairedEnforcer::key(&known.value.enforcer);
            let of_enforcer = self.store.load(tenant, std::slice::from_ref(&enforcer_key)).await?;
            let known_enforcer = PairedEnforcer::read(of_enforcer.records[0].as_ref())?;
            let known_approver = PairedApprover::read(loaded.records[1].as_ref())?;
            let mut enforcer = known_enforcer.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            let mut paired = known_approver.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            if !enforcer.add(approver) || !paired.add(&known.value.enforcer, &request.public_key) {
                let fault =
                    countersign_wire::Error::breaks("approverId", "has as many pairs or keys as it may");
                return Err(Error::Faulty { failure: Failure::Validation, fault });
            }
            let routing_token = self.chance.token();
            let progress = Progress::Completed {
                approver: approver.clone(),
                public_key: request.public_key.clone(),
                routing_token: routing_token.clone(),
            };
            let route_key = Route::key(&routing_token);
            let mut change = Change::new(tenant.clone());
            change.guards.extend([
                unchanged(key.clone(), Some(&known)),
                unchanged(approver_key.clone(), known_approver.as_ref()),
                unchanged(enforcer_key.clone(), known_enforcer.as_ref()),
                Guard::Before(known.value.expires_at),
            ]);
            change.puts.extend([
                Pairing { progress, ..known.value.clone() }.put(key.clone())?,
                paired.put(approver_key)?,
                enforcer.put(enforcer_key)?,
                Route { approver: approver.clone() }.put(route_key)?,
            ]);
            change.deletes.push(code_key(&known.value.code_hash));
            change.audit.push(note(key.clone(), Actor::Approver(approver.as_str()), "pairing.completed")?);
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(CompleteResponse {
                    routing_token,
                    enforcer_label: known.value.enforcer_label,
                    workspace_name: known.value.workspace_name,
                });
            }
        }
    }

    /// How a pairing stands, for its two parties.
    pub async fn pairing_status(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        nonce: &PairingNonce,
    ) -> Result<PairingStatus, Error> {
        let loaded = self.store.load(tenant, &[Pairing::key(nonce)]).await?;
        let Some(known) = Pairing::read(loaded.first())? else {
            return Err(Refusal::NotFound.into());
        };
        let is_party = match viewer {
            Viewer::Enforcer(enforcer) => known.value.enforcer == *enforcer,
            Viewer::Approver(approver) => known.value.has_approver(approver),
            Viewer::AnyEnforcer | Viewer::AnyApprover => true,
            Viewer::Operator => false,
        };
        if is_party { Ok(known.value.status(loaded.now)) } else { Err(Refusal::NotFound.into()) }
    }

    /// The enforcers that an approver is paired with.
    pub async fn paired_enforcers(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<EnforcerId>, Error> {
        let loaded = self.store.load(tenant, &[PairedApprover::key(approver)]).await?;
        let known = PairedApprover::read(loaded.first())?;
        Ok(known.map(|known| known.value.enforcers).unwrap_or_default())
    }
}
