//! Every check of a decision, and mutations of decisions and requests.

use std::time::Duration;

use countersign_testkit::authenticator::Authenticator;
use countersign_wire::{
    Verbatim,
    artifact::{Artifact, ArtifactType},
    decision::{Decision, DecisionOutcome, Scope},
    hash::Sha256Hex,
    id::EnforcerId,
    lock::Assertion,
    parse,
    timestamp::Timestamp,
};
use serde_json::Value;

use super::{verify::Received, *};
use crate::{
    checks,
    content::pattern::Pattern,
    exchange::{
        audience::{Audience, Verify},
        lock::{Gesture, LockFault},
        request::{Draft, OpenedRequest, Request, RequestError},
    },
    identity::{
        keys::DeviceKeys,
        profile::{Party, Pin, PinSource, Pins},
    },
    journal::MemoryJournal,
};

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
            session: Some("s1".to_owned()),
            actions: Vec::new(),
            edits: Vec::new(),
            to: Audience::everybody(),
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

    fn verifier<'a>(&'a self, pins: &'a Pins, journal: &'a MemoryJournal) -> Verifier<'a> {
        Verifier { enforcer: "robot", keys: &self.robot, pins, journal }
    }

    fn check(&self, text: &str, pins: &Pins, at: Timestamp) -> Result<VerifiedDecision, Rejected> {
        self.verifier(pins, &MemoryJournal::default()).verify(text.as_bytes(), &self.request, at)
    }

    /// The approval of somebody who is paired, and whom nobody has asked.
    fn by_somebody_else(&self) -> (Pins, String) {
        let bob = DeviceKeys::generate().unwrap();
        let mut pins = self.robots.clone();
        let party = Party::Approver("bob".parse().unwrap());
        pins.insert(Pin::new(party, bob.bundle(), PinSource::Paired, now())).unwrap();
        let choice = Choice {
            outcome: DecisionOutcome::Approve,
            scope: Scope::Once,
            valid_until: now().plus(Duration::from_mins(5)),
            words: Words::default(),
        };
        (pins, decide(&self.opened, &choice, &"bob".parse().unwrap(), &bob, now()).unwrap())
    }

    /// What would be accepted without one of the checks.
    fn check_without(
        &self,
        left_out: &str,
        text: &str,
        pins: &Pins,
        at: Timestamp,
    ) -> Result<VerifiedDecision, Rejected> {
        let journal = MemoryJournal::default();
        let verifier = self.verifier(pins, &journal);
        let received = Received::read(&verifier, text.as_bytes(), &self.request, at)?;
        let lists = [
            Received::SIGNED.as_slice(),
            &Received::ASKED,
            &Received::VERIFIED,
            &Received::IN_TIME,
            &Received::COVERS,
        ];
        for list in lists {
            checks::all_but(left_out, list, &received)?;
        }
        let words = received.words();
        received.accept(if left_out == "words" { words.unwrap_or_default() } else { words? })
    }
}

#[test]
fn a_decision_that_is_signed_sealed_and_in_time_is_verified() {
    let world = World::new();
    let verified = world.check(&world.decision(DecisionOutcome::Reject), &world.robots, now()).unwrap();
    assert_eq!((verified.outcome, verified.approver.as_str()), (DecisionOutcome::Reject, "ada"));
    assert_eq!(verified.words.reason.as_deref(), Some("fine"));
    assert_eq!(verified.device, world.ada.fingerprint());
}

