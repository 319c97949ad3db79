//! The journal of an enforcer under many replays and in several processes.

use std::{
    env,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_client::{
    audience::Audience,
    clock::{Clock as _, SystemClock},
    journal::{Change, Commit, FileJournal, Journal, Kind, Record},
    keys::DeviceKeys,
    profile::{Party, Pin, PinSource, Pins},
    reply::{Choice, Rejected, Verifier, Words, decide},
    request::{Draft, OpenedRequest, Request},
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    id::EnforcerId,
};

/// The journal that a child writes to, and how many nonces it uses.
const CHILD: [&str; 2] = ["COUNTERSIGN_TEST_JOURNAL", "COUNTERSIGN_TEST_NONCES"];

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["ls"]}"#.to_owned(),
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(10),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

/// 100 decisions, each used once and sent again 100 times: to the same process, and after restarts.
#[test]
fn ten_thousand_replays_of_old_decisions_are_refused_also_after_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
    let (enforcer, now): (EnforcerId, _) = ("robot".parse().unwrap(), SystemClock.now());
    let pinned = |party, keys: &DeviceKeys| {
        let mut pins = Pins::default();
        pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, now)).unwrap();
        pins
    };
    let robots = pinned(Party::Approver("ada".parse().unwrap()), &ada);
    let adas = pinned(Party::Enforcer(enforcer.clone()), &robot);
    let decided = |outcome| {
        let request = Request::build(&draft(), &enforcer, &robot, &robots, now).unwrap();
        let pushed = request.envelope.replace("artifact.submit", "approval.request");
        let envelope = countersign_wire::parse(pushed.as_bytes()).unwrap();
        let opened = OpenedRequest::open(&envelope, "ada", &ada, &adas, now).unwrap();
        let valid_until = now.plus(Duration::from_mins(10));
        let choice = Choice { outcome, scope: Scope::Once, valid_until, words: Words::default() };
        let text = decide(&opened, &choice, &"ada".parse().unwrap(), &ada, now).unwrap();
        (request, text)
    };
    let verify = |journal: &FileJournal, (request, text): &(Request, String)| {
        let verifier = Verifier { enforcer: "robot", keys: &robot, pins: &robots, journal };
        verifier.verify(text.as_bytes(), request, now)
    };
    let journal = FileJournal::new(path.clone());
    let old: Vec<_> = (0..100).map(|_| decided(DecisionOutcome::Approve)).collect();
    assert!(old.iter().all(|decision| verify(&journal, decision).is_ok()));
    let mut refused = 0;
    for round in 0..100 {
        // Every other round is that of a process that has just started.
        let restarted = FileJournal::new(path.clone());
        let journal = if round % 2 == 0 { &journal } else { &restarted };
        let is_replay = |decision| matches!(verify(journal, decision), Err(Rejected::Replayed));
        refused += old.iter().filter(|decision| is_replay(decision)).count();
    }
    assert_eq!(refused, 10_000);
    assert!(verify(&journal, &decided(DecisionOutcome::Reject)).is_ok(), "a new one is accepted");
}

fn nonce(number: usize) -> Record {
    let keep_until = SystemClock.now().plus(Duration::from_hours(1));
    let value = "x".repeat(500).into();
    Record { kind: Kind::Nonce, key: format!("nonce {number}"), value, keep_until }
}

/// Not a test of its own: what each process of the next one does.
#[test]
fn child() {
    let [Ok(path), Ok(nonces)] = CHILD.map(env::var) else { return };
    let journal = FileJournal::new(path.into());
    // The record that all of them replace makes the file long, so that it is rewritten often.
    let padding = Record { kind: Kind::Open, key: "padding".to_owned(), ..nonce(0) };
    for number in 0..nonces.parse().unwrap() {
        let changes = [Change::Add(nonce(number)), Change::Put(padding.clone())];
        if journal.commit(&changes, SystemClock.now()).unwrap() == Commit::Done {
            let won = Record { kind: Kind::Use, key: format!("{number}/{}", std::process::id()), ..nonce(0) };
            assert_eq!(journal.commit(&[Change::Add(won)], SystemClock.now()).unwrap(), Commit::Done);
        }
    }
}

fn start_child(path: &Path, nonces: usize) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "journal::child", "--nocapture"])
        .env(CHILD[0], path)
        .env(CHILD[1], nonces.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn of_several_processes_one_uses_a_nonce_and_nothing_is_lost_when_the_file_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let watcher = Arc::new(FileJournal::new(path.clone()));
    let padding = Record { kind: Kind::Open, key: "padding".to_owned(), ..nonce(0) };
    assert_eq!(watcher.commit(&[Change::Put(padding)], SystemClock.now()).unwrap(), Commit::Done);
    // Its first line is another one whenever the file is rewritten.
    let generation = || std::fs::read_to_string(&path).unwrap().lines().next().map(str::to_owned);
    let first = generation();
    let children: Vec<Child> = (0..4).map(|_| start_child(&path, 200)).collect();
    for mut child in children {
        while child.try_wait().unwrap().is_none() {
            // A reader among the writers, which never sees less than before.
            let seen = watcher.list(Kind::Nonce).unwrap().len();
            assert!(watcher.list(Kind::Nonce).unwrap().len() >= seen);
        }
        assert!(child.wait().unwrap().success());
    }
    assert_ne!(generation(), first, "the file was rewritten");
    let fresh = FileJournal::new(path);
    assert_eq!(fresh.list(Kind::Nonce).unwrap().len(), 200);
    let won = fresh.list(Kind::Use).unwrap();
    let numbers: std::collections::BTreeSet<&str> =
        won.iter().map(|record| record.key.split_once('/').unwrap().0).collect();
    assert_eq!((won.len(), numbers.len()), (200, 200), "each was used by one process");
}

/// Processes that are killed while they write leave a journal that can be used, with everything that was finished.
#[test]
fn a_process_that_is_killed_leaves_a_journal_that_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut known = 0;
    for round in 0..20 {
        let mut child = start_child(&path, usize::MAX);
        let mut now = known;
        // Until it has written some more.
        while now <= known + round % 7 {
            assert!(child.try_wait().unwrap().is_none(), "it goes on until it is killed");
            now = FileJournal::new(path.clone()).list(Kind::Nonce).unwrap().len();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let left = FileJournal::new(path.clone()).list(Kind::Nonce).unwrap().len();
        assert!(left >= now, "round {round}");
        known = left;
    }
    assert!(known >= 20, "each has written something: {known}");
}
