//! A decision: made and signed by an approver; verified by the enforcer that asked. No I/O.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim, base64url,
    decision::{Decision, DecisionOutcome, Scope, SigAlg},
    hash::{HashAlg, Sha256Hex},
    id::{ApproverId, EnforcerId, RequestId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    checks::{self, Check, ensure},
    content::pattern::Pattern,
    exchange::{
        request::{OpenedRequest, Request},
        seal::{Context, Recipient, SealError, Sealed, seal},
    },
    identity::{
        keys::{DeviceKeys, Fingerprint},
        profile::{Party, Pin, Pins},
    },
    journal::{Journal, JournalError},
    random::{self, NoRandomness},
};

/// How much the clocks of two ends may differ.
const SKEW: Duration = Duration::from_mins(1);

/// For how long a used nonce is remembered at least.
const MIN_NONCE_MEMORY: Duration = Duration::from_mins(10);

/// What a decision says beyond approve or reject. It is sealed to the enforcer, since the decision itself travels in the
/// clear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Words {
    /// For the agent: why not, or what to mind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was shown to the person, in their client's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The requested action that was chosen, where the enforcer offered some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Which other commands an approval for a time or a session covers; `None` for this effect only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

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
    if now >= request.expires_at {
        return Err(ChoiceError::Expired);
    }
    let nonce = base64url::encode(&random::bytes::<16>()?);
    let words = serde_json::to_vec(&choice.words).map_err(|_| SealError::Malformed)?;
    let context =
        hints_context(request.request_id.as_str(), &request.artifact_hash.to_string(), approver, &nonce);
    let recipient = Recipient { id: request.enforcer.as_str(), bundle: request.asked_by.bundle() };
    let mut hints = json!({ "sealed": seal(keys, &context, &words, &[recipient])? });
    if choice.scope == Scope::Session {
        hints["sessionId"] = request.session.as_deref().ok_or(ChoiceError::NoSession)?.into();
    }
    let hints = hints.to_string();
    let decision = Decision {
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
        policy_hints: Some(RawObject::parse(hints.as_bytes())?),
    };
    let signed = decision.sign(&keys.signing_key())?;
    serde_json::to_string(&signed).map_err(|_| ChoiceError::Seal(SealError::Malformed))
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

fn hints_context(request_id: &str, hash: &str, approver: &ApproverId, nonce: &str) -> Context {
    Context::hints(request_id, hash, approver.as_str(), nonce)
}

/// A decision that passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedDecision {
    /// Whether what was asked for may be done.
    pub outcome: DecisionOutcome,
    /// What an approval covers.
    pub scope: Scope,
    /// The time from which it must not be acted on.
    pub valid_until: Timestamp,
    /// Who decided, by the pin of their device.
    pub approver: ApproverId,
    /// The device that signed.
    pub device: Fingerprint,
    /// What else they said.
    pub words: Words,
    /// The session that it covers, if its scope is one.
    pub session: Option<String>,
    /// The nonce of the decision, which is used once.
    pub nonce: String,
    /// The hash of the canonical decision with its signature, by which a receipt names it.
    pub hash: Sha256Hex,
}

/// The check that a decision failed. Each means: do nothing, and say which.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is not a decision of the protocol.
    #[error("the decision is not in a format that is known here")]
    Malformed,
    /// It is about another request.
    #[error("the decision is about another request")]
    OtherRequest,
    /// It is about other content.
    #[error("the decision is about other content than was asked for")]
    OtherContent,
    /// It is about another repository.
    #[error("the decision is about another repository")]
    OtherRepository,
    /// Its signer is not pinned as an approver, or was revoked, or was vouched for until a time that has passed.
    #[error("the decision is signed by a device that is not paired, or not any more")]
    UnknownSigner,
    /// Its signer is paired, and was not asked.
    #[error("the decision is signed by a device that was not asked")]
    NotAsked,
    /// Its signature does not verify.
    #[error("the signature of the decision does not verify")]
    Signature,
    /// It must not be acted on any more.
    #[error("the decision came too late")]
    TooLate,
    /// It covers a session, and not that of the request.
    #[error("the decision covers a session, and does not name that of the request")]
    NoSession,
    /// What it says beyond approve or reject does not open.
    #[error("what the decision says can't be read: {0}")]
    Words(SealError),
    /// It was used before.
    #[error("the decision was used before")]
    Replayed,
    /// The request was taken back, or answered by another decision.
    #[error("the request was settled before")]
    Settled,
    /// It can't be recorded that it is used.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The enforcer that checks a decision, and what it knows.
