//! A decision: made and signed by an approver; verified by the enforcer that asked. No I/O.

use std::time::Duration;

use countersign_wire::{
    RawObject, Verbatim, base64url,
    decision::{Decision, DecisionOutcome, Scope, SigAlg},
    hash::HashAlg,
    id::ApproverId,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    journal::{Journal, JournalError},
    keys::{DeviceKeys, Fingerprint},
    profile::{Party, Pins},
    random::{self, NoRandomness},
    request::{OpenedRequest, Request},
    seal::{Context, Recipient, SealError, Sealed, seal},
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
}

/// What an approver decides.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Whether what was asked for may be done.
    pub outcome: DecisionOutcome,
    /// What an approval covers.
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
    let hints = json!({ "sealed": seal(keys, &context, &words, &[recipient])? }).to_string();
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
    /// Its signature does not verify.
    #[error("the signature of the decision does not verify")]
    Signature,
    /// It must not be acted on any more.
    #[error("the decision came too late")]
    TooLate,
    /// It covers a session, and does not say which.
    #[error("the decision covers a session, and names none")]
    NoSession,
    /// What it says beyond approve or reject does not open.
    #[error("what the decision says can't be read: {0}")]
    Words(SealError),
    /// It was used before.
    #[error("the decision was used before")]
    Replayed,
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

/// A check of a decision. The tests take each out once, to show that nothing else catches what it catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Request,
    Content,
    Repository,
    Signer,
    Signature,
    Time,
    Session,
    Words,
    Replay,
}

impl Verifier<'_> {
    /// Checks a decision about a request, in the order of `docs/trust.md`, and records that it is used.
    pub fn verify(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
    ) -> Result<VerifiedDecision, Rejected> {
        self.verify_except(text, request, now, None)
    }

    fn verify_except(
        &self,
        text: &[u8],
        request: &Request,
        now: Timestamp,
        except: Option<Check>,
    ) -> Result<VerifiedDecision, Rejected> {
        let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
        let decision: Verbatim<'_, Decision<'_>> =
            countersign_wire::parse(text).map_err(|_| Rejected::Malformed)?;
        if fails(Check::Request, decision.request_id != request.request_id) {
            return Err(Rejected::OtherRequest);
        }
        if fails(Check::Content, decision.artifact_hash != request.artifact_hash) {
            return Err(Rejected::OtherContent);
        }
        if fails(Check::Repository, decision.repo_ref != request.repo_ref) {
            return Err(Rejected::OtherRepository);
        }
        let device = Fingerprint::parse(&decision.signer_key_id).ok_or(Rejected::UnknownSigner)?;
        let pin = self.pins.get(device).ok_or(Rejected::UnknownSigner)?;
        if fails(Check::Signer, !self.pins.is_active(device, now)) {
            return Err(Rejected::UnknownSigner);
        }
        let Party::Approver(approver) = pin.party() else { return Err(Rejected::UnknownSigner) };
        if fails(Check::Signature, decision.verify(&pin.bundle().signing).is_err()) {
            return Err(Rejected::Signature);
        }
        if fails(Check::Time, now >= decision.expires_at.plus(SKEW)) {
            return Err(Rejected::TooLate);
        }
        let names_no_session = decision.scope == Scope::Session && session_id(&decision).is_none();
        if fails(Check::Session, names_no_session) {
            return Err(Rejected::NoSession);
        }
        let words = match words(&decision, approver, self.enforcer, self.keys, pin.bundle()) {
            Err(error) if fails(Check::Words, true) => return Err(error),
            words => words.unwrap_or_default(),
        };
        let keep_until = decision.expires_at.plus(SKEW).max(now.plus(MIN_NONCE_MEMORY));
        let is_new = self.journal.use_nonce(&decision.nonce, request.request_id.as_str(), keep_until)?;
        if fails(Check::Replay, !is_new) {
            return Err(Rejected::Replayed);
        }
        Ok(verified(&decision, approver, device, words))
    }
}

