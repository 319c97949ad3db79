//! Changes that arrive together: a store may write them together, but each succeeds or fails on its own.

use std::{sync::Arc, time::Duration};

use countersign_core::store::{Change, Outcome, PayloadId};
use tokio::{task::JoinSet, time::timeout};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    changes_that_arrive_together_are_all_committed,
    a_failing_change_does_not_disturb_its_neighbours,
    of_many_first_submits_exactly_one_is_committed,
    puts_that_arrive_together_count_every_version,
    changes_that_arrive_together_see_each_others_writes,
    deliveries_that_arrive_together_are_numbered_without_gaps,
    large_and_small_payloads_arrive_together,
    tenants_that_arrive_together_are_isolated,
    a_cancelled_commit_is_all_or_nothing,
];

const TOGETHER: u64 = 64;

/// Commits all changes concurrently through one handle; returns their outcomes in the order of `changes`.
async fn commit_together(store: &Handle, changes: impl Iterator<Item = Change>) -> Vec<Outcome> {
    let mut commits = JoinSet::new();
    for (at, change) in changes.enumerate() {
        let store = Arc::clone(store);
        commits.spawn(async move { (at, store.commit(change).await.unwrap()) });
    }
    let mut outcomes = commits.join_all().await;
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn committed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Committed { .. })
}

fn versions(outcome: &Outcome) -> Vec<u64> {
    match outcome {
        Outcome::Committed { versions, .. } => versions.clone(),
        Outcome::Conflict { .. } => panic!("should have been committed: {outcome:?}"),
    }
}

async fn changes_that_arrive_together_are_all_committed(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let key_of = |at| exchange(&format!("key {at}"));
    let changes = (0..TOGETHER).map(|at| change().if_absent(&key_of(at)).put(&key_of(at), at.to_string()));
    assert!(commit_together(&store, changes).await.iter().all(committed));
    for at in 0..TOGETHER {
        assert_eq!(content(&store, &key_of(at)).await, Some(at.to_string().into()));
    }
}

async fn a_failing_change_does_not_disturb_its_neighbours(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let key_of = |at| exchange(&format!("key {at}"));
    let id_of = |at: u64| PayloadId(at.into());
    let changes = (0..TOGETHER).map(|at| {
        let written =
            change().put(&key_of(at), "x").add_payload(id_of(at), "body").due_at(start(), &key_of(at));
        let written = written.deliver(delivery(&ann, &at.to_string(), &key_of(at)));
        // Of every three changes, one fails on time and one on a version.
        match at % 3 {
            0 => written.if_before(start()),
            1 => written.if_version(&key_of(at), 5),
            _ => written.if_absent(&key_of(at)),
        }
    });
    let outcomes = commit_together(&store, changes).await;
    for (at, outcome) in (0..TOGETHER).zip(&outcomes) {
        let passes = at % 3 == 2;
        assert_eq!(committed(outcome), passes, "change {at}");
        assert_eq!(load(&store, &key_of(at)).await.is_some(), passes, "record {at}");
        assert_eq!(payload(&store, id_of(at)).await.is_some(), passes, "payload {at}");
    }
    let count = (0..TOGETHER).filter(|at| at % 3 == 2).count();
    let delivered = read(&store, all_of(&ann)).await;
    assert!(delivered.iter().map(|delivery| delivery.number).eq(1..=count as u64));
    assert!(delivered.iter().all(|delivery| delivery.msg_id.as_str().parse::<u64>().unwrap() % 3 == 2));
    assert_eq!(claim(&store, 1000).await.len(), count);
}

async fn of_many_first_submits_exactly_one_is_committed(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let changes = (0..TOGETHER).map(|at| change().if_absent(&ours).put(&ours, at.to_string()));
    let outcomes = commit_together(&store, changes).await;
    let won: Vec<_> = (0..outcomes.len()).filter(|at| committed(&outcomes[*at])).collect();
    assert_eq!(won.len(), 1);
    let Outcome::Committed { versions, .. } = &outcomes[won[0]] else { panic!() };
    let winner = record(&ours, versions[0], won[0].to_string());
    for outcome in outcomes.iter().filter(|outcome| !committed(outcome)) {
        assert_eq!(*outcome, Outcome::Conflict { current: vec![Some(winner.clone())], now: start() });
    }
    assert_eq!(load(&store, &ours).await, Some(winner));
}

