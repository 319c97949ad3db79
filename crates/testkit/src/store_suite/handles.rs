//! Two handles on the same data that write at once, as two nodes of a cluster do.

use std::sync::Arc;

use countersign_core::store::{Change, DeliveryQuery, Kind, Mailbox, Outcome, Record};
use tokio::task::JoinSet;

use super::{StoreHarness, cases, fixtures::*};

cases![
    what_one_handle_committed_the_other_sees,
    a_guard_sees_what_the_other_handle_committed,
    of_two_changes_of_one_version_exactly_one_is_committed,
    of_two_first_submits_exactly_one_is_committed,
    batches_that_insert_the_same_records_leave_their_neighbours_alone,
    of_a_change_and_a_deletion_exactly_one_is_committed,
    absent_guards_that_cross_do_not_both_pass,
    version_guards_that_cross_do_not_both_pass,
    two_handles_number_one_mailbox_without_gaps,
    two_handles_number_mailboxes_of_their_own_from_one,
    mailboxes_written_in_opposite_order_do_not_deadlock,
    a_reader_that_follows_misses_no_number,
];

const ROUNDS: usize = 50;

async fn what_one_handle_committed_the_other_sees(harness: Box<dyn StoreHarness>) {
    let (store, other, ann) = (harness.store(), harness.second_handle().await, inbox("ann"));
    for round in 1..=20 {
        let ours = exchange(&format!("round {round}"));
        let (writer, reader) = if round % 2 == 0 { (&store, &other) } else { (&other, &store) };
        let version = put_ok(writer, change().put(&ours, "x").deliver(delivery(&ann, "m", &ours))).await;
        assert_eq!(load(reader, &ours).await, Some(record(&ours, version, "x")));
        assert_eq!(head(reader, &ann).await, round);
    }
}

async fn a_guard_sees_what_the_other_handle_committed(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    let first = put_ok(&store, change().if_absent(&ours).put(&ours, "1")).await;
    commit_ok(&other, change().if_version(&ours, first).put(&ours, "2")).await;
    for guard in [change().if_version(&ours, first), change().if_seen(&ours, first)] {
        let (current, _) = commit_conflict(&store, guard.put(&ours, "3")).await;
        assert_eq!(current, [Some(record(&ours, first + 1, "2"))]);
    }
}

/// Commits both at once, one through each handle. Returns the index of the committed one and the records that the
/// other one conflicted with.
async fn race(handles: [&Handle; 2], changes: [Change; 2]) -> (usize, Vec<Option<Record>>) {
    let [first, second] = changes;
    let outcomes = tokio::join!(handles[0].commit(first), handles[1].commit(second));
    match (outcomes.0.unwrap(), outcomes.1.unwrap()) {
        (Outcome::Committed { .. }, Outcome::Conflict { current, .. }) => (0, current),
        (Outcome::Conflict { current, .. }, Outcome::Committed { .. }) => (1, current),
        both => panic!("exactly one wins: {both:?}"),
    }
}

async fn of_two_changes_of_one_version_exactly_one_is_committed(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    let first = put_ok(&store, change().put(&ours, "start")).await;
    for version in first..first + ROUNDS as u64 {
        let contents = [format!("one, {version}"), format!("other, {version}")];
        let changes = contents.clone().map(|content| change().if_version(&ours, version).put(&ours, content));
        let (winner, current) = race([&store, &other], changes).await;
        let won = Some(record(&ours, version + 1, contents[winner].clone()));
        assert_eq!(current, std::slice::from_ref(&won), "the conflict returns the winner's record");
        assert_eq!(load(&store, &ours).await, won);
    }
}

async fn of_two_first_submits_exactly_one_is_committed(harness: Box<dyn StoreHarness>) {
    let (store, other, ann) = (harness.store(), harness.second_handle().await, inbox("ann"));
    for round in 0..ROUNDS {
        let ours = exchange(&format!("round {round}"));
        let submit = |content: &'static str| {
            change().if_absent(&ours).put(&ours, content).deliver(delivery(&ann, "m", &ours))
        };
        let (winner, current) = race([&store, &other], [submit("one"), submit("other")]).await;
        let won = load(&other, &ours).await;
        assert_eq!(won.as_ref().unwrap().content, ["one", "other"][winner]);
        assert_eq!(current, [won], "the conflict returns the winner's record");
    }
    assert_eq!(numbers(&store, all_of(&ann)).await, (1..=ROUNDS as u64).collect::<Vec<_>>());
}

/// Each handle commits batches in which every fourth change competes with the other handle, in opposite orders.
async fn batches_that_insert_the_same_records_leave_their_neighbours_alone(harness: Box<dyn StoreHarness>) {
    let handles = [harness.store(), harness.second_handle().await];
    for round in 0..10 {
        let mut commits = JoinSet::new();
        for at in 0..40 {
            for (node, handle) in handles.iter().enumerate() {
                let at = if node == 0 { at } else { 39 - at };
                let shared = at % 4 == 0;
                let id = if shared { format!("{round} {at}") } else { format!("{round} {at} {node}") };
                let (ours, beside) = (exchange(&id), key(Kind::Idempotency, &format!("{round} {at} {node}")));
                let change = change().if_absent(&beside).put(&beside, "x").if_absent(&ours).put(&ours, "x");
                let handle = Arc::clone(handle);
                commits.spawn(async move { (shared, at, handle.commit(change).await.unwrap()) });
            }
        }
        let mut won = Vec::new();
        for (shared, at, outcome) in commits.join_all().await {
            match outcome {
                Outcome::Committed { .. } if shared => won.push(at),
                Outcome::Committed { .. } => {}
                Outcome::Conflict { current, .. } => {
                    assert!(shared, "a neighbour conflicts with nobody");
                    assert_eq!(current, [None, load(&handles[0], &exchange(&format!("{round} {at}"))).await]);
                }
            }
        }
        won.sort_unstable();
        assert_eq!(won, (0..40).step_by(4).collect::<Vec<_>>(), "exactly one wins");
    }
    let beside = scan(&handles[0], Kind::Idempotency, None, 10_000).await;
    assert_eq!(beside.len(), 10 * (30 * 2 + 10), "and the losers have left nothing");
}

