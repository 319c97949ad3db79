//! An approver decides.

use std::sync::Arc;

use bytes::Bytes;
use countersign_wire::{
    RawObject, Verbatim, canonical,
    decision::Decision,
    exchange::{Accepted, ExchangeState},
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, RequestId, TenantId},
    keys::VerifyingKey,
    msg_type::MsgType,
    timestamp::Timestamp,
};

use super::{idempotency::IdempotencyUse, submit::Submitted};
use crate::{
    audit::Actor,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{ReadFrom, record_of},
    model::{
        credential::Credential,
        exchange::{Command, Decided, Exchange, State, TransitionResult, evaluate},
        idempotency::IdempotencyKey,
        pairing::PairedApprover,
        policy::{POLICY_ID, Policy},
        viewer::Viewer,
    },
    store::{Change, Kind, Mailbox, NewDelivery, Versioned},
    transitions::{ExchangeRef, before_expiry, new_delivery, remove_from_inboxes, transition_change},
};

/// A decision is the first as a rule. Its exchange is read where another node took it in.
const NEW_DECISION: ReadFrom = ReadFrom::Memory { new: &[Kind::Idempotency] };

/// What an approver submits.
#[derive(Debug, Clone)]
pub struct DecisionSubmission<'a> {
    pub tenant: TenantId,
    pub approver: ApproverId,
    /// The exchange, as the envelope names it.
    pub request_id: RequestId,
    pub decision: Verbatim<'a, Decision<'a>>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// The id of the key that the caller presented, which must be valid when the decision is committed; `None` where
    /// callers have no keys.
    pub credential: Option<Arc<str>>,
}

impl Gateway {
    /// Accepts a decision, or recognises a repeated one. The first that is committed wins, for good.
    pub async fn decide(&self, submission: DecisionSubmission<'_>) -> Result<Submitted, Error> {
        let DecisionSubmission { tenant, approver, request_id, decision, idempotency_key, credential } =
            &submission;
        if decision.request_id != *request_id {
            return Err(Error::breaks("body.requestId", "is not that of the envelope"));
        }
        let digest = digest(decision.raw())?;
        let exchange = ExchangeRef::new(tenant, request_id);
        let idempotency = IdempotencyUse { key: idempotency_key.as_ref(), request_id, hash: digest };
        let accepted = Accepted {
            request_id: request_id.clone(),
            state: ExchangeState::Decided,
            artifact_hash: Some(decision.artifact_hash),
        };
        let others = (
            record_of::<Policy>(POLICY_ID),
            record_of::<PairedApprover>(approver),
            idempotency.record(),
            credential.as_ref().map(record_of::<Credential>),
        );
        let load = (exchange.record(), others);
        self.update_exchange(
            NEW_DECISION,
            exchange,
            Viewer::Approver(approver),
            &load,
            |known, others, now| {
                let (policy, paired, used, presented) = others;
                // The caller may have been authenticated some seconds ago.
                let is_active = presented.is_some_and(|presented| presented.value.is_active(now));
                if credential.is_some() && !is_active {
                    return Err(Failure::Unauthenticated.into());
                }
                let signature = || is_signature_valid(decision, policy, paired, now);
                match (evaluate_decision(known, decision, digest, signature, now)?, known) {
                    (TransitionResult::Rejected(error), Some(known)) => {
                        Ok(Evaluation::reject_if_unchanged(exchange.unchanged(known), error))
                    }
                    (TransitionResult::Rejected(error), None) => Err(error.into()),
                    (TransitionResult::Apply(_), Some(known)) => {
                        let mut change = Change::new(tenant.clone());
                        if !idempotency.check(used.as_ref(), now, &self.retention, &mut change)? {
                            return Ok(Evaluation::reject_if_unchanged(change, Failure::Idempotency));
                        }
                        self.add_decision(&mut change, &submission, known, digest, now)?;
                        let answer = Submitted { accepted: accepted.clone(), replayed: false };
                        Ok(Evaluation::commit_and_ring(change, exchange.ring(), answer))
                    }
                    (_, Some(known)) => {
                        let answer = Submitted { accepted: accepted.clone(), replayed: true };
                        Ok(Evaluation::commit(exchange.unchanged(known), answer))
                    }
                    // Without an exchange a decision is always rejected.
                    (_, None) => Err(Failure::Internal.into()),
                }
            },
        )
        .await
    }

