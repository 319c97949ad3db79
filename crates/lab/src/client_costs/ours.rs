//! The operations as the client library does them, with all of its checks.

use std::time::Duration;

use countersign_client::{
    audience::Audience,
    clock::{Clock as _, SystemClock},
    journal::MemoryJournal,
    keys::DeviceKeys,
    profile::{Party, Pin, PinSource, Pins},
    reply::{Choice, Verifier, Words, decide},
    request::{Draft, OpenedRequest, Request},
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    envelope::Envelope,
    id::{ApproverId, EnforcerId},
};

use super::{
    bare::payload,
    operation::{Operation, Side},
};
use crate::Failure;

pub(super) struct Ours {
    robot: (EnforcerId, DeviceKeys, Pins),
    ada: (ApproverId, DeviceKeys, Pins),
    draft: Draft,
    request: Request,
    /// What the gateway pushes to the approver.
    pushed: String,
    opened: OpenedRequest,
    choice: Choice,
    decision: String,
}

fn pins(party: Party, keys: &DeviceKeys) -> Result<Pins, Failure> {
    let mut pins = Pins::default();
    pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, SystemClock.now()))?;
    Ok(pins)
}

impl Ours {
    pub(super) fn new(payload_bytes: usize) -> Result<Self, Failure> {
        let (robot_id, ada_id): (EnforcerId, ApproverId) = ("robot".parse()?, "ada".parse()?);
        let (robot, ada) = (DeviceKeys::generate()?, DeviceKeys::generate()?);
        let robots = pins(Party::Approver(ada_id.clone()), &ada)?;
        let adas = pins(Party::Enforcer(robot_id.clone()), &robot)?;
        let draft = Draft {
            artifact_type: ArtifactType::CommandReview,
            payload: payload(payload_bytes).to_string(),
            repo_name: "acme/widgets".to_owned(),
            valid_for: Duration::from_hours(1),
            session: None,
            actions: Vec::new(),
            edits: Vec::new(),
            to: Audience::everybody(),
        };
        let now = SystemClock.now();
        let request = Request::build(&draft, &robot_id, &robot, &robots, now)?;
        let pushed = request.envelope.replacen("artifact.submit", "approval.request", 1);
        let opened = open(&pushed, &ada_id, &ada, &adas)?;
        let words = Words { reason: Some("because".to_owned()), ..Words::default() };
        let valid_until = now.plus(Duration::from_hours(1));
        let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Once, valid_until, words };
        let decision = decide(&opened, &choice, &ada_id, &ada, now)?;
        let (robot, ada) = ((robot_id, robot, robots), (ada_id, ada, adas));
        Ok(Self { robot, ada, draft, request, pushed, opened, choice, decision })
    }
}

fn open(pushed: &str, id: &ApproverId, keys: &DeviceKeys, pins: &Pins) -> Result<OpenedRequest, Failure> {
    let envelope = countersign_wire::parse::<Envelope<'_>>(pushed.as_bytes())?.into_view();
    Ok(OpenedRequest::open(&envelope, id.as_str(), keys, pins, SystemClock.now())?)
}

impl Side for Ours {
    fn run(&self, operation: Operation) -> Result<usize, Failure> {
        let now = SystemClock.now();
        match operation {
            Operation::Seal => {
                let (id, keys, pins) = &self.robot;
                Ok(Request::build(&self.draft, id, keys, pins, now)?.envelope.len())
            }
            Operation::Open => {
                let (id, keys, pins) = &self.ada;
                let opened = open(&self.pushed, id, keys, pins)?;
                std::hint::black_box(&opened);
                Ok(self.pushed.len())
            }
            Operation::Sign => {
                let (id, keys, _) = &self.ada;
                Ok(decide(&self.opened, &self.choice, id, keys, now)?.len())
            }
            Operation::Verify => {
                let (id, keys, pins) = &self.robot;
                // A new one each time: a decision counts once.
                let journal = MemoryJournal::default();
                let verifier = Verifier { enforcer: id.as_str(), keys, pins, journal: &journal };
                let decision = verifier.verify(self.decision.as_bytes(), &self.request, now)?;
                std::hint::black_box(&decision);
                Ok(self.decision.len())
            }
        }
    }
}
