//! An approver decides.

use bytes::Bytes;
use countersign_wire::{
    RawObject, Verbatim, canonical,
    decision::Decision,
    exchange::{Accepted, State as WireState},
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
};

use super::{
    Viewer,
    idempotency::{self, IdempotencyKey},
    named,
};
use crate::{
    Error, Gateway,
    edges::{Actor, leave_inboxes, moving, not_expired, tell},
    exchange::{Command, Decided, Edge, Exchange, State, Verdict, judge},
    gateway::Attempt,
    pairing::PairedApprover,
    policy::{POLICY_ID, Policy},
    store::{Change, Mailbox, NewDelivery},
    stored::Stored as _,
    use_cases::submit::Submitted,
};

/// What an approver submits.
#[derive(Debug, Clone)]
pub struct DecisionSubmission<'a> {
    /// Whose tenant.
    pub tenant: TenantId,
    /// Who.
    pub approver: ApproverId,
    /// On which exchange, as the envelope says.
    pub request_id: RequestId,
    /// The decision.
    pub decision: Verbatim<'a, Decision<'a>>,
    /// The request's `Idempotency-Key`.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl Gateway {
    /// Takes a decision in, or recognises it. The first that is committed wins, for good.
    pub async fn decide(&self, submission: DecisionSubmission<'_>) -> Result<Submitted, Error> {
        let DecisionSubmission { tenant, approver, request_id, decision, idempotency_key } = &submission;
        if decision.request_id != *request_id {
            let fault = countersign_wire::Error::breaks("body.requestId", "is not that of the envelope");
            return Err(Error::Faulty { failure: Failure::Validation, fault });
        }
        let digest = digest(decision.raw())?;
        let named = named(tenant, request_id);
        let mut others = vec![Policy::key(POLICY_ID), PairedApprover::key(approver)];
        others.extend(idempotency_key.as_ref().map(IdempotencyKey::record_key));
        let used = idempotency::Use { key: idempotency_key.as_ref(), request_id, hash: digest };
        loop {
            let looked = self.look_to_write(&named, Viewer::Approver(approver), &others).await?;
            let policy =
                Policy::read(looked.others[0].as_ref())?.map(|policy| policy.value).unwrap_or_default();
            let keys = PairedApprover::read(looked.others[1].as_ref())?;
            let keys = keys.map(|approver| approver.value.signing_keys).unwrap_or_default();
            let signature_stands = match keys.is_empty() {
                // Without a key to check with, the enforcer alone is the judge.
                true => !policy.require_registered_signer,
                false => keys.iter().any(|key| decision.verify(key).is_ok()),
            };
            let command = Command::Decide {
                digest,
                artifact_hash: decision.artifact_hash,
                expires_at: decision.expires_at,
                signature_stands,
            };
            let accepted = Accepted {
                request_id: request_id.clone(),
                state: WireState::Decided,
                artifact_hash: Some(decision.artifact_hash),
            };
            let known = looked.exchange.as_ref();
            let mut change = Change::new(tenant.clone());
            let remembered = looked.others.last().and_then(Option::as_ref);
            if !used.remember(remembered, looked.now, &self.retention, &mut change)? {
                self.refuse_resting_on(change, Failure::Idempotency).await?;
                continue;
            }
            match (judge(known.map(|known| &known.value), command, looked.now), known) {
                (Verdict::Go(Edge::Decide), Some(known)) => {
                    let stored_as = self.chance.payload_id(looked.now);
                    let msg_id = self.chance.msg_id(looked.now);
                    let decided = Decided {
                        decision: Some(stored_as),
                        msg_id: msg_id.clone(),
                        digest,
                        by: approver.clone(),
                        at: looked.now,
                        expires_at: decision.expires_at,
                    };
                    let next = Exchange { state: State::Decided(decided), ..known.value.clone() };
                    let actor = Actor::Approver(approver.as_str());
                    change.append(moving(&named, Some(known), &next, &self.retention, actor)?);
                    change.guards.push(not_expired(&next));
                    change.payloads.push((stored_as, Bytes::from(decision.raw().as_str().to_owned())));
                    let key = named.key();
                    leave_inboxes(&mut change, &key);
                    let until = next.ended_at().unwrap_or(next.expires_at);
                    let enforcer = Mailbox::Enforcer(next.enforcer.clone());
                    let told = tell(&key, enforcer, msg_id, MsgType::DecisionDeliver, until);
                    change.deliveries.push(NewDelivery { payload: Some(stored_as), ..told });
                    if let Attempt::Done = self.commit(change, Some(named.ring())).await? {
                        return Ok(Submitted { accepted, replayed: false });
                    }
                }
                (Verdict::Refuse(refusal), known) => return self.refuse(&named, known, refusal).await,
                (_, Some(known)) if self.still_stands_with(&named, known, change).await? => {
                    return Ok(Submitted { accepted, replayed: true });
                }
                _ => {}
            }
        }
    }
}

/// By which the same decision is known again, however it is spelled.
fn digest(decision: RawObject<'_>) -> Result<Sha256Hex, Error> {
    let form = canonical::form(decision.as_str().as_bytes())
        .map_err(|fault| Error::Faulty { failure: Failure::Validation, fault })?;
    Ok(Sha256Hex::digest(&form))
}
