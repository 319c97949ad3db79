//! A finished exchange as one JSON text that can be verified without a gateway (docs/bundles.md).

use countersign_wire::{
    FromMembers, Members, RawObject, Verbatim,
    artifact::Artifact,
    decision::{Decision, DecisionOutcome, Scope},
    id::RequestId,
    keys::KeyBundle,
    lock::{Assertion, LockKey},
    timestamp::Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

use crate::{
    ends::approver::Approver,
    exchange::{
        audience::Verify,
        effect_hash::effect_hash,
        lock,
        reply::{SentDecision, Words, decision_hash},
        request::repo_name,
        taken::{Signer, Taken},
    },
    gateway::http::CallError,
    identity::{
        keys::{DeviceKeys, Fingerprint},
        profile::{Party, Pin, Pins},
    },
    json::{self, Count, vocabulary},
    reports::receipt::{Receipt, ReceiptError},
};

/// The version of the format.
const VERSION: u64 = 1;

/// The version with the lock of a device, which programs of the first can't verify.
const VERSION_WITH_LOCK: u64 = 2;

/// The source of a signer that has written the bundle itself.
const OWN: &str = "own";

/// The enforcer of an exchange, as the bundle names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleEnforcer {
    /// Its id at the gateway.
    pub enforcer_id: String,
    /// Its public keys, as `v1.<Ed25519>.<X25519>`.
    pub keys: String,
}

/// A finished exchange: what was asked, what was decided, by whose keys, and what was done.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    version: u64,
    /// The artifact in the clear, as its text; absent if an approver has written the bundle, who did not keep it.
    #[serde(default, deserialize_with = "artifact", skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Zeroizing<String>>,
    /// The decision, as the text that was received.
    pub decision: String,
    /// Whose keys signed it, and why they were trusted.
    pub signer: Signer,
    /// What the decision says beyond approve or reject, as the enforcer has opened it.
    pub words: Words,
    /// Who asked and acted.
    pub enforcer: BundleEnforcer,
    /// What was done, if it is not what the artifact says: the payload of a command that a pattern covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Zeroizing<String>>,
    /// What the enforcer says that it did.
    pub receipt: Receipt,
}

json::objects!(BundleEnforcer, Bundle);

fn artifact<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Zeroizing<String>>, D::Error> {
    Ok(json::present(reader)?.map(Zeroizing::new))
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bundle({} use {})", self.receipt.request_id, self.receipt.number)
    }
}

/// Why an approver's device has no proof of an exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The gateway refused, or can't be reached.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There is no decision.
    #[error("nobody has decided it")]
    NotDecided,
    /// The decision is not signed by this device.
    #[error("it was decided with another device, and only that one can write its proof")]
    OtherDevice,
    /// There is no receipt of a paired machine.
    #[error("the machine has not reported what it did")]
    NotReported,
    /// What came as the receipt fails a check.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
}

impl Approver {
    /// What this device can prove of a decision of its own: that it signed the decision, and that the machine has signed a
    /// receipt about its first use. The artifact and the words are for the caller to add, if they were kept.
    pub async fn bundle(&self, request_id: &RequestId, pins: &Pins) -> Result<Bundle, ProofError> {
        let decision = self.decision(request_id).await?.ok_or(ProofError::NotDecided)?;
        let read: Verbatim<'_, Decision<'_>> =
            countersign_wire::parse(decision.as_bytes()).map_err(|_| CallError::NotUnderstood)?;
        let is_own = Fingerprint::parse(&read.signer_key_id) == Some(self.keys.fingerprint())
            && read.verify(&self.keys.bundle().signing).is_ok();
        if !is_own {
            return Err(ProofError::OtherDevice);
        }
        let mut why = ProofError::NotReported;
        for pin in pins.iter() {
            let Party::Enforcer(enforcer) = pin.party() else { continue };
            let sent = SentDecision::of(&decision, enforcer.clone()).map_err(|_| CallError::NotUnderstood)?;
            match self.receipt(&sent, 1, pins).await {
                Ok(Some(receipt)) => return Ok(self.own_bundle(decision, pin, receipt)),
                // It may be that of another machine.
                Ok(None) | Err(ReceiptError::OtherEnforcer) => {}
                Err(error) => why = error.into(),
            }
        }
        Err(why)
    }