    fn add_decision(
        &self,
        change: &mut Change,
        submission: &DecisionSubmission<'_>,
        known: &Versioned<Exchange>,
        digest: Sha256Hex,
        now: Timestamp,
    ) -> Result<(), Error> {
        let DecisionSubmission { tenant, approver, request_id, decision, .. } = submission;
        let exchange = ExchangeRef::new(tenant, request_id);
        let payload = self.random.payload_id(now);
        let msg_id = self.random.msg_id(now);
        let decided = Decided {
            decision: Some(payload),
            msg_id: msg_id.clone(),
            digest,
            by: approver.clone(),
            at: now,
            expires_at: decision.expires_at,
        };
        let next = Exchange { state: State::Decided(decided), ..known.value.clone() };
        let actor = Actor::Approver(approver.as_str());
        change.append(transition_change(&exchange, Some(known), &next, &self.retention, actor)?);
        change.guards.push(before_expiry(&next));
        change.payloads.push((payload, Bytes::from(decision.raw().as_str().to_owned())));
        let key = exchange.key();
        remove_from_inboxes(change, &key);
        let until = next.ended_at().unwrap_or(next.expires_at);
        let enforcer = Mailbox::Enforcer(next.enforcer.clone());
        let delivery = new_delivery(&key, enforcer, msg_id, MsgType::DecisionDeliver, until);
        change.deliveries.push(NewDelivery { payload: Some(payload), ..delivery });
        Ok(())
    }
}

/// The signature is verified last, and only if everything else would be accepted: it costs the most.
fn evaluate_decision(
    known: Option<&Versioned<Exchange>>,
    decision: &Decision<'_>,
    digest: Sha256Hex,
    is_signature_valid: impl FnOnce() -> Result<bool, Error>,
    now: Timestamp,
) -> Result<TransitionResult, Error> {
    let command = |signature_valid| Command::Decide {
        digest,
        artifact_hash: decision.artifact_hash,
        expires_at: decision.expires_at,
        signature_valid,
    };
    let evaluated = |valid| evaluate(known.map(|known| &known.value), command(valid), now);
    match evaluated(true) {
        TransitionResult::Apply(_) => Ok(evaluated(is_signature_valid()?)),
        other => Ok(other),
    }
}

/// Whether the signature is valid as far as the gateway can tell: without a registered key, the enforcer alone decides.
/// An approver that ever had a registered key stays strict.
fn is_signature_valid(
    decision: &Verbatim<'_, Decision<'_>>,
    policy: Option<Versioned<Policy>>,
    paired: Option<Versioned<PairedApprover>>,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(PairedApprover { signing_keys, had_signing_key, .. }) = paired.map(|paired| paired.value) else {
        return Ok(!policy.is_some_and(|policy| policy.value.require_registered_signer));
    };
    let registered = signing_keys.iter().filter(|registered| registered.counts(now));
    let signing_keys: Vec<VerifyingKey> = registered.map(|registered| registered.key).collect();
    if signing_keys.is_empty() {
        return Ok(!had_signing_key && !policy.is_some_and(|policy| policy.value.require_registered_signer));
    }
    match decision.verify_any(&signing_keys) {
        Ok(()) => Ok(true),
        // A number that readers disagree about is the sender's fault, and not a bad signature.
        Err(fault @ countersign_wire::Error::UnsafeInteger) => {
            Err(Error::Invalid { failure: Failure::DecisionCanonicalization, fault })
        }
        Err(_) => Ok(false),
    }
}

/// Identifies the same decision, however it is spelled.
fn digest(decision: RawObject<'_>) -> Result<Sha256Hex, Error> {
    let form = canonical::form(decision.as_str().as_bytes())
        .map_err(|fault| Error::Invalid { failure: Failure::Validation, fault })?;
    Ok(Sha256Hex::digest(&form))
}
