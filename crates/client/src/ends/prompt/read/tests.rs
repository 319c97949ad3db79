//! Every check of a prompt, and mutations of prompts.

use super::{
    super::write::{Prompt, PromptDraft, PromptError, plaintext},
    *,
};
use crate::{
    exchange::seal::{Recipient, seal},
    identity::{
        pairing::statement::{Claim, Issue},
        profile::{Pin, PinSource},
    },
    journal::MemoryJournal,
};

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// An enforcer, its approver, and what both have pinned.
struct World {
    robot: DeviceKeys,
    ada: DeviceKeys,
    robots: Pins,
    adas: Pins,
}

impl World {
    fn new() -> Self {
        let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
        let pinned = |party, keys: &DeviceKeys| {
            let mut pins = Pins::default();
            pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, now())).unwrap();
            pins
        };
        let robots = pinned(Party::Approver("ada".parse().unwrap()), &ada);
        let adas = pinned(Party::Enforcer("robot".parse().unwrap()), &robot);
        Self { robot, ada, robots, adas }
    }

    fn prompt(&self, draft: &PromptDraft) -> Prompt {
        let (ada, robot) = ("ada".parse().unwrap(), "robot".parse().unwrap());
        Prompt::build(draft, &ada, &robot, &self.ada, &self.adas, now()).unwrap()
    }

    /// A prompt whose plaintext is changed before it is hashed, in an envelope for what `outer` says.
    fn sealed(
        &self,
        draft: &PromptDraft,
        change: impl FnOnce(&mut Value),
        outer: (&str, Option<Sha256Hex>, Target),
    ) -> String {
        let (text, _) = plaintext(draft, &"r".parse().unwrap(), now()).unwrap();
        let mut prompt: Value = serde_json::from_str(&text).unwrap();
        change(&mut prompt);
        let text = prompt.to_string();
        let hash =
            Sha256Hex::of_object_without(RawObject::parse(text.as_bytes()).unwrap(), "promptHash").unwrap();
        prompt["promptHash"] = json!(hash);
        let (id, other_hash, target) = outer;
        let hash = other_hash.unwrap_or(hash);
        let context = context(&id.parse().unwrap(), hash, &"ada".parse().unwrap(), target);
        let recipient = Recipient { id: "robot", bundle: self.robot.bundle() };
        let sealed = seal(&self.ada, &context, prompt.to_string().as_bytes(), &[recipient]).unwrap();
        json!({
            "msgType": "prompt.send", "requestId": id, "createdAt": now(), "sender": { "approverId": "ada" },
            "body": { "ciphertext": sealed, "promptHash": hash, "target": target },
        })
        .to_string()
    }

    fn reader<'a>(&'a self, pins: &'a Pins, journal: &'a MemoryJournal) -> PromptReader<'a> {
        PromptReader { enforcer: "robot", keys: &self.robot, pins, journal }
    }

    fn open(&self, text: &str, pins: &Pins, at: Timestamp) -> Result<OpenedPrompt, PromptRefused> {
        let envelope = parse(text.as_bytes()).map_err(|_| PromptRefused::Malformed)?;
        self.reader(pins, &MemoryJournal::default()).open(&envelope, at)
    }
}

/// What would be accepted, before it is recorded as taken, without one of the checks.
fn accept_without(
    left_out: &str,
    reader: &PromptReader<'_>,
    text: &str,
    at: Timestamp,
) -> Result<OpenedPrompt, PromptRefused> {
    let envelope = parse(text.as_bytes()).unwrap();
    let relayed = Relayed::read(&envelope, reader.pins, at)?;
    checks::all_but(left_out, &Relayed::SENDER, &relayed)?;
    let text = relayed.open(reader)?;
    let unsealed = Unsealed::read(&relayed, &text, at)?;
    checks::all_but(left_out, &Unsealed::AGREES, &unsealed)?;
    unsealed.accept()
}

fn words() -> PromptDraft {
    PromptDraft {
        target: Target::AgentChat,
        content: PromptContent::Text("use the other branch".to_owned()),
        session_id: Some("s1".parse().unwrap()),
        valid_for: Duration::from_mins(10),
    }
}

