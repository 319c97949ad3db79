//! The store's clock, which is the only one.

use std::slice;

use countersign_wire::timestamp::Timestamp;

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    the_clock_of_a_new_store_is_at_the_start,
    the_clock_does_not_advance_by_itself,
    every_result_has_the_stores_time,
    the_clock_is_exact_to_the_microsecond,
    two_handles_share_the_clock,
    before_uses_the_clock_at_the_commit,
    before_does_not_depend_on_the_handle,
    before_the_end_of_time_always_passes,
];

async fn the_clock_of_a_new_store_is_at_the_start(harness: Box<dyn StoreHarness>) {
    assert_eq!(harness.store().now().await, Ok(start()));
}

async fn the_clock_does_not_advance_by_itself(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for _ in 0..20 {
        assert_eq!(commit_ok(&store, change().put(&ours, "x")).await.0, start());
    }
    assert_eq!(store.now().await, Ok(start()));
}

async fn every_result_has_the_stores_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for now in [later(1), later(2), later(86_400)] {
        harness.set_now(now).await;
        assert_eq!(store.now().await, Ok(now));
        assert_eq!(store.load(&tenant(), slice::from_ref(&ours)).await.unwrap().now, now);
        assert_eq!(store.deliveries(&tenant(), all_of(&inbox("ann"))).await.unwrap().now, now);
        assert_eq!(store.claim_due(1).await.unwrap().1, now);
        assert_eq!(commit_ok(&store, change()).await.0, now);
        assert_eq!(commit_ok(&store, change().put(&ours, "x")).await.0, now);
        assert_eq!(commit_conflict(&store, change().if_absent(&ours)).await.1, now);
    }
}

async fn the_clock_is_exact_to_the_microsecond(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let now: Timestamp = "2026-11-15T12:34:56.789012Z".parse().unwrap();
    harness.set_now(now).await;
    let (committed_at, _) =
        commit_ok(&store, change().deliver(delivery(&ann, "m", &ours)).due_at(now, &ours)).await;
    assert_eq!(committed_at, now);
    assert_eq!(read(&store, all_of(&ann)).await[0].at, now);
    assert_eq!(claim(&store, 10).await, [(now, ours)]);
}

async fn two_handles_share_the_clock(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    assert_eq!(other.now().await, Ok(start()));
    harness.set_now(later(30)).await;
    assert_eq!(store.now().await, Ok(later(30)));
    assert_eq!(other.now().await, Ok(later(30)));
    assert_eq!(commit_ok(&other, change()).await.0, later(30));
    // A handle that is opened later has the same clock.
    assert_eq!(harness.second_handle().await.now().await, Ok(later(30)));
}

async fn before_uses_the_clock_at_the_commit(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let write = || change().if_before(later(10)).put(&ours, "x");
    let loaded = store.load(&tenant(), slice::from_ref(&ours)).await.unwrap();
    assert!(loaded.now < later(10));
    harness.set_now(later(10)).await;
    let (_, now) = commit_conflict(&store, write()).await;
    assert_eq!(now, later(10));
    harness.set_now(later(9)).await;
    commit_ok(&store, write()).await;
}

async fn before_does_not_depend_on_the_handle(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    let mut newest = 0;
    for handle in [&store, &other] {
        newest = put_ok(handle, change().if_before(later(10)).put(&ours, "x")).await;
    }
    harness.set_now(later(10)).await;
    for handle in [&store, &other] {
        commit_conflict(handle, change().if_before(later(10)).put(&ours, "x")).await;
    }
    assert_eq!(load(&store, &ours).await, Some(record(&ours, newest, "x")));
}

async fn before_the_end_of_time_always_passes(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().if_before(Timestamp::MAX).put(&ours, "x")).await;
    commit_conflict(&store, change().if_before(Timestamp::MIN).put(&ours, "x")).await;
}