fn verified(
    decision: &Decision<'_>,
    approver: &ApproverId,
    device: Fingerprint,
    words: Words,
) -> VerifiedDecision {
    VerifiedDecision {
        outcome: decision.decision,
        scope: decision.scope,
        valid_until: decision.expires_at,
        approver: approver.clone(),
        device,
        words,
    }
}

fn session_id(decision: &Decision<'_>) -> Option<String> {
    decision.policy_hints?.members().ok()?.optional("sessionId").ok()?
}

/// What the decision says beyond approve or reject; nothing if it has no sealed words.
fn words(
    decision: &Decision<'_>,
    approver: &ApproverId,
    enforcer: &str,
    keys: &DeviceKeys,
    signer: &countersign_wire::keys::KeyBundle,
) -> Result<Words, Rejected> {
    let Some(hints) = decision.policy_hints else { return Ok(Words::default()) };
    #[derive(Deserialize)]
    struct Hints {
        sealed: Option<Sealed>,
    }
    let hints: Hints =
        serde_json::from_str(hints.as_str()).map_err(|_| Rejected::Words(SealError::Malformed))?;
    let Some(sealed) = hints.sealed else { return Ok(Words::default()) };
    let hash = decision.artifact_hash.to_string();
    let context = hints_context(decision.request_id.as_str(), &hash, approver, &decision.nonce);
    let text = sealed.open(keys, enforcer, signer, &context).map_err(Rejected::Words)?;
    serde_json::from_slice(&text).map_err(|_| Rejected::Words(SealError::Malformed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::MemoryJournal,
        profile::{Pin, PinSource},
        request::Draft,
    };
    use countersign_wire::{artifact::ArtifactType, hash::Sha256Hex, id::EnforcerId, parse};
    use serde_json::Value;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn now() -> Timestamp {
        at("2026-11-15T12:00:00Z")
    }

    /// An enforcer, its approver, a request between them and the approver's answer.
    struct World {
        robot: DeviceKeys,
        ada: DeviceKeys,
        robots: Pins,
        request: Request,
        opened: OpenedRequest,
    }

    impl World {
        fn new() -> Self {
            let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
            let enforcer: EnforcerId = "robot".parse().unwrap();
            let pinned = |party, keys: &DeviceKeys| {
                let mut pins = Pins::default();
                pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, now())).unwrap();
                pins
            };
            let robots = pinned(Party::Approver("ada".parse().unwrap()), &ada);
            let adas = pinned(Party::Enforcer(enforcer.clone()), &robot);
            let draft = Draft {
                artifact_type: ArtifactType::CommandReview,
                payload: r#"{"argv":["rm","-rf","build"]}"#.to_owned(),
                repo_name: "acme/widgets".to_owned(),
                valid_for: Duration::from_mins(10),
            };
            let request = Request::build(&draft, &enforcer, &robot, &robots, now()).unwrap();
            let pushed = request.envelope.replace("artifact.submit", "approval.request");
            let envelope = parse(pushed.as_bytes()).unwrap();
            let opened = OpenedRequest::open(&envelope, "ada", &ada, &adas, now()).unwrap();
            Self { robot, ada, robots, request, opened }
        }

        fn decision(&self, outcome: DecisionOutcome) -> String {
            let words = Words { reason: Some("fine".to_owned()), ..Words::default() };
            let valid_until = now().plus(Duration::from_mins(5));
            let choice = Choice { outcome, scope: Scope::Once, valid_until, words };
            decide(&self.opened, &choice, &"ada".parse().unwrap(), &self.ada, now()).unwrap()
        }

        /// A decision with other members, signed by the approver as it is.
        fn signed_with(&self, change: impl FnOnce(&mut OpenedRequest, &mut Choice)) -> String {
            let mut opened = self.opened.clone();
            let mut choice = Choice {
                outcome: DecisionOutcome::Approve,
                scope: Scope::Once,
                valid_until: now().plus(Duration::from_mins(5)),
                words: Words::default(),
            };
            change(&mut opened, &mut choice);
            decide(&opened, &choice, &"ada".parse().unwrap(), &self.ada, now()).unwrap()
        }

        fn check(
            &self,
            text: &str,
            pins: &Pins,
            at: Timestamp,
            except: Option<Check>,
        ) -> Result<VerifiedDecision, Rejected> {
            let journal = MemoryJournal::default();
            let verifier = Verifier { enforcer: "robot", keys: &self.robot, pins, journal: &journal };
            verifier.verify_except(text.as_bytes(), &self.request, at, except)
        }
    }

    #[test]
    fn a_decision_that_is_signed_sealed_and_in_time_is_verified() {
        let world = World::new();
        let verified =
            world.check(&world.decision(DecisionOutcome::Reject), &world.robots, now(), None).unwrap();
        assert_eq!((verified.outcome, verified.approver.as_str()), (DecisionOutcome::Reject, "ada"));
        assert_eq!(verified.words.reason.as_deref(), Some("fine"));
        assert_eq!(verified.device, world.ada.fingerprint());
    }

    /// For each check an attack that is refused because of it, and succeeds without it.
    #[test]
    fn every_check_catches_what_no_other_catches() {
        let world = World::new();
        let mut revoked = world.robots.clone();
        revoked.revoke(world.ada.fingerprint(), now()).unwrap();
        let flipped = world
            .decision(DecisionOutcome::Reject)
            .replace(r#""decision":"reject""#, r#""decision":"approve""#);
        let other_words = {
            let other = DeviceKeys::generate().unwrap();
            world.signed_with(|opened, _| {
                let party = Party::Enforcer("robot".parse().unwrap());
                opened.asked_by = Pin::new(party, other.bundle(), PinSource::Paired, now());
            })
        };
        let other_request = world.signed_with(|opened, _| opened.request_id = "other".parse().unwrap());
        let other_content = world.signed_with(|opened, _| opened.artifact_hash = Sha256Hex::digest(b"other"));
        let other_repo = world.signed_with(|opened, _| opened.repo_ref = "repo:other".to_owned());
        let honest = world.decision(DecisionOutcome::Approve);
        let no_session = world.signed_with(|_, choice| choice.scope = Scope::Session);
        let later = now().plus(Duration::from_mins(7));
        let (pins, early) = (&world.robots, now());
        type Expected = fn(&Rejected) -> bool;
        let attacks: [(Check, &str, &Pins, Timestamp, Expected); 8] = [
            (Check::Request, &other_request, pins, early, |error| matches!(error, Rejected::OtherRequest)),
            (Check::Content, &other_content, pins, early, |error| matches!(error, Rejected::OtherContent)),
            (Check::Repository, &other_repo, pins, early, |error| matches!(error, Rejected::OtherRepository)),
            (Check::Signer, &honest, &revoked, early, |error| matches!(error, Rejected::UnknownSigner)),
            (Check::Signature, &flipped, pins, early, |error| matches!(error, Rejected::Signature)),
            (Check::Time, &honest, pins, later, |error| matches!(error, Rejected::TooLate)),
            (Check::Session, &no_session, pins, early, |error| matches!(error, Rejected::NoSession)),
            (Check::Words, &other_words, pins, early, |error| matches!(error, Rejected::Words(_))),
        ];
        for (check, text, pins, at, expected) in attacks {
            let error = world.check(text, pins, at, None).unwrap_err();
            assert!(expected(&error), "{check:?}: {error}");
            let won = world.check(text, pins, at, Some(check));
            assert_eq!(
                won.unwrap().outcome,
                DecisionOutcome::Approve,
                "without {check:?} the attack succeeds"
            );
        }
        let journal = MemoryJournal::default();
        let verifier =
            Verifier { enforcer: "robot", keys: &world.robot, pins: &world.robots, journal: &journal };
        let use_it = |except| verifier.verify_except(honest.as_bytes(), &world.request, now(), except);
        use_it(None).unwrap();
        assert!(matches!(use_it(None), Err(Rejected::Replayed)));
        use_it(Some(Check::Replay)).unwrap();
    }

    /// A small generator, so that a failure can be repeated.
    struct Rng(u64);

    impl Rng {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % limit as u64).unwrap()
        }
    }

    /// Changes a JSON text somewhere: a byte, a member, or what another message has in its place.
    fn mutated(rng: &mut Rng, text: &str, other: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        match rng.below(6) {
            0 => bytes[rng.below(text.len())] ^= 1 << rng.below(7),
            1 => drop(bytes.remove(rng.below(text.len()))),
            2 => bytes.insert(rng.below(text.len()), b"\"{}0A, ["[rng.below(8)]),
            3 => {
                let (from, length) = (rng.below(text.len()), rng.below(40));
                let to = rng.below(text.len());
                let part: Vec<u8> = bytes[from..(from + length).min(text.len())].to_vec();
                bytes.splice(to..to, part);
            }
            _ => {
                let mut object: Value = serde_json::from_str(text).unwrap();
                let other: Value = serde_json::from_str(other).unwrap();
                let members: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
                let name = &members[rng.below(members.len())];
                match rng.below(3) {
                    0 => drop(object.as_object_mut().unwrap().remove(name)),
                    1 => object[name] = other[name].clone(),
                    _ => object[name] = Value::from("approve"),
                }
                return object.to_string();
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn rounds(name: &str, usual: usize) -> usize {
        std::env::var(name).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
    }

    #[test]
    fn no_mutation_of_a_decision_is_accepted() {
        let (world, elsewhere) = (World::new(), World::new());
        let rejection = world.decision(DecisionOutcome::Reject);
        let other = elsewhere.decision(DecisionOutcome::Approve);
        let original = world.check(&rejection, &world.robots, now(), None).unwrap();
        let mut rng = Rng(0x5eed);
        let (mut refused, mut same) = (0, 0);
        for _ in 0..rounds("COUNTERSIGN_DECISION_MUTATIONS", 20_000) {
            let text = mutated(&mut rng, &rejection, &other);
            match world.check(&text, &world.robots, now(), None) {
                Err(_) => refused += 1,
                // The same decision in other words: white space, or a copied member.
                Ok(verified) => {
                    assert_eq!(verified, original, "{text}");
                    same += 1;
                }
            }
        }
        println!("{refused} refused, {same} were the same decision");
        assert!(refused > same * 10);
    }

    #[test]
    fn no_mutation_of_a_request_is_opened_as_something_else() {
        let (world, elsewhere) = (World::new(), World::new());
        let adas = {
            let mut pins = Pins::default();
            pins.insert(world.opened.asked_by.clone()).unwrap();
            pins
        };
        let pushed = |world: &World| world.request.envelope.replace("artifact.submit", "approval.request");
        let (text, other) = (pushed(&world), pushed(&elsewhere));
        let mut rng = Rng(0xfeed);
        let (mut refused, mut same) = (0, 0);
        for _ in 0..rounds("COUNTERSIGN_REQUEST_MUTATIONS", 2_000) {
            // Inside of the body as often as around it.
            let text = if rng.below(2) == 0 {
                mutated(&mut rng, &text, &other)
            } else {
                let [mut outer, other]: [Value; 2] =
                    [&text, &other].map(|text| serde_json::from_str(text).unwrap());
                let body = mutated(&mut rng, &outer["body"].to_string(), &other["body"].to_string());
                outer["body"] = Value::Null;
                outer.to_string().replace("\"body\":null", &format!("\"body\":{body}"))
            };
            let Ok(envelope) = parse(text.as_bytes()) else {
                refused += 1;
                continue;
            };
            match OpenedRequest::open(&envelope, "ada", &world.ada, &adas, now()) {
                Err(_) => refused += 1,
                Ok(opened) => {
                    assert_eq!(opened.payload, world.opened.payload);
                    assert_eq!(opened.artifact_hash, world.opened.artifact_hash);
                    assert_eq!(
                        (opened.request_id, opened.expires_at),
                        (world.opened.request_id.clone(), world.opened.expires_at)
                    );
                    assert_eq!(opened.asked_by, world.opened.asked_by);
                    same += 1;
                }
            }
        }
        println!("{refused} refused, {same} were the same request");
        assert!(refused > same);
    }
}