fn statement(world: &World) -> PromptDraft {
    let issue = Issue { enforcer_id: "robot", id: "s", by: "ada", at: now() };
    let claim = Claim::revoke(world.robot.fingerprint());
    let statement = world.ada.sign_statement(issue, claim).unwrap();
    let content = PromptContent::Statement(Box::new(statement));
    PromptDraft { target: Target::Other, content, ..words() }
}

fn stop(why: Option<&str>) -> PromptDraft {
    let content = PromptContent::Stop { words: why.map(str::to_owned) };
    PromptDraft { target: Target::Other, content, ..words() }
}

#[test]
fn words_statements_and_stops_arrive_as_they_were_said() {
    let world = World::new();
    for draft in [words(), statement(&world), stop(None), stop(Some("the other branch"))] {
        let prompt = world.prompt(&draft);
        assert!(!prompt.envelope.contains("other branch") && !prompt.envelope.contains("revoke"));
        let opened = world.open(&prompt.envelope, &world.robots, now()).unwrap();
        assert_eq!((&opened.content, opened.target), (&draft.content, draft.target));
        assert_eq!((opened.approver.as_str(), opened.device), ("ada", world.ada.fingerprint()));
        assert_eq!((&opened.request_id, opened.prompt_hash), (&prompt.request_id, prompt.prompt_hash));
        assert_eq!((opened.session_id, opened.created_at), (draft.session_id, now()));
        assert_eq!(opened.expires_at, now().plus(Duration::from_mins(10)));
    }
}

#[test]
fn what_can_not_be_said_is_not_built() {
    let world = World::new();
    let build = |draft: &PromptDraft, enforcer: &str| {
        let (ada, enforcer) = ("ada".parse().unwrap(), enforcer.parse().unwrap());
        Prompt::build(draft, &ada, &enforcer, &world.ada, &world.adas, now()).unwrap_err()
    };
    assert!(matches!(build(&words(), "other"), PromptError::NotPaired(_)));
    let empty = PromptDraft { content: PromptContent::Text(String::new()), ..words() };
    assert_eq!(build(&empty, "robot"), PromptError::Empty);
    let misplaced = PromptDraft { target: Target::Tool, ..statement(&world) };
    assert_eq!(build(&misplaced, "robot"), PromptError::StatementTarget);
    let misplaced = PromptDraft { target: Target::AgentChat, ..stop(None) };
    assert_eq!(build(&misplaced, "robot"), PromptError::StopTarget);
    let everywhere = PromptDraft { session_id: None, ..stop(None) };
    assert_eq!(build(&everywhere, "robot"), PromptError::StopTarget);
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let world = World::new();
    let (draft, chat) = (words(), Target::AgentChat);
    let honest = world.sealed(&draft, |_| (), ("r", None, chat));
    world.open(&honest, &world.robots, now()).unwrap();
    let mut revoked = world.robots.clone();
    revoked.revoke(world.ada.fingerprint(), now()).unwrap();
    let other_content = world.sealed(&draft, |_| (), ("r", Some(Sha256Hex::digest(b"other")), chat));
    let other_id = world.sealed(&draft, |_| (), ("r2", None, chat));
    let other_target = world.sealed(&draft, |_| (), ("r", None, Target::Tool));
    let misplaced = world.sealed(&statement(&world), |it| it["target"] = json!(chat), ("r", None, chat));
    let late = now().plus(Duration::from_mins(11));
    type Expected = fn(&PromptRefused) -> bool;
    let attacks: [(&str, &str, &Pins, Timestamp, Expected); 6] = [
        ("sender", &honest, &revoked, now(), |it| matches!(it, PromptRefused::UnknownSender)),
        ("hash", &other_content, &world.robots, now(), |it| {
            matches!(it, PromptRefused::Differs("promptHash"))
        }),
        ("request id", &other_id, &world.robots, now(), |it| {
            matches!(it, PromptRefused::Differs("requestId"))
        }),
        ("target", &other_target, &world.robots, now(), |it| matches!(it, PromptRefused::Differs("target"))),
        ("content", &misplaced, &world.robots, now(), |it| matches!(it, PromptRefused::Malformed)),
        ("time", &honest, &world.robots, late, |it| matches!(it, PromptRefused::Expired)),
    ];
    let listed = [checks::names(&Relayed::SENDER), checks::names(&Unsealed::AGREES)].concat();
    assert_eq!(attacks.map(|(check, ..)| check).as_slice(), listed);
    let journal = MemoryJournal::default();
    for (check, text, pins, at, expected) in attacks {
        let error = world.open(text, pins, at).unwrap_err();
        assert!(expected(&error), "{check}: {error}");
        accept_without(check, &world.reader(pins, &journal), text, at)
            .unwrap_or_else(|error| panic!("without {check}: {error}"));
    }
    let reader = world.reader(&world.robots, &journal);
    let envelope = parse(honest.as_bytes()).unwrap();
    reader.open(&envelope, now()).unwrap();
    assert!(matches!(reader.open(&envelope, now()), Err(PromptRefused::Replayed)));
    accept_without("replay", &reader, &honest, now()).expect("nothing else notices that it was taken");
}