#[derive(Clone, Copy)]
pub struct Verifier<'a> {
    /// The enforcer's id, which words are sealed to.
    pub enforcer: &'a str,
    /// The enforcer's keys, which open them.
    pub keys: &'a DeviceKeys,
    /// Whose signatures count.
    pub pins: &'a Pins,
    /// Which decisions were used.
    pub journal: &'a dyn Journal,
}

impl Verifier<'_> {
    /// Checks a decision about a request, in the order of `docs/trust.md`, and records that it is used.
    pub fn verify(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
    ) -> Result<VerifiedDecision, Rejected> {
        let decision = self.check(text, request, now)?;
        let (request_id, keep_until) = (request.request_id.as_str(), decision.keep_until(now));
        let is_new = self.journal.use_nonce(&decision.nonce, request_id, keep_until, now)?;
        ensure(is_new, Rejected::Replayed)?;
        Ok(decision)
    }

    /// Every check but the last: whether it was used before is for [`Journal::commit`], before anything is done.
    pub(crate) fn check(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
    ) -> Result<VerifiedDecision, Rejected> {
        let received = Received::read(self, text, request, now)?;
        checks::all(&Received::SIGNED, &received)?;
        checks::all(&Received::ASKED, &received)?;
        received.in_time()
    }

    /// As [`Verifier::check`], for a decision that was used before: who was asked is no longer known, and was checked then.
    pub(crate) fn check_kept(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
    ) -> Result<VerifiedDecision, Rejected> {
        let received = Received::read(self, text, request, now)?;
        checks::all(&Received::SIGNED, &received)?;
        received.in_time()
    }

    /// The decision that came too late, if that is all that is wrong with it: whoever signed it is told.
    pub(crate) fn too_late(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
    ) -> Option<VerifiedDecision> {
        let received = Received::read(self, text, request, now).ok()?;
        checks::all(&Received::SIGNED, &received).ok()?;
        checks::all(&Received::ASKED, &received).ok()?;
        checks::all(&Received::COVERS, &received).ok()?;
        received.accept(received.words().ok()?).ok()
    }
}

/// The device that a decision names as its signer, which is pinned as an approver's.
#[derive(Clone, Copy)]
struct Signer<'a> {
    pin: &'a Pin,
    approver: &'a ApproverId,
}

/// A decision as it was received, beside what it has to agree with.
struct Received<'a> {
    decision: Verbatim<'a, Decision<'a>>,
    request: &'a Request,
    verifier: &'a Verifier<'a>,
    /// `None` if nobody who may decide is pinned with these keys.
    signer: Option<Signer<'a>>,
    /// The session that it names.
    session: Option<String>,
    now: Timestamp,
}

impl<'a> Received<'a> {
    /// It is about this request, and signed by a device that counts.
    const SIGNED: [Check<Self, Rejected>; 5] = [
        ("request", |it| ensure(it.decision.request_id == it.request.request_id, Rejected::OtherRequest)),
        ("content", |it| {
            ensure(it.decision.artifact_hash == it.request.artifact_hash, Rejected::OtherContent)
        }),
        ("repository", |it| ensure(it.decision.repo_ref == it.request.repo_ref, Rejected::OtherRepository)),
        ("signer", |it| {
            let counts = |signer: Signer<'_>| it.verifier.pins.is_active(signer.pin.fingerprint(), it.now);
            ensure(it.signer.is_some_and(counts), Rejected::UnknownSigner)
        }),
        ("signature", |it| {
            let signed = |signer: Signer<'_>| it.decision.verify(&signer.pin.bundle().signing).is_ok();
            ensure(it.signer.is_some_and(signed), Rejected::Signature)
        }),
    ];

    /// Whoever signed it was asked: the request was sealed to their device.
    const ASKED: [Check<Self, Rejected>; 1] = [("asked", |it| {
        let devices = it.request.devices().unwrap_or_default();
        let was_asked = |signer: Signer<'_>| devices.contains(&signer.pin.fingerprint());
        ensure(it.signer.is_some_and(was_asked), Rejected::NotAsked)
    })];

