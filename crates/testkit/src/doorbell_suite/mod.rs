//! What every doorbell must do. Each case attaches nodes of its own to a doorbell of its own.

mod harness;
mod nodes;

use std::{process::ExitCode, sync::Arc, time::Duration};

use countersign_core::{notify::Announcement, store::MailboxKey};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::{
    runtime,
    time::{sleep, timeout},
};

pub use harness::{DoorbellHarness, MakeDoorbell};
use nodes::{Node, announcement, hand_over, ring};

/// The timeout of a case.
const CASE_TIMEOUT: Duration = Duration::from_mins(1);

type Run = fn(&dyn DoorbellHarness) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>>;

macro_rules! cases {
    ($($name:ident,)+) => {
        const CASES: &[(&str, Run)] = &[$((stringify!($name), |harness| Box::pin($name(harness))),)+];
    };
}

cases! {
    rings_reach_all_other_nodes_and_not_oneself,
    a_delivery_reaches_only_its_node_and_is_whole,
    rings_arrive_in_order,
    a_detached_node_gets_nothing,
    a_slow_receiver_delays_no_announcer,
    much_at_once_is_bounded_and_the_last_arrives,
}

/// Runs every case. This is the `main` of a doorbell's test: in its manifest the test has `harness = false`.
#[must_use]
pub fn run(make: MakeDoorbell) -> ExitCode {
    let trials = CASES.iter().map(|(name, case)| {
        Trial::test(*name, move || {
            let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let finished = runtime.block_on(async {
                let harness = make();
                timeout(CASE_TIMEOUT, case(&*harness)).await
            });
            runtime.shutdown_background();
            finished.map_err(|_| Failed::from(format!("timed out after {CASE_TIMEOUT:?}")))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

async fn rings_reach_all_other_nodes_and_not_oneself(harness: &dyn DoorbellHarness) {
    let nodes = Node::attach_all(harness, ["a", "b", "c"]).await;
    let sent = announcement(vec![(ring("x"), 7), (ring("y"), 0)]);
    nodes[0].announce(sent.clone());
    for other in &nodes[1..] {
        assert_eq!(other.next_rings().await, sent.rings);
    }
    nodes[1].announce(announcement(vec![(ring("back"), 1)]));
    // What it gets first is the other's, not its own.
    assert_eq!(nodes[0].next_rings().await, [(ring("back"), 1)]);
}

async fn a_delivery_reaches_only_its_node_and_is_whole(harness: &dyn DoorbellHarness) {
    let nodes = Node::attach_all(harness, ["a", "b", "c"]).await;
    let sent = Arc::new(hand_over(3, 9_000));
    let MailboxKey { tenant, mailbox } = sent.mailbox.clone();
    let rung = countersign_core::notify::Ring::Mailbox(MailboxKey { tenant, mailbox });
    nodes[0].announce(Announcement {
        timeline: 5,
        rings: vec![(rung.clone(), 3)],
        hand_overs: vec![(nodes[1].id.clone(), Arc::clone(&sent))],
    });
    let got = nodes[1].until(|got| !got.hand_overs.is_empty() && !got.rings.is_empty()).await;
    assert_eq!(got.hand_overs, [(5, Arc::clone(&sent))]);
    let others = nodes[2].until(|got| !got.rings.is_empty()).await;
    assert_eq!((others.rings.as_slice(), others.hand_overs.len()), (&[(rung, 3)][..], 0));
}

async fn rings_arrive_in_order(harness: &dyn DoorbellHarness) {
    let nodes = Node::attach_all(harness, ["a", "b"]).await;
    for number in 1..=1_000 {
        nodes[0].announce(announcement(vec![(ring("x"), number)]));
    }
    let got = nodes[1].until(|got| got.rings.last().is_some_and(|(_, number)| *number == 1_000)).await;
    assert!(got.rings.is_sorted_by_key(|(_, number)| *number), "{:?}", got.rings);
}

async fn a_detached_node_gets_nothing(harness: &dyn DoorbellHarness) {
    let mut nodes = Node::attach_all(harness, ["a", "b", "c"]).await;
    nodes[1].detach();
    nodes[0].announce(announcement(vec![(ring("x"), 1)]));
    assert_eq!(nodes[2].next_rings().await, [(ring("x"), 1)]);
    sleep(Duration::from_millis(100)).await;
    assert!(nodes[1].take().rings.is_empty());
}

async fn a_slow_receiver_delays_no_announcer(harness: &dyn DoorbellHarness) {
    if !harness.is_between_processes() {
        return;
    }
    let nodes = Node::attach_all(harness, ["a", "b"]).await;
    // Nobody waits for the receiver, also not at the end: its runtime is shut down in the background.
    let delay = Duration::from_secs(10);
    nodes[1].delay(delay);
    let start = tokio::time::Instant::now();
    for number in 1..=100 {
        nodes[0].announce(announcement(vec![(ring("x"), number)]));
        tokio::task::yield_now().await;
    }
    assert!(start.elapsed() < delay, "{:?}", start.elapsed());
}

async fn much_at_once_is_bounded_and_the_last_arrives(harness: &dyn DoorbellHarness) {
    let nodes = Node::attach_all(harness, ["a", "b"]).await;
    for number in 1..=20_000_u64 {
        let body = Arc::new(hand_over(number, 1_000));
        nodes[0].announce(Announcement {
            timeline: 5,
            rings: vec![(ring("x"), number)],
            hand_overs: vec![(nodes[1].id.clone(), body)],
        });
        // Receivers of the same process would keep all of it.
        nodes[1].discard_hand_overs();
    }
    // Whatever was dropped: what comes after the flood arrives.
    let last = (ring("last"), 1);
    let arrived = async {
        loop {
            nodes[0].announce(announcement(vec![last.clone()]));
            let waited = nodes[1].until(|got| got.rings.contains(&last));
            if timeout(Duration::from_secs(1), waited).await.is_ok() {
                return;
            }
        }
    };
    arrived.await;
}
