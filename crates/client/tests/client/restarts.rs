//! Not acting twice: enforcers that are killed while they wait, and answers that race.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::{World, pair};
use countersign_client::{
    approver::Approver,
    audience::Audience,
    authorize::Answer,
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer},
    http::Http,
    join::{JoinLink, join},
    journal::{FileJournal, Journal as _, Kind},
    keys::DeviceKeys,
    profile::{Facts, FileKeys, GatewayUrl, Pins, Profile},
    receipt::Outcome,
    reply::{Choice, Rejected, Words},
    request::{Draft, OpenedRequest, Request},
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
};
use tokio::time::{Instant, sleep, timeout};

/// The folder of the profile that a child acts with.
const CHILD: &str = "COUNTERSIGN_TEST_ENFORCER";

/// How many requests the child asks altogether, over all restarts.
const REQUESTS: &str = "COUNTERSIGN_TEST_REQUESTS";

fn rounds(name: &str, usual: usize) -> usize {
    env::var(name).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["cargo","test"]}"#.to_owned(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(5),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

fn approve() -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words::default(),
    }
}

fn enforcer(folder: &Path) -> (Enforcer, Pins) {
    let profile = Profile::open(folder).unwrap();
    let id = profile.facts().party.id().parse().unwrap();
    let http = Http::new(profile.facts().gateway.clone(), Some(profile.credential())).unwrap();
    let journal = Arc::new(FileJournal::new(profile.journal().unwrap()));
    let keys = profile.unlock(None).unwrap();
    (Enforcer { http, id, keys, clock: Arc::new(SystemClock), journal }, profile.pins().unwrap())
}

