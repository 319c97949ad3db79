//! Commands that wait at a real gateway: many at the same time, while it is killed, and until another's approval covers
//! them; and what is kept of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod again;
mod bring;
mod look;
#[path = "../support/mod.rs"]
mod support;

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use countersign_client::{
    clock::{Clock as _, SystemClock},
    pattern::Pattern,
    profile::Profile,
    reply::{Choice, Words},
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use support::World;
use tokio::time::{Instant, sleep};

fn approve(_: &countersign_client::request::OpenedRequest) -> (DecisionOutcome, Words) {
    (DecisionOutcome::Approve, Words::default())
}

/// Commands that append their number to a file.
struct Numbers {
    world: World,
}

impl Numbers {
    async fn start() -> Self {
        Self { world: World::start().await }
    }

    /// `countersign exec` of a command that appends its number to a file and ends with it.
    fn exec(&self, number: u8) -> Child {
        let script = format!("echo {number} >> ran; exit {number}");
        self.run(&["exec", "--", "sh", "-c", &script])
    }

    fn run(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .current_dir(self.world.folder.path())
            .env("COUNTERSIGN_HOME", self.world.home())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Approves even numbers and rejects odd ones.
    async fn answer_all(&self, count: usize) {
        let number = |payload: &str| -> u8 {
            payload.split("exit ").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        self.world
            .decide_all(count, |request| match number(&request.payload) % 2 {
                0 => (DecisionOutcome::Approve, Words::default()),
                _ => (DecisionOutcome::Reject, Words::default()),
            })
            .await;
    }

    /// Each ends with its own number or with 81, and only the approved ones have run, once.
    fn check(&self, children: BTreeMap<u8, Child>) {
        for (number, mut child) in children {
            let code = child.wait().unwrap().code().unwrap();
            assert_eq!(code, if number % 2 == 0 { i32::from(number) } else { 81 }, "number {number}");
        }
        let text = fs::read_to_string(self.world.folder.path().join("ran")).unwrap();
        let mut ran: Vec<u8> = text.lines().map(|line| line.parse().unwrap()).collect();
        ran.sort_unstable();
        let distinct: std::collections::BTreeSet<u8> = ran.iter().copied().collect();
        assert!(ran.iter().all(|number| number % 2 == 0) && distinct.len() == ran.len(), "{ran:?}");
    }
}

#[tokio::test]
async fn fifty_at_once_each_get_their_own_answer() {
    let numbers = Numbers::start().await;
    // From 132 on, so that no number is one of the tool's own codes.
    let children: BTreeMap<u8, Child> = (132..182).map(|number| (number, numbers.exec(number))).collect();
    numbers.answer_all(50).await;
    numbers.check(children);
}

#[tokio::test]
async fn a_gateway_that_is_killed_while_twenty_wait_loses_none() {
    let mut numbers = Numbers::start().await;
    let children: BTreeMap<u8, Child> = (132..152).map(|number| (number, numbers.exec(number))).collect();
    numbers.world.waiting(20).await;
    numbers.world.gateway.kill().unwrap();
    numbers.world.gateway.wait().unwrap();
    sleep(Duration::from_secs(1)).await;
    let url = numbers.world.ada.http.gateway().as_str().to_owned();
    numbers.world.gateway = support::serve(numbers.world.folder.path(), &url).await;
    numbers.answer_all(20).await;
    numbers.check(children);
}

#[tokio::test]
async fn a_grant_settles_what_waits_already() {
    let numbers = Numbers::start().await;
    let world = &numbers.world;
    let path = |name: &str| world.folder.path().join(name);
    let mut covered = ["one", "two"].map(|name| numbers.run(&["exec", "--", "touch", name]));
    let mut asked = numbers.run(&["ask", "--", "touch", "three"]);
    let mut other = numbers.run(&["exec", "--", "mkdir", "four"]);
    world.waiting(4).await;
    let items = world.ada.inbox(&world.adas).await.unwrap();
    let requests: Vec<_> = items.into_iter().map(|item| item.opened.unwrap()).collect();
    let of = |name: &str| requests.iter().find(|request| request.payload.contains(name)).unwrap();
    let pattern = Some(Pattern::new(["touch", "*"]).unwrap());
    let valid_until = SystemClock.now().plus(Duration::from_hours(1));
    let words = Words { pattern, ..Words::default() };
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Timebox, valid_until, words };
    world.ada.decide(of("\"one\""), &choice).await.unwrap();
    for child in covered.iter_mut().chain([&mut asked]) {
        let until = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it still waits");
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert!(path("one").exists() && path("two").exists() && !path("three").exists(), "`ask` runs nothing");
    let left = world.ada.inbox(&world.adas).await.unwrap();
    assert_eq!(left.len(), 1, "what is covered asks nobody any more");
    assert!(other.try_wait().unwrap().is_none(), "what the pattern does not cover still waits");
    let valid_until = SystemClock.now().plus(Duration::from_mins(1));
    let words = Words::default();
    let reject = Choice { outcome: DecisionOutcome::Reject, scope: Scope::Once, valid_until, words };
    world.ada.decide(of("\"four\""), &reject).await.unwrap();
    assert_eq!(other.wait().unwrap().code(), Some(81));
    assert!(!path("four").exists());
}

#[tokio::test]
async fn a_command_inherits_no_open_file() {
    let numbers = Numbers::start().await;
    let world = &numbers.world;
    let child = Command::new("sh")
        .args(["-c", "exec 7</etc/passwd; exec \"$0\" exec -- ls /proc/self/fd"])
        .arg(env!("CARGO_BIN_EXE_countersign"))
        .current_dir(world.folder.path())
        .env("COUNTERSIGN_HOME", world.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    world.decide_all(1, |_| (DecisionOutcome::Approve, Words::default())).await;
    let output = child.wait_with_output().unwrap();
    let open: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    // The last one is the folder that `ls` reads.
    assert_eq!(open, ["0", "1", "2", "3"]);
}

/// A phone is stolen while a command waits; its owner revokes it at the machine, and then the thief approves.
#[tokio::test]
async fn a_device_that_is_revoked_while_a_command_waits_does_not_approve_it() {
    let numbers = Numbers::start().await;
    let world = &numbers.world;
    let mut waits = numbers.run(&["exec", "--", "touch", "stolen"]);
    let mut covered = numbers.run(&["exec", "--", "touch", "covered"]);
    world.waiting(2).await;
    let items = world.ada.inbox(&world.adas).await.unwrap();
    let requests = items.into_iter().map(|item| item.opened.unwrap());
    let request = requests.into_iter().find(|request| request.payload.contains("\"stolen\"")).unwrap();
    let profile = Profile::open(&world.home().join("profiles/agent")).unwrap();
    let device = world.ada.keys.fingerprint();
    profile.update_pins(|pins| pins.revoke(device, SystemClock.now())).unwrap();
    let words = Words { pattern: Some(Pattern::new(["touch", "*"]).unwrap()), ..Words::default() };
    let valid_until = SystemClock.now().plus(Duration::from_hours(1));
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Timebox, valid_until, words };
    world.ada.decide(&request, &choice).await.unwrap();
    assert_eq!(waits.wait().unwrap().code(), Some(83));
    assert_eq!(covered.wait().unwrap().code(), Some(83), "its grant covers nothing either");
    assert!(!world.folder.path().join("stolen").exists() && !world.folder.path().join("covered").exists());
}

#[tokio::test]
async fn a_finished_exchange_is_written_and_holds() {
    let numbers = Numbers::start().await;
    let world = &numbers.world;
    let mut child = numbers.run(&["exec", "--", "touch", "one"]);
    world.waiting(1).await;
    let request = world.ada.inbox(&world.adas).await.unwrap().remove(0).opened.unwrap();
    let id = request.request_id.as_str();
    let code = |arguments: &[&str]| numbers.run(arguments).wait().unwrap().code();
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(86), "nobody has decided it yet");
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let words = Words::default();
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Once, valid_until, words };
    world.ada.decide(&request, &choice).await.unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(0));
    assert_eq!(code(&["verify", "bundle.json"]), Some(0));
    let path = world.folder.path().join("bundle.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("touch") && text.contains(id), "{text}");
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(86), "nothing is replaced");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::write(&path, text.replacen("touch", "mkdir", 1)).unwrap();
    assert_eq!(code(&["verify", "bundle.json"]), Some(86), "what was asked is not what was decided");
}