    fn own_bundle(&self, decision: String, machine: &Pin, receipt: Receipt) -> Bundle {
        let signer = Signer {
            approver_id: self.id.as_str().to_owned(),
            keys: self.keys.bundle().to_string(),
            source: OWN.to_owned(),
            vouched_by: None,
            since: machine.since().to_string(),
            lock: None,
        };
        let enforcer = BundleEnforcer {
            enforcer_id: machine.party().id().to_owned(),
            keys: machine.bundle().to_string(),
        };
        let words = Words::default();
        Bundle { version: VERSION, artifact: None, decision, signer, words, enforcer, payload: None, receipt }
    }
}

/// Why a text is not read as a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// It is not of this format.
    #[error("the text is not a bundle, or was not copied completely")]
    Malformed,
    /// A newer program wrote it. Nothing of it is guessed.
    #[error("the bundle has version {0} of its format. Update this program")]
    NewerVersion(u64),
}

vocabulary! {
    /// Something that a bundle claims.
    pub enum Claim {
        /// The artifact has the hash that it says.
        Artifact = "artifact",
        /// The decision is about this artifact.
        About = "about",
        /// The decision is signed by the keys in the bundle.
        Signature = "signature",
        /// These keys are those of this approver.
        Approver = "approver",
        /// A person was verified for this decision, by the lock in the bundle.
        Person = "person",
        /// This lock is that of the device.
        Lock = "lock",
        /// What the decision says beyond approve or reject.
        Words = "words",
        /// The receipt is signed by the keys in the bundle.
        Receipt = "receipt",
        /// The receipt is about this decision.
        Decision = "decision",
        /// These keys are those of this enforcer.
        Enforcer = "enforcer",
        /// What was done is what was decided.
        Effect = "effect",
        /// The receipt is true.
        Done = "done",
    }

    /// How certain a claim is.
    pub enum Certainty {
        /// Whoever has the bundle can verify it.
        Proven = "proven",
        /// The bundle says so, and nothing in it or in the pins proves it.
        Unproven = "unproven",
        /// It is not true.
        Wrong = "wrong",
    }
}

/// What a bundle proves, claim by claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether it was approved, by the signed text.
    pub outcome: DecisionOutcome,
    /// What an approval covers, by the signed text.
    pub scope: Scope,
    /// Every claim that the bundle makes, once, in the order of [`Claim::ALL`]. The two about a lock are there only if the
    /// decision has an assertion of one; that about the person also if it approves what wanted one.
    pub findings: Vec<(Claim, Certainty)>,
}

impl Report {
    /// How certain one claim is.
    pub fn certainty(&self, claim: Claim) -> Certainty {
        let found = self.findings.iter().find(|(found, _)| *found == claim);
        found.map_or(Certainty::Unproven, |(_, certainty)| *certainty)
    }

    /// Whether nothing in the bundle is wrong. That does not mean that everything is proven.
    pub fn is_consistent(&self) -> bool {
        self.findings.iter().all(|(_, certainty)| *certainty != Certainty::Wrong)
    }
}

impl Claim {
    /// The claim as a sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Artifact => "The artifact has the hash that it says.",
            Self::About => "The decision is about this artifact.",
            Self::Signature => "The decision is signed by the keys in the bundle.",
            Self::Approver => "These keys are those of this approver.",
            Self::Person => {
                "The device has verified a person for exactly this decision, by the lock in the bundle."
            }
            Self::Lock => "This lock is that of the device.",
            Self::Words => "The words are those of the approver.",
            Self::Receipt => "The receipt is signed by the enforcer's keys in the bundle.",
            Self::Decision => "The receipt is about this decision.",
            Self::Enforcer => "These keys are those of this enforcer.",
            Self::Effect => "What was done is what the artifact says.",
            Self::Done => "The enforcer has done what the receipt says.",
        }
    }
}