async fn puts_that_arrive_together_count_every_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let changes = (0..TOGETHER).map(|_| change().put(&ours, "x"));
    let outcomes = commit_together(&store, changes).await;
    let mut written: Vec<u64> = outcomes.iter().flat_map(versions).collect();
    written.sort_unstable();
    assert!(written.iter().copied().eq(written[0]..written[0] + TOGETHER), "{written:?}");
    let newest = written[0] + TOGETHER - 1;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, newest, "x")));
}

/// All tasks increment one record and retry with the version that a conflict returns: no increment may be lost.
async fn changes_that_arrive_together_see_each_others_writes(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mut counters = JoinSet::new();
    for _ in 0..16 {
        let (store, ours) = (Arc::clone(&store), ours.clone());
        counters.spawn(async move {
            let mut version = None;
            loop {
                let next = match &version {
                    None => change().if_absent(&ours).put(&ours, "x"),
                    Some(version) => change().if_version(&ours, *version).put(&ours, "x"),
                };
                match store.commit(next).await.unwrap() {
                    Outcome::Committed { versions, .. } => return versions[0],
                    Outcome::Conflict { current, .. } => version = Some(current[0].as_ref().unwrap().version),
                }
            }
        });
    }
    let mut written = counters.join_all().await;
    written.sort_unstable();
    assert_eq!(written, (written[0]..written[0] + 16).collect::<Vec<_>>());
    assert_eq!(load(&store, &ours).await, Some(record(&ours, written[15], "x")));
}

async fn deliveries_that_arrive_together_are_numbered_without_gaps(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let changes = (0..TOGETHER).map(|at| {
        let subject = exchange(&format!("key {at}"));
        change().deliver(delivery(&ann, &format!("{at} a"), &subject)).deliver(delivery(
            &ann,
            &format!("{at} b"),
            &subject,
        ))
    });
    let outcomes = commit_together(&store, changes).await;
    let delivered = read(&store, all_of(&ann)).await;
    assert!(delivered.iter().map(|delivery| delivery.number).eq(1..=2 * TOGETHER));
    for (at, outcome) in outcomes.iter().enumerate() {
        let found: Vec<_> =
            delivered.iter().filter(|found| found.subject.id == format!("key {at}")).collect();
        assert!(
            found.iter().map(|found| found.msg_id.to_string()).eq([format!("{at} a"), format!("{at} b")])
        );
        let numbers = found.iter().map(|found| found.number).collect();
        let expected = Outcome::Committed { now: start(), numbers, versions: Vec::new() };
        assert_eq!(*outcome, expected, "the numbers in the mailbox");
    }
}

async fn large_and_small_payloads_arrive_together(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let size_of = |at: u64| if at.is_multiple_of(8) { 1 << 20 } else { 100 };
    let changes = (1..=TOGETHER)
        .map(|at| change().put(&ours, "x").add_payload(PayloadId(at.into()), bytes_of(size_of(at))));
    assert!(commit_together(&store, changes).await.iter().all(committed));
    for at in 1..=TOGETHER {
        assert!(payload(&store, PayloadId(at.into())).await == Some(bytes_of(size_of(at))), "payload {at}");
    }
}

async fn tenants_that_arrive_together_are_isolated(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let tenant_of = |at| tenant_named(&format!("tenant {at}"));
    let changes = (0..TOGETHER).map(|at| {
        Change::new(tenant_of(at))
            .if_absent(&ours)
            .put(&ours, at.to_string())
            .deliver(delivery(&ann, "m", &ours))
    });
    for (at, outcome) in (0..).zip(commit_together(&store, changes).await) {
        let found = load_in(&store, &tenant_of(at), &ours).await.unwrap();
        assert_eq!(found.content, at.to_string());
        let versions = vec![found.version];
        assert_eq!(outcome, Outcome::Committed { now: start(), numbers: vec![1], versions });
    }
}

async fn a_cancelled_commit_is_all_or_nothing(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let mut next = 0;
    for round in 0..50 {
        let (ours, mailbox) = (exchange(&format!("round {round}")), inbox(&format!("round {round}")));
        let written = change().put(&ours, "x").deliver(delivery(&mailbox, "m", &ours));
        // Polled once, which may have queued the change in the store, and then dropped.
        timeout(Duration::ZERO, store.commit(written)).await.ok();
        if load(&other, &ours).await.is_some() {
            assert_eq!(head(&other, &mailbox).await, 1);
        } else if head(&other, &mailbox).await == 1 {
            assert!(load(&other, &ours).await.is_some());
        }
        let version = put_ok(&store, change().put(&exchange("next"), "x")).await;
        assert!(round == 0 || version == next + 1, "{version} after {next}");
        next = version;
    }
    assert_eq!(load(&other, &exchange("next")).await.unwrap().version, next);
}
