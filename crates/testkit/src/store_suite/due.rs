//! What is due: by the store's clock, one time for each record, claimed by one reader at a time, in turn by tenant.

use std::collections::BTreeSet;

use countersign_core::store::{CLAIM, Change, Due, Kind};
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
    the_newest_time_counts,
    of_changes_in_one_batch_the_last_time_counts,
    what_is_due_can_be_postponed_in_one_change,
    a_claim_returns_its_tenant_and_the_time,
    a_claim_orders_across_tenants,
    what_is_claimed_is_nobody_elses_until_the_claim_lapses,
    a_new_time_ends_a_claim,
    two_handles_never_claim_the_same_at_once,
    a_tenant_with_much_that_is_due_does_not_delay_another,
    a_tenant_alone_gets_all_of_the_limit,
    a_backlog_of_many_minutes_fills_a_claim,
];

async fn nothing_is_due_before_its_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let never = exchange("never");
    commit_ok(&store, change().due_at(just_after(start()), &ours).due_at(Timestamp::MAX, &never)).await;
    assert_eq!(claim(&store, 10).await, []);
}

async fn what_is_due_exactly_now_is_due(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(later(10), &ours)).await;
    assert_eq!(claim(&store, 10).await, []);
    harness.set_now(later(10)).await;
    assert_eq!(claim(&store, 10).await, [(later(10), ours)]);
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
    assert_eq!(claim(&store, 10).await, expected);
}

async fn a_limit_cuts_off_the_latest(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let nth = |seconds: u64| (later(seconds), exchange(&seconds.to_string()));
    for seconds in [3, 1, 2, 4] {
        commit_ok(&store, change().due_at(later(seconds), &nth(seconds).1)).await;
    }
    harness.set_now(later(20)).await;
    assert_eq!(claim(&store, 0).await, []);
    assert_eq!(claim(&store, 2).await, [nth(1), nth(2)]);
    assert_eq!(claim(&store, 10).await, [nth(3), nth(4)]);
}

async fn what_is_due_stays_until_it_is_removed(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1").due_at(start(), &ours)).await;
    let mut since = start();
    for _ in 0..3 {
        harness.set_now(since).await;
        assert_eq!(claim(&store, 10).await, [(since, ours.clone())]);
        commit_ok(&store, change().put(&ours, "again")).await;
        since = since.plus(CLAIM);
    }
}

async fn no_longer_due_removes_exactly_that(harness: Box<dyn StoreHarness>) {
    let (store, ours, other, prompt) =
        (harness.store(), exchange("ours"), exchange("other"), key(Kind::Prompt, "ours"));
    commit_ok(&store, change().due_at(start(), &ours).due_at(start(), &other).due_at(start(), &prompt)).await;
    commit_ok(&store, change().no_longer_due(&ours)).await;
    let mut left = claim(&store, 10).await;
    left.sort();
    assert_eq!(left, [(start(), other), (start(), prompt)]);
}

async fn no_longer_due_of_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().no_longer_due(&ours).put(&ours, "x")).await;
    assert_eq!(content(&store, &ours).await, Some("x".into()));
}

async fn adding_the_same_twice_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(start(), &ours).due_at(start(), &ours)).await;
    commit_ok(&store, change().due_at(start(), &ours)).await;
    assert_eq!(claim(&store, 10).await, [(start(), ours)]);
}

async fn the_newest_time_counts(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(start(), &ours)).await;
    commit_ok(&store, change().due_at(later(1), &ours).due_at(later(2), &ours)).await;
    harness.set_now(later(1)).await;
    assert_eq!(claim(&store, 10).await, [], "neither the first time nor the one before the last");
    harness.set_now(later(2)).await;
    assert_eq!(claim(&store, 10).await, [(later(2), ours.clone())]);
    commit_ok(&store, change().due_at(later(1), &ours)).await;
    assert_eq!(claim(&store, 10).await, [(later(1), ours)], "an earlier one too");
}

async fn of_changes_in_one_batch_the_last_time_counts(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let keys = ["moved", "ended", "again"].map(exchange);
    let [moved, ended, again] = &keys;
    let changes = [
        change().due_at(start(), moved).due_at(start(), ended),
        change().due_at(later(1), moved).no_longer_due(ended).due_at(start(), again),
        change().no_longer_due(again),
        change().due_at(later(2), again),
    ];
    // They name the same record, so that no store commits them in another order.
    let [a, b, c, d] = changes.map(|change| commit_ok(&store, change.put(moved, "x")));
    tokio::join!(biased; a, b, c, d);
    harness.set_now(later(60)).await;
    assert_eq!(claim(&store, 10).await, [(later(1), moved.clone()), (later(2), again.clone())]);
}

async fn what_is_due_can_be_postponed_in_one_change(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(start(), &ours)).await;
    commit_ok(&store, change().no_longer_due(&ours).due_at(later(60), &ours)).await;
    assert_eq!(claim(&store, 10).await, []);
    harness.set_now(later(60)).await;
    assert_eq!(claim(&store, 10).await, [(later(60), ours)]);
}