fn note(folder: &Path, file: &str, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join(file)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn noted(folder: &Path, file: &str) -> Vec<String> {
    fs::read_to_string(folder.join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Not a test of its own: an enforcer that picks up what it has asked before, asks more, and executes what is approved.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(folder) = env::var(CHILD) else { return };
    let folder = Path::new(&folder);
    let (robot, pins) = enforcer(folder);
    loop {
        let open = robot.open_requests().await.unwrap();
        for request in &open {
            match robot.pick_up(&request.request_id, &pins).await {
                Ok(Answer::Approved(taken)) => {
                    note(folder, "executions", request.request_id.as_str());
                    robot.finish(taken, Outcome::Applied { exit_status: Some(0) }, &pins).await.unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        if noted(folder, "asked").len() >= rounds(REQUESTS, 0) {
            break;
        }
        let request_id = robot.ask_detached(&draft(), &pins).await.unwrap().request_id;
        note(folder, "asked", request_id.as_str());
    }
}

fn start_child(folder: &Path, requests: usize) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "restarts::child", "--nocapture"]).stdout(Stdio::null());
    command.env(CHILD, folder).env(REQUESTS, requests.to_string()).spawn().unwrap()
}

/// Approves whatever arrives, a little later.
async fn approve_all(ada: Arc<Approver>, adas: Pins, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        for item in ada.inbox(&adas).await.unwrap() {
            ada.decide(&item.opened.unwrap(), &approve()).await.unwrap();
        }
        sleep(Duration::from_millis(15)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_that_is_killed_again_and_again_executes_nothing_twice() {
    let restarts = rounds("COUNTERSIGN_RESTARTS", 50);
    let world = World::start().await;
    let link: JoinLink = world.invitation("robot").await.parse().unwrap();
    let joined = join(&link).await.unwrap();
    let folder = world.data.path().join("robot");
    let facts = Facts {
        party: joined.party,
        tenant: joined.tenant.parse().unwrap(),
        gateway: joined.gateway,
        label: "build machine".parse().unwrap(),
    };
    let keys = DeviceKeys::generate().unwrap();
    let profile = Profile::create(&folder, facts, &joined.credential, &keys, &FileKeys).unwrap();
    let ada = Arc::new(world.approver("ada").await);
    let (robot, _) = enforcer(&folder);
    let (pins, adas) = pair(&robot, &ada, Pins::default()).await;
    let pin = pins.iter().next().unwrap().clone();
    profile.update_pins(|pins| pins.insert(pin)).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let approving = tokio::spawn(approve_all(Arc::clone(&ada), adas, Arc::clone(&is_over)));
    let mut killed = 0;
    for round in 0..restarts {
        let mut child = start_child(&folder, usize::MAX);
        // Some die at once, some while they ask, wait, act or report.
        sleep(Duration::from_millis(u64::try_from(30 + round * 37 % 170).unwrap())).await;
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The last one finishes what is open.
    let mut last = start_child(&folder, 0);
    assert!(last.wait().unwrap().success());
    is_over.store(true, Ordering::Relaxed);
    approving.await.unwrap();
    assert_eq!(killed, restarts, "every one was killed while it worked");
    let (asked, executed) = (noted(&folder, "asked"), noted(&folder, "executions"));
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for request_id in &executed {
        *times.entry(request_id).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "something was executed twice: {times:?}");
    // Each request has ended, and each that was not executed was taken by a process that was killed at that moment.
    let journal = FileJournal::new(profile.journal().unwrap());
    assert!(journal.list(Kind::Open).unwrap().is_empty());
    let (robot, _) = enforcer(&folder);
    let unfinished = robot.unfinished().await.unwrap();
    for request_id in &asked {
        let is_settled = journal.get(Kind::Settled, request_id).unwrap().is_some();
        let is_unfinished = unfinished.iter().any(|(id, _)| id.as_str() == request_id);
        assert!(is_settled && (times.contains_key(request_id.as_str()) || is_unfinished), "{request_id}");
    }
    println!(
        "{restarts} restarts, {} asked, {} executed once, {} unfinished",
        asked.len(),
        executed.len(),
        unfinished.len()
    );
    assert!(!executed.is_empty(), "it got on in between");
}

async fn opened(approver: &Approver, pins: &Pins, request: &Request) -> OpenedRequest {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let items = approver.inbox(pins).await.unwrap();
        if let Some(item) = items.into_iter().find(|item| item.request_id == request.request_id) {
            return item.opened.unwrap();
        }
        assert!(Instant::now() < until, "nothing arrives");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_approvers_and_an_answer_at_the_desk_one_wins_and_the_others_learn_it() {
    let world = World::start().await;
    let journal = Arc::new(FileJournal::new(world.data.path().join("journal")));
    let robot = world.enforcer_with("robot", journal).await;
    let (ada, bob) = (world.approver("ada").await, world.approver("bob").await);
    let (robots, of_ada) = pair(&robot, &ada, Pins::default()).await;
    let (robots, of_bob) = pair(&robot, &bob, robots).await;
    let mut wins = [0; 3];
    for round in 0..rounds("COUNTERSIGN_RACES", 50) {
        let request_id = robot.ask_detached(&draft(), &robots).await.unwrap().request_id;
        let request = robot.open_requests().await.unwrap().pop().unwrap();
        assert_eq!(request.request_id, request_id);
        let (for_ada, for_bob) =
            (opened(&ada, &of_ada, &request).await, opened(&bob, &of_bob, &request).await);
        // Who begins changes from round to round.
        let delay = |turn: usize| Duration::from_micros(u64::try_from((round + turn) % 3 * 700).unwrap());
        let (by_ada, by_bob, at_desk, answer) = tokio::join!(
            async {
                sleep(delay(0)).await;
                ada.decide(&for_ada, &approve()).await
            },
            async {
                sleep(delay(1)).await;
                bob.decide(&for_bob, &approve()).await
            },
            async {
                sleep(delay(2)).await;
                robot.withdraw(&request).await
            },
            robot.pick_up(&request_id, &robots),
        );
        let won = [by_ada.is_ok(), by_bob.is_ok(), at_desk.is_ok()];
        assert_eq!(
            won.iter().filter(|won| **won).count(),
            1,
            "round {round}: {by_ada:?} {by_bob:?} {at_desk:?}"
        );
        match answer {
            Ok(Answer::Approved(taken)) => {
                let device = taken.decision.device;
                assert!(
                    won[0] && device == ada.keys.fingerprint() || won[1] && device == bob.keys.fingerprint()
                );
                robot.finish(taken, Outcome::Applied { exit_status: Some(0) }, &robots).await.unwrap();
            }
            Err(AskError::TakenBack) => assert!(won[2], "round {round}"),
            other => panic!("round {round}: {other:?}"),
        }
        for (wins, won) in wins.iter_mut().zip(won) {
            *wins += usize::from(won);
        }
        assert!(robot.open_requests().await.unwrap().is_empty());
        assert!(matches!(robot.pick_up(&request_id, &robots).await, Err(AskError::NotOpen)));
    }
    println!("wins of ada, bob and the desk: {wins:?}");
}

/// A gateway that says yes to both: what is recorded first counts.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_at_the_desk_and_a_decision_are_never_both_used() {
    let world = World::start().await;
    let path = world.data.path().join("journal");
    let robot = world.enforcer_with("robot", Arc::new(FileJournal::new(path.clone()))).await;
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    robot.ask_detached(&draft(), &robots).await.unwrap();
    let request = robot.open_requests().await.unwrap().pop().unwrap();
    ada.decide(&opened(&ada, &adas, &request).await, &approve()).await.unwrap();
    // Another process has recorded that it was answered at the desk.
    let other = FileJournal::new(path);
    let open = other.get(Kind::Open, request.request_id.as_str()).unwrap().unwrap();
    let settled = countersign_client::journal::Record {
        kind: Kind::Settled,
        value: r#"{"end":"withdrawn"}"#.to_owned().into(),
        ..open
    };
    let change = countersign_client::journal::Change::Add(settled);
    let _done = other.commit(&[change], SystemClock.now()).unwrap();
    let answer = robot.pick_up(&request.request_id, &robots).await;
    assert!(matches!(answer, Err(AskError::Rejected(Rejected::Settled))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_and_not_submitted_is_submitted_by_who_picks_it_up() {
    let world = World::start().await;
    let path = world.data.path().join("journal");
    let robot = world.enforcer_with("robot", Arc::new(FileJournal::new(path.clone()))).await;
    let ada = world.approver("ada").await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let http = robot.http.clone();
    let nowhere = Http::new(GatewayUrl::new("http://127.0.0.1:9").unwrap(), None).unwrap();
    let robot = Enforcer { http: nowhere, ..robot };
    // It ends before the gateway is reached.
    let recorded = async {
        while robot.open_requests().await.unwrap().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let draft = draft();
    tokio::select! {
        asked = robot.ask_detached(&draft, &robots) => panic!("nobody is there: {asked:?}"),
        recorded = timeout(Duration::from_secs(20), recorded) => recorded.unwrap(),
    }
    let robot = Enforcer { http, journal: Arc::new(FileJournal::new(path)), ..robot };
    let request = robot.open_requests().await.unwrap().pop().unwrap();
    let (answer, ()) = tokio::join!(robot.pick_up(&request.request_id, &robots), async {
        ada.decide(&opened(&ada, &adas, &request).await, &approve()).await.unwrap();
    });
    assert!(matches!(answer, Ok(Answer::Approved(_))), "{answer:?}");
    let unknown = robot.pick_up(&"unknown".parse().unwrap(), &robots).await;
    assert!(matches!(unknown, Err(AskError::NotOpen)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_expired_ends_also_for_who_picks_it_up_later() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, _) = pair(&robot, &ada, Pins::default()).await;
    let short = Draft { valid_for: Duration::from_secs(8), ..draft() };
    let request_id = robot.ask_detached(&short, &robots).await.unwrap().request_id;
    let answer = robot.pick_up(&request_id, &robots).await;
    assert!(matches!(answer, Err(AskError::Expired)), "{answer:?}");
    assert!(robot.open_requests().await.unwrap().is_empty());
    assert!(matches!(robot.pick_up(&request_id, &robots).await, Err(AskError::NotOpen)));
}
