//! Many commands that wait at the same time, and a gateway that is killed while they do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

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
    reply::{Choice, Words},
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use support::World;
use tokio::time::{Instant, sleep};

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
async fn a_hundred_at_once_each_get_their_own_answer() {
    let numbers = Numbers::start().await;
    // From 100 on, so that no number is one of the tool's own codes.
    let children: BTreeMap<u8, Child> = (132..232).map(|number| (number, numbers.exec(number))).collect();
    numbers.answer_all(100).await;
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
