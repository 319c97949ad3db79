//! The four calls of pairing.

use countersign_wire::{
    failure::Failure,
    id::{ApproverId, EnforcerId, PairingNonce, TenantId},
    pairing::{
        CompleteRequest, CompleteResponse, InitiateRequest, InitiateResponse, PairingCode, PairingStatus,
        ResolveResponse,
    },
};

use crate::{
    audit::{self, Actor},
    couple::Couple,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::{
        pairing::{
            CODE_LIFE, CodeKey, CodePointer, FAILED_ATTEMPTS_WINDOW, FailedCodeAttempts, MAX_FAILED_ATTEMPTS,
            PairedApprover, Pairing, PairingError, Progress, code_record,
        },
        pairs::{Pair, device},
        viewer::Viewer,
    },
    store::{Change, Guard, Key, Stored as _},
};

/// What to count of an attempt at a code.
#[derive(Clone, Copy)]
enum Attempt {
    Started,
    Succeeded,
}

impl Gateway {
    /// An enforcer starts a pairing. It must be the one that its credential names.
    pub async fn initiate_pairing(
        &self,
        tenant: &TenantId,
        request: InitiateRequest,
        codes: &CodeKey,
    ) -> Result<InitiateResponse, Error> {
        // A conflict means that the code is in use: draw another.
        self.update(tenant, &(), |(), now| {
            let code = PairingCode::draw(|| self.random.byte());
            let nonce: PairingNonce = self.random.secret().parse().map_err(|_| Failure::Internal)?;
            let expires_at = now.plus(CODE_LIFE);
            let code_hash = codes.hash(code);
            let (key, code_key) = (Pairing::key(&nonce), code_record(&code_hash));
            let pairing = Pairing {
                enforcer: request.enforcer_id.clone(),
                enforcer_label: request.enforcer_label.clone(),
                workspace_name: request.workspace_name.clone(),
                public_key: request.public_key.clone(),
                code_hash,
                expires_at,
                progress: Progress::Pending,
            };
            let pointer = CodePointer { nonce: nonce.clone() };
            let mut change = Change::new(tenant.clone());
            change.guards.extend([Guard::Absent(key.clone()), Guard::Absent(code_key.clone())]);
            change.puts.extend([pairing.put(key.clone())?, pointer.put(code_key.clone())?]);
            let actor = Actor::Enforcer(request.enforcer_id.as_str());
            change.audit.push(audit::action(key.clone(), actor, "pairing.initiated")?);
            change.due.extend([(expires_at.plus(self.retention.idempotency), key), (expires_at, code_key)]);
            Ok(Evaluation::commit(change, InitiateResponse { code, nonce, expires_at }))
        })
        .await
    }

    /// An approver has typed a code. The first one binds the pairing to themselves. Guessing is limited; `principal`
    /// names the credential, whatever approver it acts as. The count is in the store, so that another node or a
    /// restart knows it too.
    pub async fn resolve_pairing(
        &self,
        tenant: &TenantId,
        principal: &str,
        approver: Option<&ApproverId>,
        code: PairingCode,
        codes: &CodeKey,
    ) -> Result<ResolveResponse, Error> {
        // Count the attempt as failed before the code is read: however many come at once, no more than the limit are
        // tried.
        self.count_attempt(tenant, principal, Attempt::Started).await?;
        let resolved = self.resolve_code(tenant, approver, code, codes).await;
        if !matches!(resolved, Err(Error::Pairing(PairingError::NotFound))) {
            self.count_attempt(tenant, principal, Attempt::Succeeded).await?;
        }
        resolved
    }

    async fn count_attempt(&self, tenant: &TenantId, principal: &str, attempt: Attempt) -> Result<(), Error> {
        let record = record_of::<FailedCodeAttempts>(principal);
        self.update(tenant, &record, |known, now| {
            let current = known.as_ref().map(|known| known.value.clone()).filter(|it| now < it.until);
            let next = match (current, attempt) {
                (Some(current), Attempt::Started) if current.count >= MAX_FAILED_ATTEMPTS => {
                    return Err(Error::RateLimited(current.until.since(now)));
                }
                (Some(current), Attempt::Started) => {
                    FailedCodeAttempts { count: current.count + 1, ..current }
                }
                (Some(current), Attempt::Succeeded) => {
                    FailedCodeAttempts { count: current.count.saturating_sub(1), ..current }
                }
                (None, Attempt::Started) => {
                    FailedCodeAttempts { count: 1, until: now.plus(FAILED_ATTEMPTS_WINDOW) }
                }
                (None, Attempt::Succeeded) => return Ok(Evaluation::NothingToDo(())),
            };
            let key = record.key();
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), known.as_ref()));
            change.due.push((next.until, key.clone()));
            change.puts.push(next.put(key)?);
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    async fn resolve_code(
        &self,
        tenant: &TenantId,
        approver: Option<&ApproverId>,
        code: PairingCode,
        codes: &CodeKey,
    ) -> Result<ResolveResponse, Error> {
        let pointers: Vec<Key> = codes.hashes(code).map(|hash| code_record(&hash)).collect();
        let found = self.store.load(tenant, &pointers).await?.records.into_iter().flatten().next();
        let pointer = CodePointer::read(found.as_ref())?.ok_or(PairingError::NotFound)?;
        let nonce = pointer.value.nonce;
        let record = record_of::<Pairing>(&nonce);
        self.update(tenant, &record, |known, now| {
            let known = known.ok_or(PairingError::NotFound)?;
            let key = record.key();
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
            if let Some(progress) = known.value.resolve(approver, now)? {
                change.guards.push(Guard::Before(known.value.expires_at));
                let actor = Actor::Approver(approver.map_or("any", ApproverId::as_str));
                change.audit.push(audit::action(key.clone(), actor, "pairing.resolved")?);
                change.puts.push(Pairing { progress, ..known.value.clone() }.put(key)?);
            }
            let response = ResolveResponse {
                nonce: nonce.clone(),
                enforcer_id: Some(known.value.enforcer),
                enforcer_label: known.value.enforcer_label,
                workspace_name: known.value.workspace_name,
                public_key: known.value.public_key,
            };
            Ok(Evaluation::commit(change, response))
        })
        .await
    }

