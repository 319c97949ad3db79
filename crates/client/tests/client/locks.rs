//! The lock of an approver's device, from the pairing to a decision, over a real gateway.

use std::time::Duration;

use countersign_client::{
    approver::Approver,
    audience::{Audience, Verify},
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, AskError, Enforcer},
    keys::DeviceKeys,
    lock::{Gesture, LockFault},
    payload::{Command, Effect, EffectKind, Invocation, Payload},
    profile::{ApplyError, Pin, Pins},
    reply::{Choice, Rejected, VerifiedDecision, Words},
    request::{Draft, OpenedRequest, RequestError},
    vouching::Newcomer,
};
use countersign_testkit::authenticator::Authenticator;
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    lock::Assertion,
};
use tokio::time::{Instant, sleep};

use crate::support::{World, pair};

/// A command that was examined; a dangerous one deletes.
fn draft(is_dangerous: bool, verify: Verify) -> Draft {
    let effects = is_dangerous.then(|| Effect::new(EffectKind::Deletes)).into_iter().collect();
    let invocation = Invocation::Argv(vec!["x".to_owned()]);
    let payload = Payload::Command(Command { effects: Some(effects), ..Command::new(invocation, "/work") });
    Draft {
        artifact_type: payload.artifact_type(),
        payload: payload.to_json().unwrap(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience { verify, ..Audience::everybody() },
    }
}

fn approval() -> Choice {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let outcome = DecisionOutcome::Approve;
    Choice { outcome, scope: Scope::Once, valid_until, words: Words::default() }
}

async fn next(approver: &Approver, pins: &Pins) -> OpenedRequest {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(item) = approver.inbox(pins).await.unwrap().pop() {
            return item.opened.unwrap();
        }
        assert!(Instant::now() < until, "nothing arrives");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Two ends, and what each has pinned.
struct Ends {
    robot: Enforcer,
    robots: Pins,
    ada: Approver,
    adas: Pins,
}

impl Ends {
    /// What becomes of an approval that a lock confirms, or something else does.
    async fn approved(
        &self,
        draft: &Draft,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<VerifiedDecision, AskError> {
        let answer = async {
            let request = next(&self.ada, &self.adas).await;
            assert_eq!(request.verify, draft.to.verify);
            self.ada.decide_with(&request, &approval(), lock).await.unwrap();
        };
        tokio::join!(self.robot.ask(draft, &self.robots), answer).0
    }
}

/// Pairs by a link or by a typed code, with a lock.
async fn paired(
    robot: &Enforcer,
    ada: &Approver,
    phone: &Authenticator,
    by: Answered,
) -> (Pin, Pin, [Option<String>; 2]) {
    let started = robot.start_pairing("robot").await.unwrap();
    let there = match by {
        Answered::Link => {
            ada.pair_by_link_with(&started.link, &"".parse().unwrap(), Some(phone.lock())).await
        }
        Answered::TypedCode => ada.pair_by_code_with(&started.code, None, Some(phone.lock())).await,
    };
    let (there, here) = (there.unwrap(), robot.finish_pairing(&started, by).await.unwrap());
    (here.pin, there.pin, [here.digits, there.digits])
}

fn only(pin: Pin) -> Pins {
    let mut pins = Pins::default();
    pins.insert(pin).unwrap();
    pins
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_comes_with_the_pairing_and_approves_what_keys_alone_do_not() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let phone = Authenticator::new("gw.example");
    // Paired before there were locks, or without one: as before.
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let old = Ends { robot, robots, ada, adas };
    let dangerous = draft(true, Verify::Usual);
    assert_eq!(old.approved(&dangerous, |_| None).await.unwrap().gesture, None);
    assert_eq!(old.approved(&dangerous, |asked| phone.confirm(asked)).await.unwrap().gesture, None);
    let nobody = old.robot.ask(&draft(false, Verify::Person), &old.robots).await;
    assert!(matches!(nobody, Err(AskError::Request(RequestError::NobodyVerified))));

    // The same device, paired again: by a typed code, whose digits people compare.
    let Ends { robot, mut robots, ada, adas } = old;
    let (pin, _, [here, there]) = paired(&robot, &ada, &phone, Answered::TypedCode).await;
    assert!(here.is_some() && here == there);
    robots.insert(pin).unwrap();
    assert_eq!(robots.iter().next().unwrap().lock(), Some(phone.lock()));
    let ends = Ends { robot, robots, ada, adas };
    let verified = ends.approved(&dangerous, |asked| phone.confirm(asked)).await.unwrap();
    assert_eq!(verified.gesture, Some(Gesture));
    let keys_alone = ends.approved(&dangerous, |_| None).await;
    assert!(matches!(keys_alone, Err(AskError::Rejected(Rejected::NotVerified))));
    let stranger = Authenticator::new("gw.example");
    let stolen = ends.approved(&dangerous, |asked| stranger.confirm(asked)).await;
    assert!(matches!(stolen, Err(AskError::Rejected(Rejected::Lock(LockFault::Signature)))));
    assert_eq!(ends.approved(&draft(false, Verify::Usual), |_| None).await.unwrap().gesture, None);
    let wanted = draft(false, Verify::Person);
    let keys_alone = ends.approved(&wanted, |_| None).await;
    assert!(matches!(keys_alone, Err(AskError::Rejected(Rejected::NotVerified))));
    assert!(ends.approved(&wanted, |asked| phone.confirm(asked)).await.unwrap().gesture.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_proves_the_lock_and_a_paired_device_vouches_for_that_of_another() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (phone, tablet) = (Authenticator::new("gw.example"), Authenticator::named("gw.example", b"tablet"));
    let (pin, machine, digits) = paired(&robot, &ada, &phone, Answered::Link).await;
    assert_eq!((digits, pin.lock()), ([None, None], Some(phone.lock())));
    let mut robots = only(pin);
    let second = DeviceKeys::generate().unwrap();
    let newcomer = Newcomer {
        approver_id: &ada.id,
        bundle: second.bundle(),
        label: "tablet",
        until: SystemClock.now().plus(Duration::from_hours(24)),
        lock: Some(tablet.lock()),
    };
    // Whoever has only the keys of the first device brings no other one.
    let keys_alone = ada.vouch_for(&robot.id, newcomer).unwrap();
    let refused = robots.apply(&keys_alone, "robot", SystemClock.now());
    assert_eq!(refused, Err(ApplyError::NotConfirmed));
    let voucher = ada.vouch_for_with(&robot.id, newcomer, |asked| phone.confirm(asked)).unwrap();
    robots.apply(&voucher, "robot", SystemClock.now()).unwrap();
    let other = Approver { keys: second, ..world.approver("ada").await };
    other.present(&voucher).await.unwrap();
    let ends = Ends { robot, robots, ada: other, adas: only(machine) };
    let dangerous = draft(true, Verify::Usual);
    assert!(ends.approved(&dangerous, |asked| tablet.confirm(asked)).await.unwrap().gesture.is_some());
    // The lock of the first device is not that of the second.
    let of_first = ends.approved(&dangerous, |asked| phone.confirm(asked)).await;
    assert!(matches!(of_first, Err(AskError::Rejected(Rejected::Lock(LockFault::OtherCredential)))));
}