async fn a_claim_returns_its_tenant_and_the_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().due_at(later(1), &ours)).await;
    assert_eq!(store.claim_due(10).await, Ok((vec![], start())));
    harness.set_now(later(2)).await;
    let expected = Due { tenant: tenant(), at: later(1), key: ours };
    assert_eq!(store.claim_due(10).await, Ok((vec![expected], later(2))));
}

async fn a_claim_orders_across_tenants(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let mut expected = Vec::new();
    for (name, seconds) in [("b", 1), ("a", 2), ("c", 3), ("a", 100), ("b", 200)] {
        let (tenant, key) = (tenant_named(name), exchange(&seconds.to_string()));
        commit_ok(&store, Change::new(tenant.clone()).due_at(later(seconds), &key)).await;
        expected.push(Due { tenant, at: later(seconds), key });
    }
    harness.set_now(later(600)).await;
    assert_eq!(store.claim_due(10).await, Ok((expected, later(600))));
}

async fn what_is_claimed_is_nobody_elses_until_the_claim_lapses(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    commit_ok(&store, change().put(&ours, "x").due_at(start(), &ours)).await;
    assert_eq!(claim(&store, 10).await, [(start(), ours.clone())]);
    let lapses = start().plus(CLAIM);
    for now in [start(), Timestamp::from_unix_micros(lapses.unix_micros() - 1)] {
        harness.set_now(now).await;
        assert_eq!(claim(&store, 10).await, []);
        assert_eq!(claim(&other, 10).await, []);
    }
    harness.set_now(lapses).await;
    assert_eq!(claim(&other, 10).await, [(lapses, ours)], "whoever claimed it may be gone");
}

async fn a_new_time_ends_a_claim(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let (ours, ended) = (exchange("ours"), exchange("ended"));
    commit_ok(&store, change().due_at(start(), &ours).due_at(start(), &ended)).await;
    assert_eq!(claim(&store, 10).await.len(), 2);
    commit_ok(&other, change().due_at(later(1), &ours).no_longer_due(&ended)).await;
    harness.set_now(later(1)).await;
    assert_eq!(claim(&store, 10).await, [(later(1), ours)]);
    harness.set_now(later(600)).await;
    assert_eq!(
        claim(&store, 10).await.len(),
        1,
        "the other one stays ended when its claim would have lapsed"
    );
}

async fn two_handles_never_claim_the_same_at_once(harness: Box<dyn StoreHarness>) {
    const COUNT: usize = 400;
    let (store, other) = (harness.store(), harness.second_handle().await);
    let all = (0..COUNT).fold(change(), |all, at| all.due_at(start(), &exchange(&at.to_string())));
    commit_ok(&store, all).await;
    let mut claimed = Vec::new();
    while claimed.len() < COUNT {
        let (one, two) = tokio::join!(claim(&store, 17), claim(&other, 17));
        assert!(!one.is_empty() || !two.is_empty(), "{} of {COUNT} were claimed", claimed.len());
        claimed.extend(one.into_iter().chain(two));
    }
    let distinct: BTreeSet<_> = claimed.iter().map(|(_, key)| key.clone()).collect();
    assert_eq!((claimed.len(), distinct.len()), (COUNT, COUNT));
}

async fn a_tenant_with_much_that_is_due_does_not_delay_another(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let mut loud = Change::new(tenant_named("loud"));
    for at in 0..500 {
        loud = loud.due_at(later(at), &exchange(&at.to_string()));
    }
    commit_ok(&store, loud).await;
    for quiet in ["quiet", "also quiet"] {
        let ours = Change::new(tenant_named(quiet)).due_at(later(900), &exchange("ours"));
        commit_ok(&store, ours.due_at(later(3_000), &exchange("not yet"))).await;
    }
    harness.set_now(later(1_000)).await;
    let (claimed, _) = store.claim_due(50).await.unwrap();
    let of = |name: &str| claimed.iter().filter(|due| due.tenant == tenant_named(name)).count();
    assert_eq!((of("quiet"), of("also quiet")), (1, 1), "although the others have waited longer");
    assert!(of("loud") >= 15, "{}", of("loud"));
}

async fn a_tenant_alone_gets_all_of_the_limit(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let all = (0..100).fold(change(), |all, at| all.due_at(start(), &exchange(&at.to_string())));
    commit_ok(&store, all).await;
    for name in ["b", "c"] {
        commit_ok(&store, Change::new(tenant_named(name)).due_at(later(1), &exchange("not yet"))).await;
    }
    assert_eq!(claim(&store, 60).await.len(), 60);
    assert_eq!(claim(&store, 60).await.len(), 40);
}

async fn a_backlog_of_many_minutes_fills_a_claim(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let minutes = |at: u64| later(at * 60);
    let all = (0..100).fold(change(), |all, at| all.due_at(minutes(at), &exchange(&at.to_string())));
    commit_ok(&store, all).await;
    harness.set_now(minutes(200)).await;
    let expected: Vec<_> = (0..80).map(|at| (minutes(at), exchange(&at.to_string()))).collect();
    assert_eq!(claim(&store, 80).await, expected);
}