    /// An approver completes a pairing: the pair is stored, its keys are registered, and a token routes to it.
    pub async fn complete_pairing(
        &self,
        tenant: &TenantId,
        request: &CompleteRequest,
    ) -> Result<CompleteResponse, Error> {
        let approver = &request.approver_id;
        let pairing = record_of::<Pairing>(&request.nonce);
        // The enforcer of a pairing never changes, so it can be read before the loop.
        let (known, _) = self.load(tenant, &pairing).await?;
        let enforcer = known.ok_or(PairingError::NotFound)?.value.enforcer;
        let couple = Couple { enforcer: &enforcer, approver };
        let load = (pairing, couple.records());
        self.update(tenant, &load, |(known, paired), now| {
            let known = known.ok_or(PairingError::NotFound)?;
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(load.0.key(), Some(&known)));
            if let Err(error) = known.value.check_completion(approver, now) {
                return Ok(Evaluation::reject_if_unchanged(change, error));
            }
            if known.value.public_key.shares_a_key_with(&request.public_key) {
                // One key on both sides is no pair.
                return Err(Error::breaks("publicKey", "is the enforcer's own"));
            }
            let response = CompleteResponse {
                routing_token: self.random.routing_token(),
                enforcer_label: known.value.enforcer_label.clone(),
                workspace_name: known.value.workspace_name.clone(),
            };
            let progress = Progress::Completed {
                approver: approver.clone(),
                public_key: request.public_key.clone(),
                routing_token: response.routing_token.clone(),
                device_label: request.device_label.clone(),
                lock: request.lock.clone(),
            };
            let pair = Pair {
                device: device(&request.public_key),
                signing_key: request.public_key.signing_key(),
                enforcer_label: known.value.enforcer_label.clone(),
                workspace_name: known.value.workspace_name.clone(),
                created_at: Some(now),
                routing_tokens: vec![response.routing_token.clone()],
                vouched: None,
            };
            let mut opened = couple.open(&mut change, &paired, now);
            opened.add(&mut change, pair)?;
            opened.close(&mut change)?;
            change.guards.push(Guard::Before(known.value.expires_at));
            change.puts.push(Pairing { progress, ..known.value.clone() }.put(load.0.key())?);
            change.deletes.push(code_record(&known.value.code_hash));
            change.no_longer_due.push(code_record(&known.value.code_hash));
            let actor = Actor::Approver(approver.as_str());
            change.audit.push(audit::action(load.0.key(), actor, "pairing.completed")?);
            Ok(Evaluation::commit(change, response))
        })
        .await
    }

    /// The status of a pairing, for its two parties.
    pub async fn pairing_status(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        nonce: &PairingNonce,
    ) -> Result<PairingStatus, Error> {
        let (known, now) = self.load(tenant, &record_of::<Pairing>(nonce)).await?;
        let Some(known) = known else { return Err(PairingError::NotFound.into()) };
        let is_party = match viewer {
            Viewer::Enforcer(enforcer) => known.value.enforcer == *enforcer,
            Viewer::Approver(approver) => known.value.has_approver(approver),
            Viewer::AnyEnforcer | Viewer::AnyApprover => true,
            Viewer::Operator => false,
        };
        if is_party { Ok(known.value.status(now)) } else { Err(PairingError::NotFound.into()) }
    }

    /// The enforcers that an approver is paired with.
    pub async fn paired_enforcers(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Vec<EnforcerId>, Error> {
        let (known, _) = self.load(tenant, &record_of::<PairedApprover>(approver)).await?;
        Ok(known.map(|known| known.value.enforcers).unwrap_or_default())
    }
}
