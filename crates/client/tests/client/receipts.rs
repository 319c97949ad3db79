//! What approvers learn of what was done, at a real gateway.

use std::{sync::Arc, time::Duration};

use crate::support::{World, pair};
use countersign_client::{
    approver::Approver,
    audience::Audience,
    authorize::Answer,
    bundle::{Certainty, Claim, ProofError},
    clock::{Clock, SystemClock},
    enforcer::{AskError, Enforcer},
    grant::GrantRules,
    http::Http,
    journal::{FileJournal, MemoryJournal},
    profile::{GatewayUrl, Pins},
    receipt::{Outcome, ReceiptError, receipt_session},
    reply::{Choice, Rejected, SentDecision, Words},
    request::Draft,
    session::{OpenedSnapshot, SessionError, SnapshotDraft, SnapshotError},
    taken::Taken,
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    id::{EnforcerId, SessionId},
    session::{EndReason, SessionState, SnapshotType},
    timestamp::Timestamp,
};
use tokio::time::{Instant, sleep};

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"schema":"org.proto.payload","version":2,"state":"examined","argv":["cargo","test"],"cwd":"/w","effects":[]}"#
            .to_owned(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

async fn answer_next(
    approver: &Approver,
    pins: &Pins,
    outcome: DecisionOutcome,
    scope: Scope,
) -> SentDecision {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let choice = Choice { outcome, scope, valid_until, words: Words::default() };
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(item) = approver.inbox(pins).await.unwrap().pop() {
            return approver.decide(&item.opened.unwrap(), &choice).await.unwrap();
        }
        assert!(Instant::now() < until, "nothing arrives");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Asks, and has it answered.
async fn exchange(
    (robot, robots): (&Enforcer, &Pins),
    (ada, adas): (&Approver, &Pins),
    outcome: DecisionOutcome,
    scope: Scope,
) -> (Taken, SentDecision) {
    let (draft, rules) = (draft(), GrantRules::default());
    let asked = robot.authorize(&draft, robots, &rules);
    let (answer, sent) = tokio::join!(asked, answer_next(ada, adas, outcome, scope));
    match (answer.unwrap(), outcome) {
        (Answer::Approved(taken), DecisionOutcome::Approve)
        | (Answer::Rejected(taken), DecisionOutcome::Reject) => (taken, sent),
        (other, _) => panic!("{other:?}"),
    }
}

/// The requests that a device finds in what machines remember of its person, newest first, with who answered.
async fn answered(device: &Approver, pins: &Pins) -> Vec<(String, String)> {
    let histories = device.histories(pins).await;
    let answers = histories.into_iter().flat_map(|(_, answers)| answers.unwrap());
    answers.map(|answer| (answer.request_id.to_string(), answer.device)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_device_of_a_person_learns_what_the_others_have_answered_and_nobody_else_does() {
    let world = World::start().await;
    let journal = Arc::new(FileJournal::new(world.data.path().join("journal")));
    let robot = world.enforcer_with("robot", journal).await;
    let (phone, laptop, bob) =
        (world.approver("ada").await, world.approver("ada").await, world.approver("bob").await);
    let (robots, of_phone) = pair(&robot, &phone, Pins::default()).await;
    let (robots, of_bob) = pair(&robot, &bob, robots).await;
    let done = Outcome::Applied { exit_status: Some(0) };
    let mut expected = Vec::new();
    // With one device there is nobody to tell.
    let mut robots = robots;
    let mut of_laptop = Pins::default();
    for round in 0..3 {
        if round == 1 {
            (robots, of_laptop) = pair(&robot, &laptop, robots).await;
            assert_eq!(answered(&laptop, &of_laptop).await, []);
        }
        let (device, pins) = if round == 2 { (&laptop, &of_laptop) } else { (&phone, &of_phone) };
        let (taken, sent) =
            exchange((&robot, &robots), (device, pins), DecisionOutcome::Approve, Scope::Once).await;
        robot.finish(taken, done.clone(), &robots).await.unwrap();
        expected.insert(0, (sent.request_id.to_string(), device.keys.fingerprint().to_string()));
        let known = answered(&phone, &of_phone).await;
        assert_eq!(known, if round == 0 { Vec::new() } else { expected.clone() }, "round {round}");
    }
    assert_eq!(answered(&laptop, &of_laptop).await, expected);
    assert_eq!(answered(&bob, &of_bob).await, []);
    // A device that was revoked is told nothing more.
    robots.revoke(laptop.keys.fingerprint(), SystemClock.now()).unwrap();
    let (tablet, more) = (world.approver("ada").await, robots);
    let (robots, of_tablet) = pair(&robot, &tablet, more).await;
    assert_eq!(answered(&tablet, &of_tablet).await, [], "the list of before is not sealed to it");
    let (taken, sent) =
        exchange((&robot, &robots), (&tablet, &of_tablet), DecisionOutcome::Reject, Scope::Once).await;
    robot.finish(taken, Outcome::Drifted, &robots).await.unwrap();
    expected.insert(0, (sent.request_id.to_string(), tablet.keys.fingerprint().to_string()));
    assert_eq!(answered(&tablet, &of_tablet).await, expected);
    assert_eq!(answered(&laptop, &of_laptop).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_decided_learns_what_was_done_on_every_device_and_nobody_else_does() {
    let world = World::start().await;
    let journal = Arc::new(FileJournal::new(world.data.path().join("journal")));
    let robot = world.enforcer_with("robot", journal).await;
    let (phone, laptop, bob) =
        (world.approver("ada").await, world.approver("ada").await, world.approver("bob").await);
    let (robots, of_phone) = pair(&robot, &phone, Pins::default()).await;
    let (robots, of_laptop) = pair(&robot, &laptop, robots).await;
    let (robots, of_bob) = pair(&robot, &bob, robots).await;
    let (enforcer, decider) = ((&robot, &robots), (&phone, &of_phone));
    let (taken, sent) = exchange(enforcer, decider, DecisionOutcome::Approve, Scope::Once).await;
    let request_id = taken.request_id.clone();
    assert_eq!(robot.unfinished().await.unwrap(), [(request_id.clone(), 1)]);
    assert_eq!(phone.receipt(&sent, 1, &of_phone).await, Ok(None), "there is none yet");
    let finished = robot.finish(taken, Outcome::Applied { exit_status: Some(3) }, &robots).await.unwrap();
    assert!(finished.is_sent);
    assert!(robot.unfinished().await.unwrap().is_empty());
    for (device, pins) in [(&phone, &of_phone), (&laptop, &of_laptop)] {
        let receipt = device.receipt(&sent, 1, pins).await.unwrap().unwrap();
        assert_eq!(receipt, finished.receipt);
        assert_eq!(receipt.outcome, Outcome::Applied { exit_status: Some(3) });
    }
    let foreign = bob.receipt(&sent, 1, &of_bob).await;
    assert!(matches!(foreign, Err(ReceiptError::Snapshot(SnapshotError::Seal(_)))), "{foreign:?}");
    let stranger = phone.receipt(&sent, 1, &Pins::default()).await;
    assert!(matches!(stranger, Err(ReceiptError::Snapshot(SnapshotError::UnknownSender))));
    // Another decision about the same request: this receipt is not for it.
    let other = SentDecision { nonce: "other".to_owned(), ..sent.clone() };
    assert_eq!(phone.receipt(&other, 1, &of_phone).await, Err(ReceiptError::OtherDecision));
    // What happened later has not taken its place.
    let (rejected, sent_later) = exchange(enforcer, decider, DecisionOutcome::Reject, Scope::Once).await;
    robot.finish(rejected, Outcome::Applied { exit_status: None }, &robots).await.unwrap();
    for sent in [&sent, &sent_later] {
        assert!(phone.receipt(sent, 1, &of_phone).await.unwrap().is_some());
    }
    // Both are kept, and can be verified.
    let names = robot.bundles().await.unwrap();
    assert_eq!(names.len(), 2);
    let bundle = robot.bundle(&names[0]).await.unwrap().unwrap();
    let report = bundle.verify(Some(&robots)).unwrap();
    assert!(report.is_consistent());
    assert_eq!(report.certainty(Claim::Approver), Certainty::Proven);
    assert_eq!(bundle.receipt, finished.receipt);
    assert_eq!(
        robot.bundle(&names[1]).await.unwrap().unwrap().verify(None).unwrap().outcome,
        DecisionOutcome::Reject
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_use_of_a_grant_has_a_receipt_of_its_own() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let (first, sent) =
        exchange((&robot, &robots), (&ada, &adas), DecisionOutcome::Approve, Scope::Timebox).await;
    robot.finish(first, Outcome::Applied { exit_status: Some(0) }, &robots).await.unwrap();
    let answer = robot.authorize(&draft(), &robots, &GrantRules::default()).await.unwrap();
    let Answer::Approved(second) = answer else { panic!("a grant covers it, also after its first use") };
    assert_eq!(second.number, 2);
    robot.finish(second, Outcome::Drifted, &robots).await.unwrap();
    let outcome = async |number| ada.receipt(&sent, number, &adas).await.unwrap().unwrap().outcome;
    assert_eq!(outcome(1).await, Outcome::Applied { exit_status: Some(0) });
    assert_eq!(outcome(2).await, Outcome::Drifted);
    assert_ne!(receipt_session(&sent.request_id, 1), receipt_session(&sent.request_id, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_can_not_be_sent_is_sent_later_also_by_another_process() {
    let world = World::start().await;
    let path = world.data.path().join("journal");
    let robot = world.enforcer_with("robot", Arc::new(FileJournal::new(path.clone()))).await;
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let (taken, sent) =
        exchange((&robot, &robots), (&ada, &adas), DecisionOutcome::Approve, Scope::Once).await;
    let http = robot.http.clone();
    let nowhere = Http::new(GatewayUrl::new("http://127.0.0.1:9").unwrap(), None).unwrap();
    let robot = Enforcer { http: nowhere, ..robot };
    let refused = Outcome::Refused { reason: "the disk is full".to_owned() };
    assert!(!robot.finish(taken, refused.clone(), &robots).await.unwrap().is_sent);
    // A gateway that does not know this enforcer, for now.
    let stranger = Http::new(http.gateway().clone(), None).unwrap();
    let robot = Enforcer { http: stranger, ..robot };
    assert_eq!(robot.send_receipts().await.unwrap(), 1);
    let robot = Enforcer { http, journal: Arc::new(FileJournal::new(path)), ..robot };
    assert_eq!(robot.send_receipts().await.unwrap(), 0);
    assert_eq!(ada.receipt(&sent, 1, &adas).await.unwrap().unwrap().outcome, refused);
    assert_eq!(robot.send_receipts().await.unwrap(), 0, "there is nothing left to send");
}

/// A clock that is ten minutes ahead.
struct Ahead;

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(Duration::from_mins(10))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_came_too_late_is_not_used_and_its_approver_learns_it() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let request_id = robot.ask_detached(&draft(), &robots).await.unwrap().request_id;
    let sent = answer_next(&ada, &adas, DecisionOutcome::Approve, Scope::Once).await;
    let late = Enforcer { clock: Arc::new(Ahead), ..robot };
    let answer = late.pick_up(&request_id, &robots).await;
    assert!(matches!(answer, Err(AskError::Rejected(Rejected::TooLate))), "{answer:?}");
    assert_eq!(ada.receipt(&sent, 1, &adas).await.unwrap().unwrap().outcome, Outcome::TooLate);
    assert!(late.unfinished().await.unwrap().is_empty() && late.open_requests().await.unwrap().is_empty());
    let again = Enforcer { clock: Arc::new(SystemClock), ..late };
    assert!(matches!(again.pick_up(&request_id, &robots).await, Err(AskError::NotOpen)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_reported_and_its_contents_are_sealed() {
    let world = World::start().await;
    let journal = Arc::new(MemoryJournal::default());
    let (robot, ada) = (world.enforcer_with("robot", journal).await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let session_id: SessionId = "5f0c7a52-6a5e-4a1b-9a8e-000000000001".parse().unwrap();
    robot.session_start(&session_id, "editor", Some("acme/widgets")).await.unwrap();
    robot.session_status(&session_id, SessionState::Executing).await.unwrap();
    let snapshot = |snapshot_id, payload| SnapshotDraft {
        session_id: &session_id,
        snapshot_id,
        snapshot_type: SnapshotType::Plan,
        payload,
    };
    robot.session_snapshot(snapshot("1", r#"{"text":"canary-91"}"#), &robots).await.unwrap();
    let session = ada.session(&session_id).await.unwrap();
    let machine = session.enforcer_id.as_ref().map(EnforcerId::as_str);
    assert_eq!((machine, session.state), (Some("robot"), Some(SessionState::Executing)));
    assert_eq!((session.agent_host.as_deref(), session.ended_at), (Some("editor"), None));
    let event = &session.snapshots["plan"];
    assert!(!event.contains("canary-91"));
    let opened = OpenedSnapshot::open(event, "ada", &ada.keys, &adas, SystemClock.now()).unwrap();
    assert_eq!(opened.payload.as_str(), r#"{"text":"canary-91"}"#);
    let nobody = robot.session_snapshot(snapshot("2", "{}"), &Pins::default()).await;
    assert!(matches!(nobody, Err(SessionError::Seal(_))));
    robot.session_end(&session_id, EndReason::UserEnd).await.unwrap();
    assert!(ada.session(&session_id).await.unwrap().ended_at.is_some());
    assert!(matches!(
        robot.session_status(&session_id, SessionState::Idle).await,
        Err(SessionError::Call(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_proves_its_own_decision_and_the_receipt_about_it() {
    let world = World::start().await;
    let (robot, other) = (world.enforcer("robot").await, world.enforcer("other").await);
    let (ada, laptop) = (world.approver("ada").await, world.approver("ada").await);
    let (_, others) = pair(&other, &ada, Pins::default()).await;
    let (robots, adas) = pair(&robot, &ada, others).await;
    let (robots, laptops) = pair(&robot, &laptop, robots).await;
    let request = robot.ask_detached(&draft(), &robots).await.unwrap();
    assert_eq!(ada.bundle(&request.request_id, &adas).await, Err(ProofError::NotDecided));
    answer_next(&ada, &adas, DecisionOutcome::Approve, Scope::Once).await;
    assert_eq!(ada.bundle(&request.request_id, &adas).await, Err(ProofError::NotReported));
    let Answer::Approved(taken) = robot.pick_up(&request.request_id, &robots).await.unwrap() else {
        panic!("it was approved")
    };
    robot.finish(taken, Outcome::Applied { exit_status: Some(0) }, &robots).await.unwrap();
    let bundle = ada.bundle(&request.request_id, &adas).await.unwrap();
    assert_eq!((bundle.enforcer.enforcer_id.as_str(), bundle.artifact.is_none()), ("robot", true));
    let report = bundle.verify(Some(&adas)).unwrap();
    for claim in [Claim::Signature, Claim::Receipt, Claim::Decision, Claim::Enforcer] {
        assert_eq!(report.certainty(claim), Certainty::Proven, "{claim:?}");
    }
    for claim in [Claim::Artifact, Claim::About, Claim::Words, Claim::Effect, Claim::Done] {
        assert_eq!(report.certainty(claim), Certainty::Unproven, "{claim:?}");
    }
    let not_mine = laptop.bundle(&request.request_id, &laptops).await;
    assert_eq!(not_mine, Err(ProofError::OtherDevice));
}
