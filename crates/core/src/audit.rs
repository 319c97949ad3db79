//! Rows of the audit log: who did what, without bodies and secrets.

use countersign_wire::{
    exchange::ExchangeState,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    keys::VerifyingKey,
};
use serde::Serialize;

use crate::{
    model::{exchange::Exchange, invitation::Invitee, pairs::PairId},
    store::{AuditRow, Key, StoreError},
};

/// Who did something, as the audit log names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Actor<'a> {
    Enforcer(&'a str),
    Approver(&'a str),
    Operator,
    /// Whoever has the key with this id.
    Key(&'a str),
    /// Nobody: a time has passed.
    Clock,
}

/// Whoever acts with an invitation.
pub(crate) fn invitee(invitee: &Invitee) -> Actor<'_> {
    match invitee {
        Invitee::Enforcer(id) => Actor::Enforcer(id.as_str()),
        Invitee::Approver(id) => Actor::Approver(id.as_str()),
    }
}

/// A transition of an exchange to the state in `next`.
pub(crate) fn transition(
    subject: Key,
    actor: Actor<'_>,
    from: Option<ExchangeState>,
    next: &Exchange,
) -> Result<AuditRow, StoreError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Event<'e> {
        actor: Actor<'e>,
        from: Option<ExchangeState>,
        to: ExchangeState,
        artifact_hash: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        decision_digest: Option<String>,
    }
    let event = Event {
        actor,
        from,
        to: next.state.to_wire(),
        artifact_hash: next.artifact_hash.to_string(),
        decision_digest: next.state.decided().map(|decided| decided.digest.to_string()),
    };
    row(subject, &event)
}

/// Anything that is no transition of an exchange.
pub(crate) fn action(subject: Key, actor: Actor<'_>, did: &'static str) -> Result<AuditRow, StoreError> {
    #[derive(Serialize)]
    struct Event<'e> {
        actor: Actor<'e>,
        did: &'static str,
    }
    row(subject, &Event { actor, did })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PairEvent<'e> {
    actor: Actor<'e>,
    did: &'static str,
    enforcer_id: &'e EnforcerId,
    approver_id: &'e ApproverId,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_key: Option<VerifyingKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched_by: Option<&'e ApproverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<Sha256Hex>,
}

impl<'e> PairEvent<'e> {
    fn new(did: &'static str, actor: Actor<'e>, id: &'e PairId, signing_key: Option<VerifyingKey>) -> Self {
        let (enforcer_id, approver_id) = (&id.enforcer, &id.approver);
        Self { actor, did, enforcer_id, approver_id, signing_key, vouched_by: None, statement: None }
    }
}

/// A pair was removed. The key is that of the device which can no longer decide.
pub(crate) fn pair_removed(
    subject: Key,
    actor: Actor<'_>,
    id: &PairId,
    signing_key: Option<VerifyingKey>,
) -> Result<AuditRow, StoreError> {
    row(subject, &PairEvent::new("pair.removed", actor, id, signing_key))
}

/// The time for which a device was vouched for is over.
pub(crate) fn pair_ended(
    subject: Key,
    id: &PairId,
    signing_key: Option<VerifyingKey>,
) -> Result<AuditRow, StoreError> {
    row(subject, &PairEvent::new("pair.ended", Actor::Clock, id, signing_key))
}

/// A voucher was presented and accepted: for a device, or for a recovery code.
pub(crate) fn vouched(
    subject: Key,
    did: &'static str,
    id: &PairId,
    signing_key: VerifyingKey,
    by: &ApproverId,
    statement: Sha256Hex,
) -> Result<AuditRow, StoreError> {
    let actor = Actor::Approver(id.approver.as_str());
    let event = PairEvent::new(did, actor, id, Some(signing_key));
    row(subject, &PairEvent { vouched_by: Some(by), statement: Some(statement), ..event })
}

fn row(subject: Key, event: &impl Serialize) -> Result<AuditRow, StoreError> {
    let event = serde_json::to_vec(event).map_err(StoreError::corrupt)?;
    Ok(AuditRow { subject, event: event.into() })
}
