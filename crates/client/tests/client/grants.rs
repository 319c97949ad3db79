//! Approvals that cover more than one execution, at a real gateway.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::support::{World, pair};
use countersign_client::{
    approver::Approver,
    audience::{Audience, Verify},
    authorize::Answer,
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer},
    grant::GrantRules,
    journal::{FileJournal, MemoryJournal},
    pattern::Pattern,
    payload::{Command, Invocation, Payload},
    profile::Pins,
    reply::{Choice, SentDecision, Words},
    request::Draft,
    taken::Taken,
    waiting::GrantWatch,
};
use countersign_testkit::authenticator::Authenticator;
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    exchange::ExchangeState,
};
use tokio::time::{Instant, sleep, timeout};

fn draft(argv: &[&str], session: Option<&str>) -> Draft {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let command = Command { effects: Some(Vec::new()), ..Command::new(Invocation::Argv(argv), "/work") };
    let payload = Payload::Command(command);
    Draft {
        artifact_type: payload.artifact_type(),
        payload: payload.to_json().unwrap(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(1),
        session: session.map(str::to_owned),
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

fn choice(outcome: DecisionOutcome, scope: Scope, pattern: Option<&[&str]>) -> Choice {
    let pattern = pattern.map(|words| Pattern::new(words.iter().copied()).unwrap());
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    Choice { outcome, scope, valid_until, words: Words { pattern, ..Words::default() } }
}

/// Answers the next request in this way.
async fn answer_next(approver: &Approver, pins: &Pins, choice: &Choice) -> SentDecision {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(item) = approver.inbox(pins).await.unwrap().pop() {
            return approver.decide(&item.opened.unwrap(), choice).await.unwrap();
        }
        assert!(Instant::now() < until, "nothing arrives");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Authorizes without anybody who answers: only a grant can let it through. `None` if it would ask.
async fn by_grant(robot: &Enforcer, draft: &Draft, pins: &Pins) -> Option<Taken> {
    let rules = GrantRules::default();
    let asked = async {
        loop {
            let open = robot.open_requests().await.unwrap();
            if !open.is_empty() {
                return open;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::select! {
        answer = timeout(Duration::from_secs(20), robot.authorize(draft, pins, &rules)) => answer.unwrap(),
        asked = asked => {
            for request in asked {
                // It was recorded; whether it has reached the gateway already is not known.
                robot.submit(&request).await.unwrap();
                robot.withdraw(&request).await.unwrap();
            }
            return None;
        }
    };
    assert!(matches!(answer, Ok(Answer::Approved(_))), "{answer:?}");
    answer.ok().and_then(|answer| match answer {
        Answer::Approved(taken) => Some(taken),
        Answer::Rejected(_) => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_lets_the_same_effect_through_until_it_is_revoked_also_after_a_restart() {
    let world = World::start().await;
    let path = world.data.path().join("journal");
    let robot = world.enforcer_with("robot", Arc::new(FileJournal::new(path.clone()))).await;
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let (test, rules) = (draft(&["cargo", "test"], None), GrantRules::default());
    let timebox = choice(DecisionOutcome::Approve, Scope::Timebox, None);
    let (answer, _) =
        tokio::join!(robot.authorize(&test, &robots, &rules), answer_next(&ada, &adas, &timebox));
    let Answer::Approved(first) = answer.unwrap() else { panic!("it was approved") };
    assert_eq!((first.number, first.other_payload), (1, None));
    let second = by_grant(&robot, &test, &robots).await.unwrap();
    assert_eq!((second.number, &second.request_id), (2, &first.request_id));
    assert!(ada.inbox(&adas).await.unwrap().is_empty(), "nobody was asked");
    // Another effect is asked for.
    assert!(by_grant(&robot, &draft(&["cargo", "run"], None), &robots).await.is_none());
    let robot = Enforcer { journal: Arc::new(FileJournal::new(path)), ..robot };
    assert_eq!(by_grant(&robot, &test, &robots).await.unwrap().number, 3);
    // Without its signer it counts for nothing.
    let mut revoked = robots.clone();
    revoked.revoke(ada.keys.fingerprint(), SystemClock.now()).unwrap();
    assert!(robot.grants(&revoked, &rules).await.unwrap().is_empty());
    robot.revoke_grant(&first.request_id).await.unwrap();
    assert!(robot.grants(&robots, &rules).await.unwrap().is_empty());
    let rejection = choice(DecisionOutcome::Reject, Scope::Once, None);
    let (answer, _) =
        tokio::join!(robot.authorize(&test, &robots, &rules), answer_next(&ada, &adas, &rejection));
    assert!(matches!(answer.unwrap(), Answer::Rejected(_)));
    let unknown = robot.revoke_grant(&"unknown".parse().unwrap()).await;
    assert!(matches!(unknown, Err(AskError::NotOpen)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_a_session_and_a_pattern_arrive_sealed_and_cover_what_they_say() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let rules = GrantRules::default();
    let shown = draft(&["cargo", "test", "a"], Some("session-1"));
    let session = choice(DecisionOutcome::Approve, Scope::Session, Some(&["cargo", "test", "*"]));
    let (answer, _) =
        tokio::join!(robot.authorize(&shown, &robots, &rules), answer_next(&ada, &adas, &session));
    assert!(matches!(answer.unwrap(), Answer::Approved(_)));
    let covered = draft(&["cargo", "test", "b"], Some("session-1"));
    let taken = by_grant(&robot, &covered, &robots).await.unwrap();
    assert_eq!((taken.number, taken.other_payload.as_deref()), (2, Some(&covered.payload)));
    for other in [
        draft(&["cargo", "test", "b"], Some("session-2")),
        draft(&["cargo", "test", "b"], None),
        draft(&["cargo", "test", "--release"], Some("session-1")),
        draft(&["cargo", "publish", "b"], Some("session-1")),
    ] {
        assert!(by_grant(&robot, &other, &robots).await.is_none(), "{}", other.payload);
    }
    // The enforcer's own rule is stricter than what was signed.
    let off = GrantRules { longest: Duration::ZERO };
    assert!(robot.grants(&robots, &off).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_at_the_same_time_have_different_numbers_and_stop_when_it_is_revoked() {
    let world = World::start().await;
    let robot = Arc::new(world.enforcer_with("robot", Arc::new(MemoryJournal::default())).await);
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let (test, rules) = (draft(&["cargo", "test"], None), GrantRules::default());
    let timebox = choice(DecisionOutcome::Approve, Scope::Timebox, None);
    let (answer, _) =
        tokio::join!(robot.authorize(&test, &robots, &rules), answer_next(&ada, &adas, &timebox));
    let Answer::Approved(first) = answer.unwrap() else { panic!("it was approved") };
    let mut tasks = Vec::new();
    for _ in 0..20 {
        let (robot, test, robots) = (Arc::clone(&robot), test.clone(), robots.clone());
        tasks.push(tokio::spawn(async move { by_grant(&robot, &test, &robots).await.unwrap().number }));
    }
    let mut numbers = BTreeSet::new();
    for task in tasks {
        numbers.insert(task.await.unwrap());
    }
    assert_eq!(numbers, (2..=21).collect());
    robot.revoke_grant(&first.request_id).await.unwrap();
    assert!(by_grant(&robot, &test, &robots).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_settles_what_waits_already_unless_somebody_has_answered_it() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let rules = GrantRules::default();
    let asked = |words: &'static [&'static str]| {
        let (robot, robots) = (&robot, &robots);
        async move { robot.ask_detached(&draft(words, None), robots).await.unwrap() }
    };
    let (covered, rejected, other) =
        (asked(&["touch", "a"]).await, asked(&["touch", "b"]).await, asked(&["ls"]).await);
    let opened = |id| {
        let (ada, adas) = (&ada, &adas);
        async move {
            let items = ada.inbox(adas).await.unwrap();
            items.into_iter().find(|item| item.request_id == id).unwrap().opened.unwrap()
        }
    };
    let on_screen = opened(covered.request_id.clone()).await;
    let mut watches = [&covered, &rejected, &other].map(|request| GrantWatch::new(&robot, request).unwrap());
    for watch in &mut watches {
        assert!(watch.look(&robots, &rules).await.unwrap().is_none(), "there is no grant yet");
    }

    // One is rejected at the gateway, and the answer is not here yet. Then a grant for both is given.
    let rejection = choice(DecisionOutcome::Reject, Scope::Once, None);
    ada.decide(&opened(rejected.request_id.clone()).await, &rejection).await.unwrap();
    let shown = asked(&["touch", "c"]).await;
    let timebox = choice(DecisionOutcome::Approve, Scope::Timebox, Some(&["touch", "*"]));
    ada.decide(&opened(shown.request_id.clone()).await, &timebox).await.unwrap();
    let Answer::Approved(first) = robot.pick_up(&shown.request_id, &robots).await.unwrap() else {
        panic!("it was approved")
    };

    let [covered_watch, rejected_watch, other_watch] = &mut watches;
    let taken = covered_watch.look(&robots, &rules).await.unwrap().unwrap();
    assert_eq!((&taken.request_id, taken.number), (&first.request_id, 2));
    assert!(taken.other_payload.as_deref().is_some_and(|payload| payload.contains("\"a\"")), "it is its own");
    assert_eq!(world.state(&covered.request_id).await, ExchangeState::Withdrawn, "nobody is asked any more");
    let late = choice(DecisionOutcome::Approve, Scope::Once, None);
    assert!(ada.decide(&on_screen, &late).await.is_err(), "it can't be answered any more");
    assert!(matches!(robot.pick_up(&covered.request_id, &robots).await, Err(AskError::NotOpen)));

    assert!(rejected_watch.look(&robots, &rules).await.unwrap().is_none(), "the rejection counts");
    let answer = robot.pick_up(&rejected.request_id, &robots).await.unwrap();
    assert!(matches!(answer, Answer::Rejected(_)), "{answer:?}");
    assert!(other_watch.look(&robots, &rules).await.unwrap().is_none(), "the pattern does not cover it");
    assert_eq!(world.state(&other.request_id).await, ExchangeState::PendingApproval);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_of_nobody_verified_settles_nothing_that_waits_for_a_verified_person() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (mut robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let (rules, phone) = (GrantRules::default(), Authenticator::new("gw.example"));
    let device = robots.get(ada.keys.fingerprint()).unwrap().clone();
    robots.insert(device.with_lock(Some(phone.lock().clone()))).unwrap();
    let mut demanding = draft(&["touch", "a"], None);
    demanding.to.verify = Verify::Person;
    let waiting = robot.ask_detached(&demanding, &robots).await.unwrap();
    let mut watch = GrantWatch::new(&robot, &waiting).unwrap();
    let timebox = choice(DecisionOutcome::Approve, Scope::Timebox, Some(&["touch", "*"]));
    for is_verified in [false, true] {
        let shown = robot.ask_detached(&draft(&["touch", "c"], None), &robots).await.unwrap();
        let items = ada.inbox(&adas).await.unwrap();
        let item = items.into_iter().find(|item| item.request_id == shown.request_id).unwrap();
        let lock = |asked| phone.confirm(asked).filter(|_| is_verified);
        ada.decide_with(&item.opened.unwrap(), &timebox, lock).await.unwrap();
        robot.pick_up(&shown.request_id, &robots).await.unwrap();
        let taken = watch.look(&robots, &rules).await.unwrap();
        assert_eq!(taken.is_some(), is_verified);
        if !is_verified {
            assert_eq!(world.state(&waiting.request_id).await, ExchangeState::PendingApproval);
        }
    }
}
