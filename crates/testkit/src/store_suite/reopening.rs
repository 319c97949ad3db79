//! Everything that was committed is there after a restart.

use countersign_core::store::{Kind, Mailbox, MarkKind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    records_and_their_versions_survive,
    payloads_of_every_size_survive,
    deliveries_survive_complete,
    numbering_continues,
    numbering_continues_after_what_was_removed,
    marks_survive,
    what_is_due_survives,
    what_was_deleted_stays_deleted,
    a_conflicting_change_stays_unwritten,
    many_commits_at_once_survive,
    a_store_that_is_reopened_at_once_is_empty,
    reopening_twice_changes_nothing,
];

async fn records_and_their_versions_survive(mut harness: Box<dyn StoreHarness>) {
    let (a, b) = (exchange("a"), key(Kind::Session, "b"));
    let versions = puts_ok(&harness.store(), change().put(&a, "A1").put(&b, "B1")).await;
    let second = put_ok(&harness.store(), change().put(&a, "A2")).await;
    harness.reopen().await;
    let store = harness.store();
    assert_eq!(load(&store, &a).await, Some(record(&a, second, "A2")));
    assert_eq!(load(&store, &b).await, Some(record(&b, versions[1], "B1")));
    commit_ok(&store, change().if_version(&a, second).put(&a, "A3")).await;
    assert_eq!(load(&store, &a).await, Some(record(&a, second + 1, "A3")));
    assert_eq!(scan(&store, Kind::Session, None, 10).await, ["b"]);
}