    /// It may still be acted on. A list of its own: who signed one that came too late is told so.
    const IN_TIME: [Check<Self, Rejected>; 1] =
        [("time", |it| ensure(it.now < it.decision.expires_at.plus(SKEW), Rejected::TooLate))];

    /// It covers nothing but what was asked for.
    const COVERS: [Check<Self, Rejected>; 1] = [("session", |it| {
        let is_own = it.session.is_some() && it.session == it.request.session;
        ensure(it.decision.scope != Scope::Session || is_own, Rejected::NoSession)
    })];

    fn read(
        verifier: &'a Verifier<'a>,
        text: &'a [u8],
        request: &'a Request,
        now: Timestamp,
    ) -> Result<Self, Rejected> {
        let decision: Verbatim<'_, Decision<'_>> =
            countersign_wire::parse(text).map_err(|_| Rejected::Malformed)?;
        let pin = Fingerprint::parse(&decision.signer_key_id).and_then(|device| verifier.pins.get(device));
        let signer = pin.and_then(|pin| match pin.party() {
            Party::Approver(approver) => Some(Signer { pin, approver }),
            Party::Enforcer(_) => None,
        });
        let session = session_id(&decision);
        Ok(Self { decision, request, verifier, signer, session, now })
    }

    /// What the decision says beyond approve or reject; nothing if it has no sealed words.
    fn words(&self) -> Result<Words, Rejected> {
        let Signer { pin, approver } = self.signer.ok_or(Rejected::UnknownSigner)?;
        let Some(hints) = self.decision.policy_hints else { return Ok(Words::default()) };
        #[derive(Deserialize)]
        struct Hints {
            sealed: Option<Sealed>,
        }
        let hints: Hints =
            serde_json::from_str(hints.as_str()).map_err(|_| Rejected::Words(SealError::Malformed))?;
        let Some(sealed) = hints.sealed else { return Ok(Words::default()) };
        let (request_id, hash) = (self.decision.request_id.as_str(), self.decision.artifact_hash.to_string());
        let context = hints_context(request_id, &hash, approver, &self.decision.nonce);
        let Verifier { enforcer, keys, .. } = self.verifier;
        let text = sealed.open(keys, enforcer, pin.bundle(), &context).map_err(Rejected::Words)?;
        serde_json::from_slice(&text).map_err(|_| Rejected::Words(SealError::Malformed))
    }

    /// The rest of the checks, once it is known who signed it.
    fn in_time(&self) -> Result<VerifiedDecision, Rejected> {
        checks::all(&Self::IN_TIME, self)?;
        checks::all(&Self::COVERS, self)?;
        self.accept(self.words()?)
    }

    /// The decision as it counts once every check has passed.
    fn accept(&self, words: Words) -> Result<VerifiedDecision, Rejected> {
        let Signer { pin, approver } = self.signer.ok_or(Rejected::UnknownSigner)?;
        let decision = &self.decision;
        Ok(VerifiedDecision {
            outcome: decision.decision,
            scope: decision.scope,
            valid_until: decision.expires_at,
            approver: approver.clone(),
            device: pin.fingerprint(),
            words,
            session: self.session.clone().filter(|_| decision.scope == Scope::Session),
            nonce: decision.nonce.clone(),
            hash: decision_hash(decision.raw()).map_err(|_| Rejected::Malformed)?,
        })
    }
}

impl VerifiedDecision {
    /// For how long it is remembered that it was used.
    pub(crate) fn keep_until(&self, now: Timestamp) -> Timestamp {
        self.valid_until.plus(SKEW).max(now.plus(MIN_NONCE_MEMORY))
    }
}

/// The hash by which a receipt names a decision: of all of it, in canonical form.
pub(crate) fn decision_hash(decision: RawObject<'_>) -> Result<Sha256Hex, countersign_wire::Error> {
    Ok(Sha256Hex::digest(&countersign_wire::canonical::form(decision.as_str().as_bytes())?))
}

fn session_id(decision: &Decision<'_>) -> Option<String> {
    decision.policy_hints?.members().ok()?.optional("sessionId").ok()?
}

#[cfg(test)]
mod tests;