async fn of_a_change_and_a_deletion_exactly_one_is_committed(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    for round in 0..ROUNDS {
        let ours = exchange(&format!("round {round}"));
        let first = put_ok(&store, change().put(&ours, "1")).await;
        let guard = || change().if_version(&ours, first);
        let changes = [guard().put(&ours, "2"), guard().delete(&ours)];
        let (winner, current) = race([&store, &other], changes).await;
        let won = (winner == 0).then(|| record(&ours, first + 1, "2"));
        assert_eq!(current, std::slice::from_ref(&won), "the conflict returns what the winner left");
        assert_eq!(load(&store, &ours).await, won);
    }
}

/// Each change reads what the other writes: if both were committed, neither would have seen the other (write skew).
async fn absent_guards_that_cross_do_not_both_pass(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    for round in 0..ROUNDS {
        let (a, b) = (exchange(&format!("a {round}")), exchange(&format!("b {round}")));
        let changes = [change().if_absent(&b).put(&a, "x"), change().if_absent(&a).put(&b, "x")];
        let (winner, _) = race([&store, &other], changes).await;
        assert_eq!(load(&store, &a).await.is_some(), winner == 0);
        assert_eq!(load(&store, &b).await.is_some(), winner == 1);
    }
}

/// Write skew again, with records that exist.
async fn version_guards_that_cross_do_not_both_pass(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    for round in 0..ROUNDS {
        let (a, b) = (exchange(&format!("a {round}")), exchange(&format!("b {round}")));
        let first = puts_ok(&store, change().put(&a, "1").put(&b, "1")).await;
        let changes =
            [change().if_version(&b, first[1]).put(&a, "2"), change().if_version(&a, first[0]).put(&b, "2")];
        let (winner, current) = race([&store, &other], changes).await;
        assert_eq!(current, [Some(record([&a, &b][winner], first[winner] + 1, "2"))]);
    }
}

/// Commits `count` times from each of four concurrent tasks per handle; returns all assigned numbers.
async fn write_at_once(handles: [&Handle; 2], count: usize, make: fn(usize) -> Change) -> Vec<Vec<u64>> {
    let mut writers = JoinSet::new();
    for (at, handle) in handles.into_iter().enumerate() {
        for _ in 0..4 {
            let handle = Arc::clone(handle);
            writers.spawn(async move {
                let mut assigned = Vec::new();
                for _ in 0..count {
                    assigned.push(commit_ok(&handle, make(at)).await.1);
                }
                assigned
            });
        }
    }
    writers.join_all().await.concat()
}

async fn two_handles_number_one_mailbox_without_gaps(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let make = |_| change().deliver(delivery(&Mailbox::Shared, "m", &exchange("ours")));
    let mut assigned = write_at_once([&store, &other], 50, make).await.concat();
    assigned.sort_unstable();
    assert_eq!(assigned, (1..=400).collect::<Vec<_>>());
    assert_eq!(numbers(&store, all_of(&Mailbox::Shared)).await, assigned);
}

async fn two_handles_number_mailboxes_of_their_own_from_one(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let make = |at: usize| change().deliver(delivery(&inbox(["ann", "bob"][at]), "m", &exchange("ours")));
    write_at_once([&store, &other], 25, make).await;
    for owner in ["ann", "bob"] {
        assert_eq!(numbers(&store, all_of(&inbox(owner))).await, (1..=100).collect::<Vec<_>>(), "{owner}");
    }
}

/// Delivers to ann and bob: the first handle to ann first, the second one to bob first.
fn to_both(at: usize) -> Change {
    let (first, second) = if at == 0 { ("ann", "bob") } else { ("bob", "ann") };
    let subject = exchange("ours");
    change().deliver(delivery(&inbox(first), "m", &subject)).deliver(delivery(&inbox(second), "m", &subject))
}

async fn mailboxes_written_in_opposite_order_do_not_deadlock(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    write_at_once([&store, &other], 50, to_both).await;
    for owner in ["ann", "bob"] {
        assert_eq!(numbers(&store, all_of(&inbox(owner))).await, (1..=400).collect::<Vec<_>>(), "{owner}");
    }
}

/// Polls after the last number seen until it has seen `count`, as a client does with its inbox.
async fn follow(store: Handle, mailbox: Mailbox, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let after = seen.last().copied().unwrap_or(0);
        seen.extend(numbers(&store, DeliveryQuery { after, limit: 7, ..all_of(&mailbox) }).await);
        tokio::task::yield_now().await;
    }
    seen
}

async fn a_reader_that_follows_misses_no_number(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let mut readers = JoinSet::new();
    for handle in [&store, &other] {
        for owner in ["ann", "bob"] {
            readers.spawn(follow(Arc::clone(handle), inbox(owner), 400));
        }
    }
    write_at_once([&store, &other], 50, to_both).await;
    for seen in readers.join_all().await {
        assert_eq!(seen, (1..=400).collect::<Vec<_>>());
    }
}
