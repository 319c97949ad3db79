//! What is due: by the store's clock, the earliest time first, in all tenants.

use countersign_core::store::{Change, Due, Kind};
use countersign_wire::timestamp::Timestamp;

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    nothing_is_due_before_its_time,
    what_is_due_exactly_now_is_due,
    the_longest_due_comes_first,
    a_limit_cuts_off_the_latest,
    what_is_due_stays_until_it_is_removed,
    no_longer_due_removes_exactly_that,
    no_longer_due_of_what_is_not_there_is_no_error,
    adding_the_same_twice_is_no_error,
    a_record_can_be_due_at_several_times,
    what_is_due_can_be_postponed_in_one_change,
    due_returns_its_tenant_and_the_time,
    due_orders_across_tenants,
];

async fn nothing_is_due_before_its_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(just_after(start()), &ours).due_at(Timestamp::MAX, &ours)).await;
    assert_eq!(due(&store, 10).await, []);
}

async fn what_is_due_exactly_now_is_due(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(later(10), &ours)).await;
    assert_eq!(due(&store, 10).await, []);
    harness.set_now(later(10)).await;
    assert_eq!(due(&store, 10).await, [(later(10), ours)]);
}

async fn the_longest_due_comes_first(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for seconds in [5, 1, 4, 2, 3] {
        commit_ok(&store, change().due_at(later(seconds), &exchange(&format!("{}", 9 - seconds)))).await;
    }
    commit_ok(&store, change().due_at(Timestamp::MIN, &exchange("old"))).await;
    harness.set_now(later(4)).await;
    let mut expected = vec![(Timestamp::MIN, exchange("old"))];
    expected.extend((1..=4).map(|seconds| (later(seconds), exchange(&format!("{}", 9 - seconds)))));
    assert_eq!(due(&store, 10).await, expected);
}

async fn a_limit_cuts_off_the_latest(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for seconds in [3, 1, 2] {
        commit_ok(&store, change().due_at(later(seconds), &ours)).await;
    }
    harness.set_now(later(60)).await;
    assert_eq!(due(&store, 2).await, [(later(1), ours.clone()), (later(2), ours.clone())]);
    assert_eq!(due(&store, 3).await.len(), 3);
    assert_eq!(due(&store, 0).await, []);
}

async fn what_is_due_stays_until_it_is_removed(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1").due_at(start(), &ours)).await;
    for _ in 0..3 {
        assert_eq!(due(&store, 10).await, [(start(), ours.clone())]);
        commit_ok(&store, change().put(&ours, "again")).await;
    }
}

async fn no_longer_due_removes_exactly_that(harness: Box<dyn StoreHarness>) {
    let (store, ours, other, prompt) =
        (harness.store(), exchange("ours"), exchange("other"), key(Kind::Prompt, "ours"));
    let mut all = change().due_at(later(1), &ours).due_at(later(2), &ours);
    all = all.due_at(later(1), &other).due_at(later(1), &prompt);
    commit_ok(&store, all).await;
    commit_ok(&store, change().no_longer_due_at(later(1), &ours)).await;
    harness.set_now(later(60)).await;
    let mut left = due(&store, 10).await;
    left.sort();
    assert_eq!(left, [(later(1), other), (later(1), prompt), (later(2), ours)]);
}

async fn no_longer_due_of_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().no_longer_due_at(start(), &ours).put(&ours, "x")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "x")));
}

async fn adding_the_same_twice_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(start(), &ours).due_at(start(), &ours)).await;
    commit_ok(&store, change().due_at(start(), &ours)).await;
    assert_eq!(due(&store, 10).await, [(start(), ours.clone())]);
    commit_ok(&store, change().no_longer_due_at(start(), &ours)).await;
    assert_eq!(due(&store, 10).await, []);
}

async fn a_record_can_be_due_at_several_times(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(later(2), &ours).due_at(later(1), &ours)).await;
    harness.set_now(later(2)).await;
    assert_eq!(due(&store, 10).await, [(later(1), ours.clone()), (later(2), ours)]);
}

async fn what_is_due_can_be_postponed_in_one_change(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(start(), &ours)).await;
    commit_ok(&store, change().no_longer_due_at(start(), &ours).due_at(later(60), &ours)).await;
    assert_eq!(due(&store, 10).await, []);
    harness.set_now(later(60)).await;
    assert_eq!(due(&store, 10).await, [(later(60), ours)]);
}

async fn due_returns_its_tenant_and_the_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(later(1), &ours)).await;
    assert_eq!(store.due(10).await, Ok((vec![], start())));
    harness.set_now(later(2)).await;
    let expected = Due { tenant: tenant(), at: later(1), key: ours };
    assert_eq!(store.due(10).await, Ok((vec![expected], later(2))));
}

async fn due_orders_across_tenants(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mut expected = Vec::new();
    for (name, seconds) in [("b", 1), ("a", 2), ("c", 3), ("a", 4), ("b", 5)] {
        let tenant = tenant_named(name);
        commit_ok(&store, Change::new(tenant.clone()).due_at(later(seconds), &ours)).await;
        expected.push(Due { tenant, at: later(seconds), key: ours.clone() });
    }
    commit_ok(&store, Change::new(tenant_named("a")).no_longer_due_at(later(5), &ours)).await;
    harness.set_now(later(60)).await;
    assert_eq!(store.due(10).await, Ok((expected, later(60))));
}