async fn payloads_of_every_size_survive(mut harness: Box<dyn StoreHarness>) {
    let sizes = [0, 1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 2 << 20, 5 << 20];
    for (id, size) in (1..).zip(sizes) {
        let kept = change().put(&exchange("ours"), "x").add_payload(PayloadId(id), bytes_of(size));
        commit_ok(&harness.store(), kept).await;
    }
    harness.reopen().await;
    for (id, size) in (1..).zip(sizes) {
        assert!(payload(&harness.store(), PayloadId(id)).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn deliveries_survive_complete(mut harness: Box<dyn StoreHarness>) {
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    for message in ["one", "two", "three"] {
        commit_ok(&harness.store(), change().deliver(delivery(&ann, message, &ours))).await;
    }
    let before = read(&harness.store(), all_of(&ann)).await;
    harness.set_now(later(60)).await;
    harness.reopen().await;
    assert_eq!(read(&harness.store(), all_of(&ann)).await, before);
    assert_eq!(harness.store().deliveries_by_subject(&tenant(), "ours").await.unwrap().len(), 3);
}

async fn numbering_continues(mut harness: Box<dyn StoreHarness>) {
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    let deliver = || change().deliver(delivery(&ann, "m", &ours));
    for number in 1..=4 {
        assert_eq!(commit_ok(&harness.store(), deliver()).await.1, [number]);
        harness.reopen().await;
        assert_eq!(head(&harness.store(), &ann).await, number);
    }
    let other = harness.second_handle().await;
    assert_eq!(commit_ok(&other, deliver()).await.1, [5]);
    assert_eq!(commit_ok(&harness.store(), deliver()).await.1, [6]);
}

async fn numbering_continues_after_what_was_removed(mut harness: Box<dyn StoreHarness>) {
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    let three = (0..3).fold(change(), |all, _| all.deliver(delivery(&ann, "m", &ours)));
    commit_ok(&harness.store(), three).await;
    commit_ok(&harness.store(), change().remove(by_subject(&ours, &[]))).await;
    harness.reopen().await;
    assert_eq!(head(&harness.store(), &ann).await, 3);
    assert_eq!(commit_ok(&harness.store(), change().deliver(delivery(&ann, "m", &ours))).await.1, [4]);
}

async fn marks_survive(mut harness: Box<dyn StoreHarness>) {
    let (ours, shared) = (exchange("ours"), Mailbox::Shared);
    let two = change().deliver(delivery(&shared, "m", &ours)).deliver(delivery(&shared, "m", &ours));
    commit_ok(&harness.store(), two).await;
    let marks = change().mark(&shared, 1, "ann", MarkKind::Hidden);
    commit_ok(&harness.store(), marks.mark(&shared, 2, "ann", MarkKind::Acknowledged)).await;
    harness.reopen().await;
    assert_eq!(numbers(&harness.store(), unmarked(&shared, "ann", MarkKind::Hidden)).await, [2]);
    assert_eq!(numbers(&harness.store(), unmarked(&shared, "ann", MarkKind::Acknowledged)).await, [1]);
}

async fn what_is_due_survives(mut harness: Box<dyn StoreHarness>) {
    let (ours, other) = (exchange("ours"), exchange("other"));
    commit_ok(&harness.store(), change().due_at(later(5), &ours).due_at(later(1), &other)).await;
    harness.reopen().await;
    harness.set_now(later(5)).await;
    assert_eq!(claim(&harness.store(), 10).await, [(later(1), other), (later(5), ours)]);
}

async fn what_was_deleted_stays_deleted(mut harness: Box<dyn StoreHarness>) {
    let (ours, ann, body) = (exchange("ours"), inbox("ann"), PayloadId(1));
    let written = change().put(&ours, "x").add_payload(body, bytes_of(2 << 20)).due_at(start(), &ours);
    commit_ok(&harness.store(), written.deliver(delivery(&ann, "m", &ours))).await;
    let forgotten = change().delete(&ours).drop_payload(body).no_longer_due(&ours);
    commit_ok(&harness.store(), forgotten.remove(one(&ann, 1))).await;
    harness.reopen().await;
    let store = harness.store();
    assert_eq!(load(&store, &ours).await, None);
    assert!(payload(&store, body).await.is_none());
    assert_eq!(numbers(&store, all_of(&ann)).await, NO_NUMBERS);
    assert_eq!(claim(&store, 10).await, []);
    commit_ok(&store, change().if_absent(&ours)).await;
}

async fn a_conflicting_change_stays_unwritten(mut harness: Box<dyn StoreHarness>) {
    let (ours, ann, body) = (exchange("ours"), inbox("ann"), PayloadId(1));
    let conflicting = change().if_before(start()).put(&ours, "x").add_payload(body, bytes_of(2 << 20));
    commit_conflict(&harness.store(), conflicting.deliver(delivery(&ann, "m", &ours))).await;
    harness.reopen().await;
    let store = harness.store();
    assert_eq!(load(&store, &ours).await, None);
    assert!(payload(&store, body).await.is_none());
    assert_eq!(head(&store, &ann).await, 0);
}

async fn many_commits_at_once_survive(mut harness: Box<dyn StoreHarness>) {
    let ann = inbox("ann");
    let mut commits = tokio::task::JoinSet::new();
    for at in 0..64 {
        let (store, ours) = (harness.store(), exchange(&format!("key {at}")));
        let written = change().put(&ours, "x").deliver(delivery(&ann, "m", &ours));
        commits.spawn(async move { commit_ok(&store, written).await });
    }
    commits.join_all().await;
    harness.reopen().await;
    assert_eq!(scan(&harness.store(), Kind::Exchange, None, 1000).await.len(), 64);
    assert_eq!(numbers(&harness.store(), all_of(&ann)).await, (1..=64).collect::<Vec<_>>());
}

async fn a_store_that_is_reopened_at_once_is_empty(mut harness: Box<dyn StoreHarness>) {
    harness.reopen().await;
    let (store, ours) = (harness.store(), exchange("ours"));
    assert_eq!(load(&store, &ours).await, None);
    commit_ok(&store, change().if_absent(&ours).put(&ours, "x")).await;
}

async fn reopening_twice_changes_nothing(mut harness: Box<dyn StoreHarness>) {
    let ours = exchange("ours");
    let version = put_ok(&harness.store(), change().put(&ours, "x")).await;
    harness.reopen().await;
    harness.reopen().await;
    assert_eq!(load(&harness.store(), &ours).await, Some(record(&ours, version, "x")));
}
