//! Two ends and a real gateway between them, which they don't trust.

use std::{sync::Arc, time::Duration};

use crate::support::{World, pair};
use countersign_client::{
    approver::Approver,
    audience::Audience,
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, AskError, Enforcer, PairError},
    http::Http,
    join::{JoinError, JoinLink, join},
    journal::FileJournal,
    keys::DeviceKeys,
    pairing::PairingError,
    profile::{Facts, FileKeys, Party, Pins, Profile},
    reply::{Choice, Rejected, Words},
    request::{Draft, OpenedRequest, Request, RequestError},
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    exchange::ExchangeState,
};
use tokio::time::{Instant, sleep};

const CANARY: &str = "canary-7f3a";

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: format!(r#"{{"argv":["git","push","{CANARY}-payload"]}}"#),
        repo_name: format!("{CANARY}-repository"),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

fn choice(outcome: DecisionOutcome) -> Choice {
    Choice {
        outcome,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words { reason: Some(format!("{CANARY}-reason")), ..Words::default() },
    }
}

/// What waits for an approver, as soon as there is something.
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

#[tokio::test(flavor = "multi_thread")]
async fn two_ends_pair_by_a_link_and_exchange_decisions_that_the_gateway_can_not_read() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    for outcome in [DecisionOutcome::Approve, DecisionOutcome::Reject] {
        let (draft, choice) = (draft(), choice(outcome));
        let (asked, answered) = tokio::join!(robot.ask(&draft, &robots), async {
            let request = next(&ada, &adas).await;
            assert!(request.payload.contains("git"));
            assert_eq!(request.repo_name, Some(format!("{CANARY}-repository")));
            assert_eq!(request.enforcer.as_str(), "robot");
            ada.decide(&request, &choice).await
        });
        answered.unwrap();
        let decision = asked.unwrap();
        assert_eq!((decision.outcome, decision.approver.as_str()), (outcome, "ada"));
        assert_eq!(decision.words.reason, Some(format!("{CANARY}-reason")));
        assert_eq!(decision.device, ada.keys.fingerprint());
    }
    // Nothing of it is in what the gateway stored.
    let stored = std::fs::read_dir(world.data.path().join("data")).unwrap();
    let mut files = 0;
    for file in stored.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let content = std::fs::read(&file).unwrap();
        assert!(!content.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()), "{}", file.display());
        files += 1;
    }
    assert!(files >= 3, "the database and the secrets were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_becomes_a_profile_that_asks_also_after_a_restart() {
    let world = World::start().await;
    let link: JoinLink = world.invitation("robot").await.parse().unwrap();
    let joined = join(&link).await.unwrap();
    assert!(matches!(join(&link).await, Err(JoinError::Invalid)), "it is good once");
    let folder = world.data.path().join("robot");
    let facts = Facts {
        party: joined.party,
        tenant: joined.tenant.parse().unwrap(),
        gateway: joined.gateway,
        label: "build machine".parse().unwrap(),
    };
    let keys = DeviceKeys::generate().unwrap();
    Profile::create(&folder, facts, &joined.credential, &keys, &FileKeys).unwrap();
    // Everything that follows comes from the folder.
    let robot = || {
        let profile = Profile::open(&folder).unwrap();
        let Party::Enforcer(id) = profile.facts().party.clone() else { panic!("an enforcer joined") };
        let http = Http::new(profile.facts().gateway.clone(), Some(profile.credential())).unwrap();
        let keys = profile.unlock(None).unwrap();
        let journal = Arc::new(FileJournal::new(profile.journal().unwrap()));
        (Enforcer { http, id, keys, clock: Arc::new(SystemClock), journal }, profile)
    };
    let ada = world.approver("ada").await;
    let (enforcer, profile) = robot();
    let (pins, adas) = pair(&enforcer, &ada, Pins::default()).await;
    let pin = pins.iter().next().unwrap().clone();
    profile.update_pins(|pins| pins.insert(pin)).unwrap();
    let (enforcer, profile) = robot();
    let (pins, draft, choice) = (profile.pins().unwrap(), draft(), choice(DecisionOutcome::Approve));
    let (decision, answered) = tokio::join!(enforcer.ask(&draft, &pins), async {
        ada.decide(&next(&ada, &adas).await, &choice).await
    });
    answered.unwrap();
    assert_eq!(decision.unwrap().approver.as_str(), "ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_code_shows_the_same_digits_on_both_sides() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let started = robot.start_pairing("robot").await.unwrap();
    let there = ada.pair_by_code(&started.code, None).await.unwrap();
    let here = robot.finish_pairing(&started, Answered::TypedCode).await.unwrap();
    assert!(here.digits.is_some());
    assert_eq!(here.digits, there.digits);
    // Whoever shows a link does not accept an answer without its secret.
    let started = robot.start_pairing("robot").await.unwrap();
    ada.pair_by_code(&started.code, None).await.unwrap();
    let unproven = robot.finish_pairing(&started, Answered::Link).await;
    assert!(matches!(unproven, Err(PairError::Pairing(PairingError::ApproverUnproven))), "{unproven:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_device_and_approver_can_answer_and_the_first_one_counts() {
    let world = World::start().await;
    let robot = world.enforcer("robot").await;
    let (phone, laptop, bob) =
        (world.approver("ada").await, world.approver("ada").await, world.approver("bob").await);
    let (robots, of_phone) = pair(&robot, &phone, Pins::default()).await;
    let (robots, of_laptop) = pair(&robot, &laptop, robots).await;
    let (robots, of_bob) = pair(&robot, &bob, robots).await;
    for round in 0..10 {
        let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
        robot.submit(&request).await.unwrap();
        // All see it before anybody decides.
        let mut opened = Vec::new();
        for (device, pins) in [(&phone, &of_phone), (&laptop, &of_laptop), (&bob, &of_bob)] {
            opened.push((device, next(device, pins).await));
        }
        let answers = opened.iter().map(|(device, opened)| async {
            device.decide(opened, &choice(DecisionOutcome::Approve)).await.is_ok()
        });
        let [a, b, c] = <[_; 3]>::try_from(answers.collect::<Vec<_>>()).ok().unwrap();
        let (a, b, c, decision) = tokio::join!(a, b, c, robot.wait(&request, &robots));
        assert_eq!([a, b, c].iter().filter(|won| **won).count(), 1, "round {round}");
        let won = [(a, &phone), (b, &laptop), (c, &bob)].into_iter().find(|(won, _)| *won).unwrap().1;
        assert_eq!(decision.unwrap().device, won.keys.fingerprint());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_who_is_not_paired_and_nothing_is_accepted_from_them() {
    let world = World::start().await;
    let (robot, ada, eve) =
        (world.enforcer("robot").await, world.approver("ada").await, world.approver("ada").await);
    let unpaired = robot.ask(&draft(), &Pins::default()).await;
    assert!(matches!(unpaired, Err(AskError::Request(RequestError::NobodyPaired))));
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
    robot.submit(&request).await.unwrap();
    // A device of the same person that is not pinned can't open it.
    let items = eve.inbox(&adas).await.unwrap();
    assert!(items[0].opened.is_err());
    // With the content from elsewhere it can decide; the gateway refuses, and so would the enforcer.
    let opened = next(&ada, &adas).await;
    assert!(eve.decide(&opened, &choice(DecisionOutcome::Approve)).await.is_err());
    // A pin that was revoked meanwhile counts for nothing, whatever the gateway accepted.
    ada.decide(&opened, &choice(DecisionOutcome::Approve)).await.unwrap();
    let mut revoked = robots.clone();
    revoked.revoke(ada.keys.fingerprint(), SystemClock.now()).unwrap();
    let rejected = robot.wait(&request, &revoked).await;
    assert!(matches!(rejected, Err(AskError::Rejected(Rejected::UnknownSigner))), "{rejected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_used_once_also_by_a_process_that_starts_again() {
    let world = World::start().await;
    let path = world.data.path().join("journal");
    let robot = world.enforcer_with("robot", Arc::new(FileJournal::new(path.clone()))).await;
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
    robot.submit(&request).await.unwrap();
    robot.submit(&request).await.unwrap();
    let opened = next(&ada, &adas).await;
    ada.decide(&opened, &choice(DecisionOutcome::Approve)).await.unwrap();
    robot.wait(&request, &robots).await.unwrap();
    let again = Enforcer { journal: Arc::new(FileJournal::new(path)), ..robot };
    let replayed = again.wait(&request, &robots).await;
    assert!(matches!(replayed, Err(AskError::Rejected(Rejected::Replayed))), "{replayed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_back_or_expires_is_an_error_and_no_decision() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, _) = pair(&robot, &ada, Pins::default()).await;
    let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
    robot.submit(&request).await.unwrap();
    robot.withdraw(&request).await.unwrap();
    assert!(matches!(robot.wait(&request, &robots).await, Err(AskError::TakenBack)));
    let short = Draft { valid_for: Duration::from_secs(3), ..draft() };
    assert!(matches!(robot.ask(&short, &robots).await, Err(AskError::Expired)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_learns_what_became_of_an_answer() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
    robot.submit(&request).await.unwrap();
    let opened = next(&ada, &adas).await;
    let progress = ada.status(&request.request_id).await.unwrap();
    assert_eq!((progress.state, progress.expires_at), (ExchangeState::PendingApproval, request.expires_at));
    ada.decide(&opened, &choice(DecisionOutcome::Approve)).await.unwrap();
    assert_eq!(ada.status(&request.request_id).await.unwrap().state, ExchangeState::Decided);
    robot.wait(&request, &robots).await.unwrap();
    assert_eq!(ada.status(&request.request_id).await.unwrap().state, ExchangeState::Delivered);
    let unknown = ada.status(&"unknown".parse().unwrap()).await.unwrap_err();
    assert!(unknown.is(countersign_wire::failure::Failure::NotFound), "{unknown}");
}