#[test]
fn only_what_a_paired_approver_sealed_to_this_enforcer_is_taken() {
    let (world, elsewhere) = (World::new(), World::new());
    let honest = world.prompt(&words()).envelope;
    // Sealed to another machine of the same name, or by another device.
    let other_machine = PromptReader {
        enforcer: "robot",
        keys: &elsewhere.robot,
        pins: &world.robots,
        journal: &MemoryJournal::default(),
    };
    let refused = other_machine.open(&parse(honest.as_bytes()).unwrap(), now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::Seal(SealError::NotForThisDevice)), "{refused}");
    let other_name = PromptReader { enforcer: "robot2", keys: &world.robot, ..other_machine };
    let refused = other_name.open(&parse(honest.as_bytes()).unwrap(), now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::Seal(SealError::NotForThisDevice)), "{refused}");
    let refused = world.open(&honest, &elsewhere.robots, now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::UnknownSender), "{refused}");
    // A device that is pinned as an enforcer's says nothing here.
    let refused = world.open(&honest, &elsewhere.adas, now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::UnknownSender), "{refused}");
    // The gateway's own words.
    let (text, hash) = plaintext(&words(), &"r".parse().unwrap(), now()).unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["promptHash"], json!(hash));
    let open = json!({
        "msgType": "prompt.send", "requestId": "r", "createdAt": now(), "sender": { "approverId": "ada" }, "body": body,
    });
    let refused = world.open(&open.to_string(), &world.robots, now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::NotSealed), "{refused}");
}

#[test]
fn a_prompt_has_one_way_to_be_written() {
    let world = World::new();
    let refused = |draft: &PromptDraft, change: fn(&mut Value)| {
        let text = world.sealed(draft, change, ("r", None, draft.target));
        matches!(world.open(&text, &world.robots, now()), Err(PromptRefused::Malformed))
    };
    assert!(!refused(&words(), |_| ()));
    assert!(refused(&words(), |it| drop(it["extensions"].as_object_mut().unwrap().remove(EXPIRES_AT.key()))));
    assert!(refused(&words(), |it| drop(it["extensions"].as_object_mut().unwrap().remove(SALT.key()))));
    assert!(refused(&words(), |it| drop(it.as_object_mut().unwrap().remove("extensions"))));
    assert!(refused(&words(), |it| it["extensions"][STATEMENT.key()] = json!({ "v": 1 })));
    assert!(refused(&words(), |it| it["more"] = json!(1)));
    assert!(!refused(&statement(&world), |_| ()));
    assert!(refused(&statement(&world), |it| it["text"] = "run this".into()));
    assert!(!refused(&stop(None), |_| ()));
    assert!(refused(&stop(None), |it| it["extensions"][STOP.key()] = json!(false)));
    assert!(refused(&stop(None), |it| it["extensions"][STOP.key()] = json!("true")));
    assert!(refused(&stop(None), |it| drop(it.as_object_mut().unwrap().remove("sessionId"))));
    assert!(refused(&statement(&world), |it| it["extensions"][STOP.key()] = json!(true)));
    // Words in the conversation of an agent stop nothing.
    assert!(refused(&words(), |it| it["extensions"][STOP.key()] = json!(true)));
}

