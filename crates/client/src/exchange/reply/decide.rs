//! The approver's side: a choice becomes a signed decision.

use countersign_wire::{
    RawObject, Verbatim, base64url,
    decision::{Decision, DecisionOutcome, Scope, SigAlg},
    hash::{HashAlg, Sha256Hex},
    id::{ApproverId, EnforcerId, RequestId},
    lock::{Assertion, MEMBER as LOCK, challenge},
    timestamp::Timestamp,
};
use serde_json::json;

use super::words::{Words, decision_hash, hints_context};
use crate::{
    exchange::{
        edit::EditError,
        request::OpenedRequest,
        seal::{Recipient, SealError, seal},
    },
    identity::keys::DeviceKeys,
    random::{self, NoRandomness},
};

/// What an approver decides.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Whether what was asked for may be done.
    pub outcome: DecisionOutcome,
    /// What an approval covers (docs/grants.md). A session is that of the request; a pattern is in the words.
    pub scope: Scope,
    /// Until when the enforcer may act on it.
    pub valid_until: Timestamp,
    /// What else there is to say.
    pub words: Words,
}

/// Why a decision can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The request has expired.
    #[error("the request has expired")]
    Expired,
    /// It is for a session, and the request belongs to none.
    #[error("the request belongs to no session, so it can't be approved for one")]
    NoSession,
    /// It is what this device has changed, and the approval is for more than once.
    #[error("what you have changed can be approved once, and not for longer")]
    OnlyOnce,
    /// It approves, and changes what it approves.
    #[error("a change is asked for before it is approved, so it comes with a rejection")]
    EditApproved,
    /// The change can't be made.
    #[error("the change can't be sent: {0}")]
    Edit(#[from] EditError),
    /// The words can't be sealed.
    #[error("the words can't be sealed: {0}")]
    Seal(#[from] SealError),
    /// It can't be signed.
    #[error("the decision can't be signed: {0}")]
    Sign(#[from] countersign_wire::Error),
    /// Without randomness there is no decision.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// The signed decision about an opened request, as JSON.
pub fn decide(
    request: &OpenedRequest,
    choice: &Choice,
    approver: &ApproverId,
    keys: &DeviceKeys,
    now: Timestamp,
) -> Result<String, ChoiceError> {
    decide_with(request, choice, approver, keys, now, |_| None)
}

/// As [`decide`], with what the lock of this device signs for exactly this decision: it is asked with the challenge.
pub fn decide_with(
    request: &OpenedRequest,
    choice: &Choice,
    approver: &ApproverId,
    keys: &DeviceKeys,
    now: Timestamp,
    lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
) -> Result<String, ChoiceError> {
    if now >= request.expires_at {
        return Err(ChoiceError::Expired);
    }
    check(request, choice)?;
    decide_unchecked(request, choice, approver, keys, lock)
}

/// As [`decide_with`], also what enforcers refuse.
pub(in crate::exchange) fn decide_unchecked(
    request: &OpenedRequest,
    choice: &Choice,
    approver: &ApproverId,
    keys: &DeviceKeys,
    lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
) -> Result<String, ChoiceError> {
    let nonce = base64url::encode(&random::bytes::<16>()?);
    let words = serde_json::to_vec(&choice.words).map_err(|_| SealError::Malformed)?;
    let context =
        hints_context(request.request_id.as_str(), &request.artifact_hash.to_string(), approver, &nonce);
    let recipient = Recipient { id: request.enforcer.as_str(), bundle: request.asked_by.bundle() };
    let mut hints = json!({ "sealed": seal(keys, &context, &words, &[recipient])? });
    if choice.scope == Scope::Session {
        hints["sessionId"] = request.session.as_deref().ok_or(ChoiceError::NoSession)?.into();
    }
    let text = hints.to_string();
    let unsigned = unsigned(request, choice, keys, nonce, RawObject::parse(text.as_bytes())?);
    let written = serde_json::to_string(&unsigned).map_err(|_| ChoiceError::Seal(SealError::Malformed))?;
    if let Some(assertion) = lock(challenge(RawObject::parse(written.as_bytes())?)?) {
        hints[LOCK] = json!(assertion);
    }
    let text = hints.to_string();
    let decision = Decision { policy_hints: Some(RawObject::parse(text.as_bytes())?), ..unsigned };
    let signed = decision.sign(&keys.signing_key())?;
    serde_json::to_string(&signed).map_err(|_| ChoiceError::Seal(SealError::Malformed))
}

/// Whether an enforcer would take it, as far as that is known here.
fn check(request: &OpenedRequest, choice: &Choice) -> Result<(), ChoiceError> {
    if request.is_edited && choice.scope != Scope::Once {
        return Err(ChoiceError::OnlyOnce);
    }
    match (&choice.words.edit, choice.outcome) {
        (None, _) => Ok(()),
        (Some(_), DecisionOutcome::Approve) => Err(ChoiceError::EditApproved),
        (Some(edit), DecisionOutcome::Reject) => Ok(edit.check(&request.edits)?),
    }
}

fn unsigned<'a>(
    request: &OpenedRequest,
    choice: &Choice,
    keys: &DeviceKeys,
    nonce: String,
    hints: RawObject<'a>,
) -> Decision<'a> {
    Decision {
        request_id: request.request_id.clone(),
        artifact_hash_alg: HashAlg::Sha256,
        artifact_hash: request.artifact_hash,
        repo_ref: request.repo_ref.clone(),
        decision: choice.outcome,
        scope: choice.scope,
        expires_at: choice.valid_until,
        nonce,
        sig_alg: SigAlg::Ed25519,
        signer_key_id: keys.fingerprint().to_string(),
        signature: "unsigned".to_owned(),
        policy_hints: Some(hints),
    }
}

/// A decision that an approver has sent, by which a receipt is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentDecision {
    /// The request that was decided.
    pub request_id: RequestId,
    /// Who asked.
    pub enforcer: EnforcerId,
    /// The nonce of the decision.
    pub nonce: String,
    /// The hash of the canonical decision.
    pub hash: Sha256Hex,
}

impl SentDecision {
    /// Names a decision that [`decide`] has made for a request of this enforcer.
    pub fn of(decision: &str, enforcer: EnforcerId) -> Result<Self, countersign_wire::Error> {
        let read: Verbatim<'_, Decision<'_>> = countersign_wire::parse(decision.as_bytes())?;
        let hash = decision_hash(read.raw())?;
        Ok(Self { request_id: read.request_id.clone(), enforcer, nonce: read.nonce.clone(), hash })
    }
}