impl Bundle {
    pub(crate) fn of(
        taken: &Taken,
        words: &Words,
        enforcer_id: &str,
        keys: &DeviceKeys,
        receipt: Receipt,
    ) -> Self {
        let version = if taken.decided.signer.lock.is_some() { VERSION_WITH_LOCK } else { VERSION };
        Self {
            version,
            artifact: Some(taken.decided.artifact.clone()),
            decision: taken.decided.decision.clone(),
            signer: taken.decided.signer.clone(),
            words: words.clone(),
            enforcer: BundleEnforcer { enforcer_id: enforcer_id.to_owned(), keys: keys.bundle().to_string() },
            payload: taken.other_payload.clone(),
            receipt,
        }
    }

    /// Reads a bundle that [`Bundle::to_json`] has written. Nothing of it is verified.
    pub fn read(text: &str) -> Result<Self, BundleError> {
        struct Version(u64);
        impl FromMembers<'_> for Version {
            fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
                Ok(Self(members.required::<Count>("version")?.0))
            }
        }
        let object = RawObject::parse(text.as_bytes()).map_err(|_| BundleError::Malformed)?;
        let version = object.view::<Version>().map_err(|_| BundleError::Malformed)?.0;
        if !(VERSION..=VERSION_WITH_LOCK).contains(&version) {
            return Err(BundleError::NewerVersion(version));
        }
        let bundle: Self = serde_json::from_str(text).map_err(|_| BundleError::Malformed)?;
        match (version == VERSION_WITH_LOCK) == bundle.signer.lock.is_some() {
            true => Ok(bundle),
            false => Err(BundleError::Malformed),
        }
    }

    /// The bundle as one JSON text. It has the artifact in the clear, if it has it.
    pub fn to_json(&self) -> Zeroizing<String> {
        match serde_json::to_string(self) {
            Ok(text) => Zeroizing::new(text),
            Err(_) => unreachable!("texts can be written as JSON"),
        }
    }

    /// Verifies everything that can be verified. Without pins it is not known whose keys are in the bundle; with the pins
    /// of an enforcer, whose the approver's are; with those of an approver, whose the enforcer's are.
    pub fn verify(&self, pins: Option<&Pins>) -> Result<Report, BundleError> {
        let malformed = |_| BundleError::Malformed;
        let artifact: Option<Verbatim<'_, Artifact<'_>>> = match &self.artifact {
            Some(text) => Some(countersign_wire::parse(text.as_bytes()).map_err(malformed)?),
            None => None,
        };
        let decision: Verbatim<'_, Decision<'_>> =
            countersign_wire::parse(self.decision.as_bytes()).map_err(malformed)?;
        let (signer, fingerprint) = self.signer.bundle().ok_or(BundleError::Malformed)?;
        let enforcer: KeyBundle = self.enforcer.keys.parse().map_err(|_| BundleError::Malformed)?;
        let is_about = |artifact: &Verbatim<'_, Artifact<'_>>| {
            decision.request_id == artifact.request_id
                && decision.artifact_hash == artifact.artifact_hash
                && decision.repo_ref == artifact.repo_ref
        };
        let of_artifact = |certainty: &dyn Fn(&Verbatim<'_, Artifact<'_>>) -> Certainty| {
            artifact.as_ref().map_or(Certainty::Unproven, certainty)
        };
        let is_signed = decision.verify(&signer.signing).is_ok()
            && Fingerprint::parse(&decision.signer_key_id) == Some(fingerprint);
        let is_of_decision = decision_hash(decision.raw())
            .is_ok_and(|hash| hash.to_string() == self.receipt.decision_hash)
            && self.receipt.decision_nonce == decision.nonce
            && self.receipt.request_id == decision.request_id.as_str();
        let is_receipt = self.receipt.is_signed_by(&enforcer.signing)
            && self.receipt.enforcer_id == self.enforcer.enforcer_id;
        let lock: Option<LockKey> =
            self.signer.lock.as_deref().map(str::parse).transpose().map_err(|_| BundleError::Malformed)?;
        let assertion = decision.policy_hints.map(Assertion::of).and_then(Result::transpose);
        let is_demanded = decision.decision == DecisionOutcome::Approve
            && artifact.as_ref().is_some_and(|artifact| Verify::of(artifact) == Verify::Person);
        let is_made = |claim: &&Claim| match claim {
            Claim::Person => assertion.is_some() || is_demanded,
            Claim::Lock => assertion.is_some(),
            _ => true,
        };
        let approver = self.signer.approver_id.parse().map(Party::Approver).ok();
        let asked_by = self.enforcer.enforcer_id.parse().map(Party::Enforcer).ok();
        let findings = Claim::ALL.iter().filter(is_made).map(|claim| {
            let certainty = match claim {
                Claim::Artifact => of_artifact(&|artifact| proven(artifact.check_hash().is_ok())),
                Claim::About => of_artifact(&|artifact| proven(is_about(artifact))),
                Claim::Signature => proven(is_signed),
                Claim::Approver => pinned(pins, fingerprint, approver.as_ref()),
                Claim::Person => person(lock.as_ref(), assertion.as_ref(), decision.raw()),
                Claim::Lock => pinned_lock(pins, fingerprint, lock.as_ref()),
                Claim::Receipt => proven(is_receipt),
                Claim::Decision => proven(is_of_decision),
                Claim::Enforcer => pinned(pins, Fingerprint::of(&enforcer), asked_by.as_ref()),
                Claim::Effect => of_artifact(&|artifact| self.effect(artifact)),
                Claim::Words | Claim::Done => Certainty::Unproven,
            };
            (*claim, certainty)
        });
        Ok(Report { outcome: decision.decision, scope: decision.scope, findings: findings.collect() })
    }

    /// Whether the receipt is about what was shown; or, under a pattern, about the payload in the bundle.
    fn effect(&self, artifact: &Artifact<'_>) -> Certainty {
        let name = repo_name(artifact).unwrap_or_default();
        let is_named = |payload: RawObject<'_>| {
            effect_hash(artifact.artifact_type, payload, &name)
                .is_ok_and(|hash| hash.to_string() == self.receipt.effect_hash)
        };
        match &self.payload {
            None => proven(is_named(artifact.payload)),
            // The pattern is among the words, which are not proven.
            Some(payload) => match RawObject::parse(payload.as_bytes()).is_ok_and(is_named) {
                true => Certainty::Unproven,
                false => Certainty::Wrong,
            },
        }
    }

    /// When the enforcer acted, by its clock; `None` if the receipt has no time.
    pub fn finished_at(&self) -> Option<Timestamp> {
        self.receipt.at.parse().ok()
    }
}