/// Whoever can't prove that they are paired stops nobody: not the gateway, not a stranger, not a device that was revoked, and
/// nobody a second time or another session.
#[test]
fn only_a_paired_approver_stops_an_agent() {
    let (world, stranger) = (World::new(), World::new());
    let honest = world.prompt(&stop(None)).envelope;
    let opened = world.open(&honest, &world.robots, now()).unwrap();
    assert_eq!(opened.content, PromptContent::Stop { words: None });
    assert_eq!(opened.session_id.as_ref().map(SessionId::as_str), Some("s1"));
    // The gateway writes one itself, in the clear.
    let (text, _) = plaintext(&stop(None), &"r".parse().unwrap(), now()).unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    let own = json!({
        "msgType": "prompt.send", "requestId": "r", "createdAt": now(), "sender": { "approverId": "ada" }, "body": body,
    });
    let refused = world.open(&own.to_string(), &world.robots, now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::NotSealed), "{refused}");
    // It says that another session is meant, or turns words into a stop.
    let mut elsewhere: Value = serde_json::from_str(&honest).unwrap();
    elsewhere["body"]["sessionId"] = json!("s2");
    let opened = world.open(&elsewhere.to_string(), &world.robots, now()).unwrap();
    assert_eq!(opened.session_id.as_ref().map(SessionId::as_str), Some("s1"), "the approver's word counts");
    let mut words: Value = serde_json::from_str(&world.prompt(&words()).envelope).unwrap();
    words["body"]["extensions"] = json!({ "org.countersign.stop": true });
    let opened = world.open(&words.to_string(), &world.robots, now());
    assert!(!opened.is_ok_and(|it| matches!(it.content, PromptContent::Stop { .. })));
    // Somebody who is not paired, and one who is not any more.
    let foreign = Prompt::build(
        &stop(None),
        &"ada".parse().unwrap(),
        &"robot".parse().unwrap(),
        &stranger.ada,
        &world.adas,
        now(),
    );
    let refused = world.open(&foreign.unwrap().envelope, &world.robots, now()).unwrap_err();
    assert!(matches!(refused, PromptRefused::UnknownSender), "{refused}");
    let mut revoked = world.robots.clone();
    revoked.revoke(world.ada.fingerprint(), now()).unwrap();
    assert!(matches!(world.open(&honest, &revoked, now()), Err(PromptRefused::UnknownSender)));
    // Again, and too late.
    let journal = MemoryJournal::default();
    let (reader, envelope) = (world.reader(&world.robots, &journal), parse(honest.as_bytes()).unwrap());
    reader.open(&envelope, now()).unwrap();
    assert!(matches!(reader.open(&envelope, now()), Err(PromptRefused::Replayed)));
    let late = now().plus(Duration::from_mins(11));
    assert!(matches!(world.open(&honest, &world.robots, late), Err(PromptRefused::Expired)));
}

/// Programs that kept everything of ours in the namespace of the protocol wrote prompts so.
#[test]
fn a_prompt_of_an_earlier_program_is_taken() {
    let world = World::new();
    let as_formerly = |it: &mut Value| {
        it["extensions"] = json!({
            "org.proto.salt": "AAECAwQFBgcICQoLDA0ODw", "org.proto.expiresAt": "2026-11-15T12:10:00Z",
        });
    };
    let text = world.sealed(&words(), as_formerly, ("r", None, Target::AgentChat));
    let opened = world.open(&text, &world.robots, now()).unwrap();
    assert_eq!(opened.expires_at, "2026-11-15T12:10:00Z".parse().unwrap());
    let draft = statement(&world);
    let as_formerly = |it: &mut Value| {
        let statement = it["extensions"][STATEMENT.key()].take();
        it["extensions"] = json!({
            "org.proto.salt": "AAECAwQFBgcICQoLDA0ODw", "org.proto.expiresAt": "2026-11-15T12:10:00Z",
            "org.proto.statement": statement,
        });
    };
    let text = world.sealed(&draft, as_formerly, ("r", None, Target::Other));
    assert_eq!(world.open(&text, &world.robots, now()).unwrap().content, draft.content);
    // The time that counts is the one under the new name.
    let both = |it: &mut Value| {
        it["extensions"]["org.proto.expiresAt"] = "2027-11-15T12:00:00Z".into();
        it["extensions"]["org.countersign.expiresAt"] = "2026-11-15T11:00:00Z".into();
    };
    let text = world.sealed(&words(), both, ("r", None, Target::AgentChat));
    assert!(matches!(world.open(&text, &world.robots, now()), Err(PromptRefused::Expired)));
}

