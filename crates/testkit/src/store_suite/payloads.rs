//! Payloads: stored complete at every size, deleted on request, never swept once committed.

use std::time::Duration;

use countersign_core::store::PayloadId;

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    a_payload_comes_back_as_it_was,
    payloads_come_in_the_order_of_their_ids,
    a_payload_that_was_never_stored_is_not_found,
    payloads_of_no_ids_are_none,
    one_change_stores_several_payloads_of_any_size,
    the_smallest_and_largest_payload_ids_are_stored,
    a_dropped_payload_is_gone_and_its_neighbours_stay,
    dropping_what_is_not_there_is_no_error,
    a_payload_of_a_conflicting_change_is_not_found,
    a_payload_of_a_conflicting_change_can_be_committed_by_the_next,
    committed_payloads_are_never_swept,
    a_payload_committed_after_a_conflict_is_never_swept,
    a_sweep_leaves_nothing_for_the_next,
    sweeping_an_empty_store_removes_nothing,
];

/// Sizes around the limit where a store may keep a payload elsewhere, and the largest allowed.
const SIZES: [usize; 7] = [0, 1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 2 << 20, 5 << 20];

fn of_all_sizes() -> impl Iterator<Item = (PayloadId, usize)> {
    (1..).map(PayloadId).zip(SIZES)
}

async fn a_payload_comes_back_as_it_was(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (id, size) in of_all_sizes() {
        commit_ok(&store, change().put(&ours, "x").add_payload(id, bytes_of(size))).await;
        assert!(payload(&store, id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn payloads_come_in_the_order_of_their_ids(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let (a, b, large, unknown) = (PayloadId(1), PayloadId(2), PayloadId(3), PayloadId(4));
    let kept = change()
        .put(&ours, "x")
        .add_payload(a, "A")
        .add_payload(large, bytes_of(2 << 20))
        .add_payload(b, "B");
    commit_ok(&store, kept).await;
    let found = store.payloads(&tenant(), &[large, unknown, b, a, b]).await.unwrap();
    let expected = [Some(bytes_of(2 << 20)), None, Some("B".into()), Some("A".into()), Some("B".into())];
    assert!(found == expected);
}

async fn a_payload_that_was_never_stored_is_not_found(harness: Box<dyn StoreHarness>) {
    assert_eq!(payload(&harness.store(), PayloadId(1)).await, None);
}

async fn payloads_of_no_ids_are_none(harness: Box<dyn StoreHarness>) {
    assert!(harness.store().payloads(&tenant(), &[]).await.unwrap().is_empty());
}

async fn one_change_stores_several_payloads_of_any_size(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let kept = of_all_sizes().fold(change(), |change, (id, size)| change.add_payload(id, bytes_of(size)));
    commit_ok(&store, kept.put(&ours, "x")).await;
    for (id, size) in of_all_sizes() {
        assert!(payload(&store, id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn the_smallest_and_largest_payload_ids_are_stored(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let ids = [0, 1, u64::MAX.into(), 1 << 64, 1 << 127, u128::MAX].map(PayloadId);
    for id in ids {
        commit_ok(&store, change().put(&ours, "x").add_payload(id, id.0.to_string())).await;
    }
    for id in ids {
        assert_eq!(payload(&store, id).await, Some(id.0.to_string().into()));
    }
}

async fn a_dropped_payload_is_gone_and_its_neighbours_stay(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (id, size) in of_all_sizes() {
        let neighbour = PayloadId(id.0 + 100);
        let kept =
            change().put(&ours, "x").add_payload(id, bytes_of(size)).add_payload(neighbour, bytes_of(size));
        commit_ok(&store, kept).await;
        commit_ok(&store, change().drop_payload(id)).await;
        assert!(payload(&store, id).await.is_none(), "{size} bytes");
        assert!(payload(&store, neighbour).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn dropping_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "x").drop_payload(PayloadId(1))).await;
    assert_eq!(content(&store, &ours).await, Some("x".into()));
}

async fn a_payload_of_a_conflicting_change_is_not_found(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for (id, size) in of_all_sizes() {
        commit_conflict(&store, change().if_before(start()).add_payload(id, bytes_of(size))).await;
        assert!(payload(&store, id).await.is_none(), "{size} bytes");
    }
}

async fn a_payload_of_a_conflicting_change_can_be_committed_by_the_next(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (id, size) in of_all_sizes() {
        let kept = || change().put(&ours, "x").add_payload(id, bytes_of(size));
        commit_conflict(&store, kept().if_before(start())).await;
        commit_ok(&store, kept()).await;
        assert!(payload(&store, id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn committed_payloads_are_never_swept(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (id, size) in of_all_sizes() {
        commit_ok(&store, change().put(&ours, "x").add_payload(id, bytes_of(size))).await;
    }
    // A later version of the record, or its deletion, does not make its committed payload an orphan.
    commit_ok(&store, change().delete(&ours)).await;
    let tomorrow = start().plus(Duration::from_hours(24));
    harness.set_now(tomorrow).await;
    assert_eq!(store.sweep_orphans(tomorrow, 1000).await, Ok(0));
    for (id, size) in of_all_sizes() {
        assert!(payload(&store, id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn a_payload_committed_after_a_conflict_is_never_swept(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (id, size) in of_all_sizes() {
        let kept = || change().put(&ours, "x").add_payload(id, bytes_of(size));
        commit_conflict(&store, kept().if_before(start())).await;
        commit_ok(&store, kept()).await;
    }
    let tomorrow = start().plus(Duration::from_hours(24));
    harness.set_now(tomorrow).await;
    store.sweep_orphans(tomorrow, 1000).await.unwrap();
    for (id, size) in of_all_sizes() {
        assert!(payload(&store, id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn a_sweep_leaves_nothing_for_the_next(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for (id, size) in of_all_sizes() {
        commit_conflict(&store, change().if_before(start()).add_payload(id, bytes_of(size))).await;
    }
    let tomorrow = start().plus(Duration::from_hours(24));
    harness.set_now(tomorrow).await;
    // The count depends on the store: it need not write the payload of a change that conflicts.
    store.sweep_orphans(tomorrow, 1000).await.unwrap();
    assert_eq!(store.sweep_orphans(tomorrow, 1000).await, Ok(0));
}

async fn sweeping_an_empty_store_removes_nothing(harness: Box<dyn StoreHarness>) {
    assert_eq!(harness.store().sweep_orphans(later(3600), 1000).await, Ok(0));
}