#[test]
fn a_decision_for_a_session_names_that_of_the_request() {
    let world = World::new();
    let text = world.signed_with(|_, choice| choice.scope = Scope::Session);
    assert!(text.contains(r#""sessionId":"s1""#));
    let named = world.check(&text, &world.robots, now()).unwrap();
    assert_eq!((named.scope, named.session.as_deref()), (Scope::Session, Some("s1")));
    let once = world.check(&world.decision(DecisionOutcome::Approve), &world.robots, now()).unwrap();
    assert_eq!(once.session, None);
    // Without a session in the request nobody can approve for one, and a decision that names one counts for nothing.
    let choice = Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Session,
        valid_until: now().plus(Duration::from_mins(5)),
        words: Words::default(),
    };
    let opened = OpenedRequest { session: None, ..world.opened.clone() };
    let refused = decide(&opened, &choice, &"ada".parse().unwrap(), &world.ada, now());
    assert_eq!(refused, Err(ChoiceError::NoSession));
    let journal = MemoryJournal::default();
    let verifier = world.verifier(&world.robots, &journal);
    let sessionless = Request { session: None, ..world.request.clone() };
    assert!(matches!(verifier.check(text.as_bytes(), &sessionless, now()), Err(Rejected::NoSession)));
}

#[test]
fn words_with_a_pattern_that_is_none_are_not_accepted() {
    let world = World::new();
    let text = world.signed_with(|_, choice| {
        choice.words.pattern = Some(Pattern::new(["cargo", "test", "*"]).unwrap());
    });
    let verified = world.check(&text, &world.robots, now()).unwrap();
    assert_eq!(verified.words.pattern.unwrap().words(), ["cargo", "test", "*"]);
    assert!(serde_json::from_str::<Words>(r#"{"pattern":{"argv":["*"]}}"#).is_err());
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let world = World::new();
    let mut revoked = world.robots.clone();
    revoked.revoke(world.ada.fingerprint(), now()).unwrap();
    let flipped =
        world.decision(DecisionOutcome::Reject).replace(r#""decision":"reject""#, r#""decision":"approve""#);
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
    let other_session = world.signed_with(|opened, choice| {
        (opened.session, choice.scope) = (Some("s2".to_owned()), Scope::Session);
    });
    let (with_bob, by_bob) = world.by_somebody_else();
    let later = now().plus(Duration::from_mins(7));
    let (pins, early) = (&world.robots, now());
    type Expected = fn(&Rejected) -> bool;
    let attacks: [(&str, &str, &Pins, Timestamp, Expected); 9] = [
        ("request", &other_request, pins, early, |error| matches!(error, Rejected::OtherRequest)),
        ("content", &other_content, pins, early, |error| matches!(error, Rejected::OtherContent)),
        ("repository", &other_repo, pins, early, |error| matches!(error, Rejected::OtherRepository)),
        ("signer", &honest, &revoked, early, |error| matches!(error, Rejected::UnknownSigner)),
        ("signature", &flipped, pins, early, |error| matches!(error, Rejected::Signature)),
        ("asked", &by_bob, &with_bob, early, |error| matches!(error, Rejected::NotAsked)),
        ("time", &honest, pins, later, |error| matches!(error, Rejected::TooLate)),
        ("session", &other_session, pins, early, |error| matches!(error, Rejected::NoSession)),
        ("words", &other_words, pins, early, |error| matches!(error, Rejected::Words(_))),
    ];
    let listed = [Received::SIGNED.as_slice(), &Received::ASKED, &Received::IN_TIME, &Received::COVERS]
        .map(checks::names);
    let attacked = attacks.map(|(check, ..)| check);
    // That what was changed is approved once has a test of its own, with a request that was changed.
    assert_eq!(
        [&attacked[..8], &["once"], &attacked[8..]].concat(),
        [listed.concat(), vec!["words"]].concat()
    );
    for (check, text, pins, at, expected) in attacks {
        let error = world.check(text, pins, at).unwrap_err();
        assert!(expected(&error), "{check}: {error}");
        let won = world.check_without(check, text, pins, at);
        assert_eq!(won.unwrap().outcome, DecisionOutcome::Approve, "without {check} the attack succeeds");
    }
    let journal = MemoryJournal::default();
    let verifier = world.verifier(&world.robots, &journal);
    let (text, request) = (honest.as_bytes(), &world.request);
    verifier.verify(text, request, now()).unwrap();
    assert!(matches!(verifier.verify(text, request, now()), Err(Rejected::Replayed)));
    verifier.check(text, request, now()).expect("nothing else notices that it was used");
}

/// The world with a lock that is pinned for ada's phone.
fn with_lock() -> (World, Authenticator) {
    let (world, phone) = (World::new(), Authenticator::new("gw.example"));
    let mut robots = Pins::default();
    let party = Party::Approver("ada".parse().unwrap());
    let pin = Pin::new(party, world.ada.bundle(), PinSource::Paired, now());
    robots.insert(pin.with_lock(Some(phone.lock().clone()))).unwrap();
    (World { robots, ..world }, phone)
}

impl World {
    /// A decision that a lock confirms, or something else does.
    fn confirmed(
        &self,
        outcome: DecisionOutcome,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> String {
        let valid_until = now().plus(Duration::from_mins(5));
        let choice = Choice { outcome, scope: Scope::Once, valid_until, words: Words::default() };
        decide_with(&self.opened, &choice, &"ada".parse().unwrap(), &self.ada, now(), lock).unwrap()
    }

    /// Another request, of a draft that is changed.
    fn asking(self, change: impl FnOnce(&mut Draft)) -> Self {
        let mut draft = self.request.draft().unwrap();
        change(&mut draft);
        let request =
            Request::build(&draft, &"robot".parse().unwrap(), &self.robot, &self.robots, now()).unwrap();
        let opened = OpenedRequest {
            request_id: request.request_id.clone(),
            artifact_hash: request.artifact_hash,
            verify: draft.to.verify,
            ..self.opened.clone()
        };
        Self { request, opened, ..self }
    }
}

const HARMLESS: &str = r#"{"schema":"org.proto.payload","version":2,"state":"examined","argv":["ls"],"cwd":"/work","effects":[]}"#;
const DANGEROUS: &str = r#"{"schema":"org.proto.payload","version":2,"state":"examined","argv":["rm","x"],"cwd":"/work","effects":[{"effect":"deletes"}]}"#;

#[test]
fn what_is_serious_needs_the_lock_that_is_pinned_and_nothing_else_does() {
    let approve = DecisionOutcome::Approve;
    let (world, phone) = with_lock();
    // Its payload is not one that was examined.
    let locked = world.check(&world.confirmed(approve, |asked| phone.confirm(asked)), &world.robots, now());
    assert_eq!(locked.unwrap().gesture, Some(Gesture));
    let without = world.check(&world.confirmed(approve, |_| None), &world.robots, now());
    assert!(matches!(without, Err(Rejected::NotVerified)));
    let rejected = world.check(&world.confirmed(DecisionOutcome::Reject, |_| None), &world.robots, now());
    assert_eq!(rejected.unwrap().gesture, None, "a rejection is always safe");
    let unpinned = World::new();
    let text = unpinned.confirmed(approve, |asked| phone.confirm(asked));
    let old = unpinned.check(&text, &unpinned.robots, now()).unwrap();
    assert_eq!(old.gesture, None, "what a lock says that nobody has pinned counts for nothing, as before");
    for (payload, is_needed) in [(HARMLESS, false), (DANGEROUS, true)] {
        let (world, _) = with_lock();
        let world = world.asking(|draft| payload.clone_into(&mut draft.payload));
        let decided = world.check(&world.confirmed(approve, |_| None), &world.robots, now());
        assert_eq!(decided.is_err(), is_needed, "{payload}");
    }
}

#[test]
fn where_a_rule_wants_a_verified_person_devices_without_a_lock_do_not_approve() {
    let approve = DecisionOutcome::Approve;
    let verified = |draft: &mut Draft| {
        HARMLESS.clone_into(&mut draft.payload);
        draft.to.verify = Verify::Person;
    };
    let (world, phone) = with_lock();
    let world = world.asking(verified);
    assert_eq!(world.request.draft().unwrap().to.verify, Verify::Person, "also when it is asked again");
    let locked = world.confirmed(approve, |asked| phone.confirm(asked));
    world.check(&locked, &world.robots, now()).unwrap();
    let without = world.check(&world.confirmed(approve, |_| None), &world.robots, now());
    assert!(matches!(without, Err(Rejected::NotVerified)));
    // The same device, whose lock this machine does not know.
    let old = World::new();
    let refused = world.check(&locked, &old_pins(&world), now());
    assert!(matches!(refused, Err(Rejected::NotVerified)));
    let mut draft = old.request.draft().unwrap();
    verified(&mut draft);
    let asked = Request::build(&draft, &"robot".parse().unwrap(), &old.robot, &old.robots, now());
    assert!(matches!(asked, Err(RequestError::NobodyVerified)), "nobody could approve it");
    // What is said there that is not known here means the same.
    let changed = world
        .request
        .artifact
        .replace(r#""org.countersign.verify":"person""#, r#""org.countersign.verify":2"#);
    let artifact: Verbatim<'_, Artifact<'_>> = parse(changed.as_bytes()).unwrap();
    assert_eq!(Verify::of(&artifact), Verify::Person);
}

/// The pins of a machine that knows the device and not its lock.
fn old_pins(world: &World) -> Pins {
    let mut pins = Pins::default();
    let party = Party::Approver("ada".parse().unwrap());
    pins.insert(Pin::new(party, world.ada.bundle(), PinSource::Paired, now())).unwrap();
    pins
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_of_the_lock_catches_what_no_other_catches() {
    let approve = DecisionOutcome::Approve;
    let (world, phone) = with_lock();
    let stranger = Authenticator::new("gw.example");
    let other = world.confirmed(approve, |asked| stranger.confirm(asked));
    let none = world.confirmed(approve, |_| None);
    let attacks = [("lock", &other), ("person", &none)];
    assert_eq!(attacks.map(|(check, _)| check).as_slice(), checks::names(&Received::VERIFIED));
    for (check, text) in attacks {
        let error = world.check(text, &world.robots, now()).unwrap_err();
        assert!(
            matches!(error, Rejected::Lock(LockFault::Signature) | Rejected::NotVerified),
            "{check}: {error}"
        );
        let won = world.check_without(check, text, &world.robots, now());
        assert_eq!(won.unwrap().outcome, approve, "without {check} the attack succeeds");
    }
    // The assertion of one decision in another: its nonce and its words are new.
    let mut first = None;
    world.confirmed(approve, |asked| {
        first = phone.confirm(asked);
        None
    });
    let replayed = world.check(&world.confirmed(approve, |_| first), &world.robots, now());
    assert!(matches!(replayed, Err(Rejected::Lock(LockFault::OtherDecision))));
    // What is no assertion is refused where a lock is pinned, and nowhere else.
    let broken = with_hint(&world, "lock", Value::Bool(true));
    assert!(matches!(world.check(&broken, &world.robots, now()), Err(Rejected::Lock(LockFault::Malformed))));
    world.check(&broken, &old_pins(&world), now()).unwrap();
}

/// A decision with another hint, signed as it is.
fn with_hint(world: &World, name: &str, value: Value) -> String {
    let text = world.confirmed(DecisionOutcome::Approve, |_| None);
    let mut decision: Value = serde_json::from_str(&text).unwrap();
    decision["policyHints"][name] = value;
    let text = decision.to_string();
    let read: Verbatim<'_, Decision<'_>> = parse(text.as_bytes()).unwrap();
    let signed = read.into_view().sign(&world.ada.signing_key()).unwrap();
    serde_json::to_string(&signed).unwrap()
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
    // Also of one that a lock confirms, beside one that it has confirmed for another request.
    let (locked, phone) = with_lock();
    let confirmed = |world: &World| world.confirmed(DecisionOutcome::Approve, |asked| phone.confirm(asked));
    let cases = [(&world, rejection, other), (&locked, confirmed(&locked), confirmed(&elsewhere))];
    let mut rng = Rng(0x5eed);
    let (mut refused, mut same) = (0, 0);
    for (world, honest, other) in &cases {
        let original = world.check(honest, &world.robots, now()).unwrap();
        for _ in 0..rounds("COUNTERSIGN_DECISION_MUTATIONS", 20_000) / cases.len() {
            let text = mutated(&mut rng, honest, other);
            match world.check(&text, &world.robots, now()) {
                Err(_) => refused += 1,
                // The same decision in other words: white space, or a copied member.
                Ok(verified) => {
                    assert_eq!(verified, original, "{text}");
                    same += 1;
                }
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
