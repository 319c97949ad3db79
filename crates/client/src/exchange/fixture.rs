//! An enforcer, its approver, a request between them and the answer, for unit tests.

use std::time::Duration;

use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::EnforcerId,
    lock::Assertion,
    timestamp::Timestamp,
};

use crate::{
    content::payload::{Command, Invocation, Payload},
    exchange::{
        audience::Audience,
        effect_hash::effect_of_artifact,
        reply::{Choice, SentDecision, Verifier, Words, decide_with},
        request::{Draft, OpenedRequest, Request},
        taken::{Decided, Signer, Taken},
    },
    identity::{
        keys::DeviceKeys,
        profile::{Party, Pin, PinSource, Pins},
    },
    journal::MemoryJournal,
};

pub(crate) fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

pub(crate) struct Ends {
    pub(crate) robot: DeviceKeys,
    pub(crate) ada: DeviceKeys,
    /// The pins of the enforcer, which has the approver.
    pub(crate) robots: Pins,
    /// The pins of the approver, which has the enforcer.
    pub(crate) adas: Pins,
}

pub(crate) fn argv(words: &[&str]) -> Invocation {
    Invocation::Argv(words.iter().map(|word| (*word).to_owned()).collect())
}

/// A command that was examined and does nothing of note.
pub(crate) fn command(words: &[&str]) -> Command {
    Command { effects: Some(Vec::new()), ..Command::new(argv(words), "/work") }
}

pub(crate) fn draft_of(command: Command, session: Option<&str>) -> Draft {
    let payload = Payload::Command(command);
    Draft {
        artifact_type: payload.artifact_type(),
        payload: payload.to_json().unwrap(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(10),
        session: session.map(str::to_owned),
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

pub(crate) fn choice(scope: Scope) -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope,
        valid_until: now().plus(Duration::from_mins(30)),
        words: Words::default(),
    }
}

impl Ends {
    pub(crate) fn new() -> Self {
        let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
        let pinned = |party, keys: &DeviceKeys| {
            let mut pins = Pins::default();
            pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, now())).unwrap();
            pins
        };
        let robots = pinned(Party::Approver("ada".parse().unwrap()), &ada);
        let adas = pinned(Party::Enforcer(robot_id()), &robot);
        Self { robot, ada, robots, adas }
    }

    /// A draft is asked for, approved as chosen, and taken.
    pub(crate) fn exchange(&self, draft: &Draft, choice: &Choice) -> (Taken, SentDecision) {
        self.exchange_with(draft, choice, |_| None)
    }

    /// As [`Ends::exchange`], confirmed by a lock.
    pub(crate) fn exchange_with(
        &self,
        draft: &Draft,
        choice: &Choice,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> (Taken, SentDecision) {
        let request = Request::build(draft, &robot_id(), &self.robot, &self.robots, now()).unwrap();
        let pushed = request.envelope.replace("artifact.submit", "approval.request");
        let envelope = countersign_wire::parse(pushed.as_bytes()).unwrap();
        let opened = OpenedRequest::open(&envelope, "ada", &self.ada, &self.adas, now()).unwrap();
        let text = decide_with(&opened, choice, &"ada".parse().unwrap(), &self.ada, now(), lock).unwrap();
        let sent = SentDecision::of(&text, robot_id()).unwrap();
        let journal = MemoryJournal::default();
        let decision = self.verifier(&journal).check(text.as_bytes(), &request, now()).unwrap();
        let signer = Signer::of(self.robots.iter().next().unwrap());
        let effect = effect_of_artifact(&request.artifact).unwrap();
        let artifact = request.artifact.clone();
        let decided = Decided { artifact, decision: text, signer, taken_at: now().to_string() };
        let request_id = request.request_id;
        (Taken { request_id, decision, number: 1, effect, other_payload: None, decided }, sent)
    }

    pub(crate) fn verifier<'a>(&'a self, journal: &'a MemoryJournal) -> Verifier<'a> {
        Verifier { enforcer: "robot", keys: &self.robot, pins: &self.robots, journal }
    }
}

pub(crate) fn robot_id() -> EnforcerId {
    "robot".parse().unwrap()
}
