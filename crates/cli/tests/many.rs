//! Many commands that wait at the same time, and a gateway that is killed while they do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use countersign_client::reply::Words;
use countersign_wire::decision::DecisionOutcome;
use support::World;
use tokio::time::sleep;

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
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["exec", "--", "sh", "-c", &script])
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