#[test]
fn the_ids_of_one_approver_are_not_those_of_another() {
    let world = World::new();
    let bob = DeviceKeys::generate().unwrap();
    let mut pins = world.robots.clone();
    let party = Party::Approver("bob".parse().unwrap());
    pins.insert(Pin::new(party, bob.bundle(), PinSource::Paired, now())).unwrap();
    let from_ada = world.sealed(&words(), |_| (), ("r", None, Target::AgentChat));
    let bobs =
        World { ada: bob, robot: DeviceKeys::from_secret(&world.robot.to_secret()).unwrap(), ..World::new() };
    let (text, hash) = plaintext(&words(), &"r".parse().unwrap(), now()).unwrap();
    let context = context(&"r".parse().unwrap(), hash, &"bob".parse().unwrap(), Target::AgentChat);
    let recipient = Recipient { id: "robot", bundle: world.robot.bundle() };
    let sealed = seal(&bobs.ada, &context, text.as_bytes(), &[recipient]).unwrap();
    let from_bob = json!({
        "msgType": "prompt.send", "requestId": "r", "createdAt": now(), "sender": { "approverId": "bob" },
        "body": { "ciphertext": sealed, "promptHash": hash, "target": "agentChat" },
    })
    .to_string();
    let journal = MemoryJournal::default();
    let reader = PromptReader { enforcer: "robot", keys: &world.robot, pins: &pins, journal: &journal };
    for text in [&from_bob, &from_ada] {
        reader.open(&parse(text.as_bytes()).unwrap(), now()).unwrap();
    }
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

    /// Changes a text somewhere, or one of its members to that of another prompt.
    fn mutated(&mut self, text: &str, other: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        let at = self.below(bytes.len());
        match self.below(4) {
            0 => bytes[at] ^= 1 << self.below(7),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, b"\"{}0A, ["[self.below(8)]),
            _ => {
                let [mut value, other]: [Value; 2] =
                    [text, other].map(|it| serde_json::from_str(it).unwrap());
                let inside = self.below(3);
                let (target, source) = match inside {
                    0 => (&mut value, &other),
                    1 => (&mut value["body"], &other["body"]),
                    _ => (&mut value["body"]["ciphertext"], &other["body"]["ciphertext"]),
                };
                let members: Vec<String> = target.as_object().unwrap().keys().cloned().collect();
                let name = &members[self.below(members.len())];
                match self.below(2) {
                    0 => drop(target.as_object_mut().unwrap().remove(name)),
                    _ => target[name] = source[name].clone(),
                }
                return value.to_string();
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[test]
fn no_mutation_of_a_prompt_is_taken_as_something_else() {
    let (world, elsewhere) = (World::new(), World::new());
    let (text, other) = (world.prompt(&words()).envelope, elsewhere.prompt(&words()).envelope);
    // Another prompt of the same approver too: its parts are genuine.
    let also = world.prompt(&PromptDraft { target: Target::Tool, ..words() }).envelope;
    let original = world.open(&text, &world.robots, now()).unwrap();
    let rounds = std::env::var("COUNTERSIGN_PROMPT_MUTATIONS").ok().and_then(|it| it.parse().ok());
    let mut rng = Rng(0xfade);
    let (mut refused, mut same) = (0, 0);
    for round in 0..rounds.unwrap_or(500) {
        let changed = rng.mutated(&text, if round % 2 == 0 { &other } else { &also });
        match world.open(&changed, &world.robots, now()) {
            Err(_) => refused += 1,
            Ok(opened) => {
                assert_eq!(opened, original, "{changed}");
                same += 1;
            }
        }
    }
    println!("{refused} refused, {same} were the same prompt");
    assert!(refused > same);
}