fn proven(is_true: bool) -> Certainty {
    if is_true { Certainty::Proven } else { Certainty::Wrong }
}

/// Whether the lock of the signer has verified a person for this decision.
fn person(
    lock: Option<&LockKey>,
    assertion: Option<&Result<Assertion, countersign_wire::Error>>,
    decision: RawObject<'_>,
) -> Certainty {
    match (lock, assertion) {
        // No machine accepts it: nobody was verified for what wanted a verified person.
        (_, None) => Certainty::Wrong,
        (Some(lock), Some(Ok(assertion))) => proven(lock::verify(lock, assertion, decision).is_ok()),
        // A device whose lock nobody has pinned may say what it likes.
        (None, _) => Certainty::Unproven,
        _ => Certainty::Wrong,
    }
}

/// Whether the pins say that these keys are those of this party. A pin that was revoked since still says whose they were.
fn pinned(pins: Option<&Pins>, fingerprint: Fingerprint, party: Option<&Party>) -> Certainty {
    match pins.and_then(|pins| pins.get(fingerprint)) {
        None => Certainty::Unproven,
        Some(pin) => proven(Some(pin.party()) == party),
    }
}

/// Whether the pins say that this lock is that of the device. Another one may have taken its place since.
fn pinned_lock(pins: Option<&Pins>, fingerprint: Fingerprint, lock: Option<&LockKey>) -> Certainty {
    let known = pins.and_then(|pins| pins.get(fingerprint)).and_then(Pin::lock);
    match known.is_some() && known == lock {
        true => Certainty::Proven,
        false => Certainty::Unproven,
    }
}

#[cfg(test)]
mod tests;
