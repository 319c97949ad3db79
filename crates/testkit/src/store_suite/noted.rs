//! What commits have changed is noted, for all tenants, and read once.

use std::collections::{BTreeSet, HashSet};

use countersign_core::store::{Change, Kind, MailboxKey, NOTED_CHUNK, Noted};
use tokio::task::JoinSet;

use super::{StoreHarness, cases, fixtures::*};

cases![
    deliveries_and_records_of_noted_kinds_are_noted_with_their_numbers,
    nothing_is_noted_of_a_change_that_conflicts,
    what_the_other_handle_commits_is_read_from_a_position_on,
    more_than_a_page_is_read_page_by_page,
    of_changes_that_commit_at_once_a_reader_misses_none,
    what_is_forgotten_is_gone_and_positions_go_on,
];

/// From `since` to the end, and where the next read starts.
async fn noted(store: &Handle, since: u64) -> (Vec<(Noted, u64)>, u64) {
    let shard = store.shard_of(&tenant());
    let mut page = store.noted(shard, Some(since)).await.expect("the store answers");
    let (mut all, mut settled) = (page.changes, page.settled);
    while let Some(from) = page.more_from {
        page = store.noted(shard, Some(from)).await.expect("the store answers");
        settled = settled.min(page.settled);
        all.append(&mut page.changes);
    }
    (all, settled)
}

async fn position(store: &Handle) -> u64 {
    let page = store.noted(store.shard_of(&tenant()), None).await.expect("the store answers");
    assert_eq!((page.changes, page.more_from), (Vec::new(), None), "the position alone");
    page.settled
}

fn record_of(kind: Kind, id: &str) -> Noted {
    Noted::Record(tenant(), key(kind, id))
}

async fn deliveries_and_records_of_noted_kinds_are_noted_with_their_numbers(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let since = position(&store).await;
    let mut expected = HashSet::new();
    for kind in Kind::ALL {
        let ours = key(*kind, "ours");
        let first = put_ok(&store, change().if_absent(&ours).put(&ours, "1")).await;
        let second = put_ok(&store, change().if_version(&ours, first).put(&ours, "2")).await;
        commit_ok(&store, change().delete(&ours)).await;
        if kind.is_noted() {
            expected.extend([first, second, 0].map(|version| (record_of(*kind, "ours"), version)));
        }
    }
    for number in 1..=3 {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &exchange("ours")))).await;
        expected.insert((Noted::Mailbox(MailboxKey { tenant: tenant(), mailbox: ann.clone() }), number));
    }
    let found: HashSet<_> = noted(&store, since).await.0.into_iter().collect();
    assert_eq!(found, expected);
}

async fn nothing_is_noted_of_a_change_that_conflicts(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let since = position(&store).await;
    let version = put_ok(&store, change().put(&ours, "1")).await;
    commit_conflict(&store, change().if_version(&ours, 99).put(&ours, "2")).await;
    assert_eq!(noted(&store, since).await.0, [(record_of(Kind::Exchange, "ours"), version)]);
}

async fn what_the_other_handle_commits_is_read_from_a_position_on(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let mut since = position(&store).await;
    for round in 0..10 {
        let id = format!("round {round}");
        let version = put_ok(&other, change().put(&exchange(&id), "x")).await;
        let (found, next) = noted(&store, since).await;
        assert!(found.contains(&(record_of(Kind::Exchange, &id), version)), "{round}: {found:?}");
        assert!(next >= since, "a position never goes back");
        since = next;
    }
}

async fn more_than_a_page_is_read_page_by_page(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let since = position(&store).await;
    let (mut expected, mut left) = (BTreeSet::new(), NOTED_CHUNK as usize + 700);
    while left > 0 {
        let many = left.min(300);
        let ids: Vec<String> = (0..many).map(|at| format!("{left} {at}")).collect();
        commit_ok(&store, ids.iter().fold(change(), |all, id| all.put(&exchange(id), "x"))).await;
        expected.extend(ids);
        left -= many;
    }
    let first = store.noted(store.shard_of(&tenant()), Some(since)).await.expect("the store answers");
    assert!(first.more_from.is_some() && first.changes.len() >= NOTED_CHUNK as usize);
    let found = noted(&store, since).await.0.into_iter().filter_map(|(noted, _)| match noted {
        Noted::Record(_, key) => Some(key.id),
        Noted::Mailbox(_) => None,
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
}

async fn of_changes_that_commit_at_once_a_reader_misses_none(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let mut since = position(&store).await;
    let mut writing = JoinSet::new();
    for (name, handle) in [("ours", &store), ("theirs", &other)] {
        for writer in 0..8 {
            let handle = handle.clone();
            writing.spawn(async move {
                for round in 0..25 {
                    let id = format!("{name} {writer} {round}");
                    commit_ok(&handle, Change::new(tenant()).put(&exchange(&id), "x")).await;
                }
            });
        }
    }
    let mut found = HashSet::new();
    while !writing.is_empty() {
        while writing.try_join_next().is_some_and(|ended| ended.is_ok()) {}
        let (changes, next) = noted(&store, since).await;
        found.extend(changes);
        since = next;
    }
    found.extend(noted(&store, since).await.0);
    assert_eq!(found.len(), 2 * 8 * 25);
}

async fn what_is_forgotten_is_gone_and_positions_go_on(harness: Box<dyn StoreHarness>) {
    let (store, shard) = (harness.store(), harness.store().shard_of(&tenant()));
    let since = position(&store).await;
    for id in ["a", "b", "c"] {
        put_ok(&store, change().put(&exchange(id), "x")).await;
    }
    assert_eq!(noted(&store, since).await.0.len(), 3);
    assert_eq!(store.forget_noted(shard, since, 10).await, Ok(0), "none is before the first");
    let mut left = 3;
    while left > 0 {
        // What other databases of the same server are just writing keeps the position back.
        let forgotten =
            store.forget_noted(shard, position(&store).await, 2).await.expect("the store answers");
        assert!(forgotten <= 2);
        left -= forgotten;
        assert_eq!(noted(&store, since).await.0.len() as u64, left);
    }
    let end = position(&store).await;
    let version = put_ok(&store, change().put(&exchange("d"), "x")).await;
    assert_eq!(noted(&store, end).await.0, [(record_of(Kind::Exchange, "d"), version)]);
}
