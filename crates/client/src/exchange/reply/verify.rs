//! The enforcer's side: the checks of a decision, in the order of `docs/trust.md`.

use std::{cell::OnceCell, time::Duration};

use countersign_wire::{
    RawObject, Verbatim,
    artifact::Artifact,
    decision::{Decision, DecisionOutcome, Scope},
    hash::Sha256Hex,
    id::ApproverId,
    lock::{Assertion, LockKey, MEMBER as LOCK},
    timestamp::Timestamp,
};
use serde::Deserialize;

use super::words::{Words, decision_hash, hints_context};
use crate::{
    checks::{self, Check, ensure},
    content::payload::Payload,
    exchange::{
        audience::Verify,
        lock::{self, Gesture, LockFault},
        request::Request,
        seal::{SealError, Sealed},
    },
    identity::{
        keys::{DeviceKeys, Fingerprint},
        profile::{Party, Pin, Pins},
    },
    journal::{Journal, JournalError},
};

/// How much the clocks of two ends may differ.
const SKEW: Duration = Duration::from_mins(1);

/// For how long a used nonce is remembered at least.
const MIN_NONCE_MEMORY: Duration = Duration::from_mins(10);

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
    /// That the lock of the device has verified a person for this decision; `None` if it has not, or no lock is pinned.
    pub gesture: Option<Gesture>,
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
    /// What the lock of the device has signed does not hold.
    #[error("the device lock does not confirm the decision: {0}")]
    Lock(LockFault),
    /// An approval of this needs a person whom the device has verified, and the decision has none.
    #[error("an approval of this needs the device lock, and the decision has none that this machine knows")]
    NotVerified,
    /// It must not be acted on any more.
    #[error("the decision came too late")]
    TooLate,
    /// It covers a session, and not that of the request.
    #[error("the decision covers a session, and does not name that of the request")]
    NoSession,
    /// It is about what its signer has changed, and covers more than that.
    #[error("what an approver has changed is approved once, and this is for longer")]
    OnlyOnce,
    /// It approves, and changes what it approves.
    #[error("the decision changes what it approves")]
    EditApproved,
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
        checks::all(&Received::VERIFIED, &received)?;
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
        checks::all(&Received::VERIFIED, &received)?;
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
        checks::all(&Received::VERIFIED, &received).ok()?;
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
pub(super) struct Received<'a> {
    decision: Verbatim<'a, Decision<'a>>,
    request: &'a Request,
    verifier: &'a Verifier<'a>,
    /// `None` if nobody who may decide is pinned with these keys.
    signer: Option<Signer<'a>>,
    /// The session that it names.
    session: Option<String>,
    now: Timestamp,
    gesture: OnceCell<Result<Option<Gesture>, LockFault>>,
}

impl<'a> Received<'a> {
    /// It is about this request, and signed by a device that counts.
    pub(super) const SIGNED: [Check<Self, Rejected>; 5] = [
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
    pub(super) const ASKED: [Check<Self, Rejected>; 1] = [("asked", |it| {
        let devices = it.request.devices().unwrap_or_default();
        let was_asked = |signer: Signer<'_>| devices.contains(&signer.pin.fingerprint());
        ensure(it.signer.is_some_and(was_asked), Rejected::NotAsked)
    })];

    /// Where it matters, a device has verified its person. Whether it does is this end's own view of the request.
    pub(super) const VERIFIED: [Check<Self, Rejected>; 2] = [
        ("lock", |it| it.gesture().map(drop).map_err(Rejected::Lock)),
        ("person", |it| {
            let is_needed = it.decision.decision == DecisionOutcome::Approve && it.needs_person();
            ensure(!is_needed || it.lock().is_some_and(|_| it.has_assertion()), Rejected::NotVerified)
        }),
    ];

    /// It may still be acted on. A list of its own: who signed one that came too late is told so.
    pub(super) const IN_TIME: [Check<Self, Rejected>; 1] =
        [("time", |it| ensure(it.now < it.decision.expires_at.plus(SKEW), Rejected::TooLate))];

    /// It covers nothing but what was asked for.
    pub(super) const COVERS: [Check<Self, Rejected>; 2] = [
        ("session", |it| {
            let is_own = it.session.is_some() && it.session == it.request.session;
            ensure(it.decision.scope != Scope::Session || is_own, Rejected::NoSession)
        }),
        ("once", |it| {
            ensure(it.decision.scope == Scope::Once || !it.request.is_edited(), Rejected::OnlyOnce)
        }),
    ];

    pub(super) fn read(
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
        Ok(Self { decision, request, verifier, signer, session, now, gesture: OnceCell::new() })
    }

    /// The lock that is pinned for the device of the signer.
    fn lock(&self) -> Option<&LockKey> {
        self.signer.and_then(|signer| signer.pin.lock())
    }

    fn has_assertion(&self) -> bool {
        let hints = self.decision.policy_hints.map(RawObject::members);
        hints.is_some_and(|hints| hints.is_ok_and(|hints| hints.contains(LOCK)))
    }

    /// Whom the lock of the device has verified. Of a device without a pinned lock, what it says counts for nothing.
    fn gesture(&self) -> Result<Option<Gesture>, LockFault> {
        let verify = || {
            let (Some(lock), Some(hints)) = (self.lock(), self.decision.policy_hints) else {
                return Ok(None);
            };
            let assertion = Assertion::of(hints).map_err(|_| LockFault::Malformed)?;
            assertion.map(|assertion| lock::verify(lock, &assertion, self.decision.raw())).transpose()
        };
        *self.gesture.get_or_init(verify)
    }

    /// Whether an approval of the request needs a person whom the device has verified.
    fn needs_person(&self) -> bool {
        let Ok(artifact) = countersign_wire::parse::<Artifact<'_>>(self.request.artifact.as_bytes()) else {
            return true;
        };
        let is_serious = || Payload::read(artifact.artifact_type, &artifact.payload).is_serious();
        Verify::of(&artifact) == Verify::Person || self.lock().is_some() && is_serious()
    }

    /// What the decision says beyond approve or reject; nothing if it has no sealed words.
    pub(super) fn words(&self) -> Result<Words, Rejected> {
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
        let words: Words =
            serde_json::from_slice(&text).map_err(|_| Rejected::Words(SealError::Malformed))?;
        let is_approval = self.decision.decision == DecisionOutcome::Approve;
        ensure(words.edit.is_none() || !is_approval, Rejected::EditApproved)?;
        Ok(words)
    }

    /// The rest of the checks, once it is known who signed it.
    fn in_time(&self) -> Result<VerifiedDecision, Rejected> {
        checks::all(&Self::IN_TIME, self)?;
        checks::all(&Self::COVERS, self)?;
        self.accept(self.words()?)
    }

    /// The decision as it counts once every check has passed.
    pub(super) fn accept(&self, words: Words) -> Result<VerifiedDecision, Rejected> {
        let Signer { pin, approver } = self.signer.ok_or(Rejected::UnknownSigner)?;
        let decision = &self.decision;
        Ok(VerifiedDecision {
            outcome: decision.decision,
            scope: decision.scope,
            valid_until: decision.expires_at,
            approver: approver.clone(),
            device: pin.fingerprint(),
            gesture: self.gesture().ok().flatten(),
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

fn session_id(decision: &Decision<'_>) -> Option<String> {
    decision.policy_hints?.members().ok()?.optional("sessionId").ok()?
}
