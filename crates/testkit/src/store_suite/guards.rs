//! Guards: which pass, which fail, and that a failing guard prevents every write.

use countersign_core::store::{AuditRow, MarkKind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    absent_passes_where_there_is_no_record,
    absent_fails_where_there_is_one,
    absent_passes_after_a_deletion,
    a_version_that_is_current_passes,
    a_version_that_is_not_current_fails,
    a_version_of_a_record_that_is_gone_fails,
    before_passes_until_just_before_its_time,
    before_fails_at_its_time_and_after,
    a_change_of_guards_alone_commits_and_writes_nothing,
    a_change_of_guards_alone_can_conflict,
    guards_check_the_state_before_the_change,
    a_failing_guard_writes_nothing_at_all,
    a_failing_last_guard_writes_nothing_at_all,
    a_conflict_returns_the_record_of_every_keyed_guard_in_order,
    a_conflict_on_time_alone_returns_no_record,
    a_conflict_returns_a_record_once_per_guard_on_it,
    a_conflicting_change_can_be_retried_with_the_returned_version,
];

async fn absent_passes_where_there_is_no_record(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().if_absent(&ours).put(&ours, "first")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "first")));
}

async fn absent_fails_where_there_is_one(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "first")).await;
    let (current, now) = commit_conflict(&store, change().if_absent(&ours).put(&ours, "second")).await;
    assert_eq!(current, [Some(record(&ours, version, "first"))]);
    assert_eq!(now, start());
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "first")));
}

async fn absent_passes_after_a_deletion(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "first")).await;
    commit_ok(&store, change().delete(&ours)).await;
    let version = put_ok(&store, change().if_absent(&ours).put(&ours, "second")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "second")));
}

async fn a_version_that_is_current_passes(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let first = put_ok(&store, change().put(&ours, "1")).await;
    let second = put_ok(&store, change().if_version(&ours, first).put(&ours, "2")).await;
    commit_ok(&store, change().if_version(&ours, second).delete(&ours)).await;
    assert_eq!(load(&store, &ours).await, None);
}

async fn a_version_that_is_not_current_fails(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let first = put_ok(&store, change().put(&ours, "1")).await;
    let second = put_ok(&store, change().put(&ours, "2")).await;
    for version in [0, first, second + 1, 1 << 40] {
        let (current, _) =
            commit_conflict(&store, change().if_version(&ours, version).put(&ours, "conflicting")).await;
        assert_eq!(current, [Some(record(&ours, second, "2"))], "version {version}");
    }
    assert_eq!(load(&store, &ours).await, Some(record(&ours, second, "2")));
}

async fn a_version_of_a_record_that_is_gone_fails(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let (current, _) = commit_conflict(&store, change().if_version(&ours, 1).put(&ours, "never there")).await;
    assert_eq!(current, [None]);
    let version = put_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().delete(&ours)).await;
    for version in [0, version, version + 1] {
        let (current, _) =
            commit_conflict(&store, change().if_version(&ours, version).put(&ours, "gone")).await;
        assert_eq!(current, [None], "version {version}");
    }
    assert_eq!(load(&store, &ours).await, None);
}

async fn before_passes_until_just_before_its_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().if_before(just_after(start())).put(&ours, "x")).await;
    let version = put_ok(&store, change().if_before(later(3600)).put(&ours, "x")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "x")));
}

async fn before_fails_at_its_time_and_after(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_conflict(&store, change().if_before(start()).put(&ours, "x")).await;
    harness.set_now(later(10)).await;
    for time in [start(), later(9), later(10)] {
        let (_, now) = commit_conflict(&store, change().if_before(time).put(&ours, "x")).await;
        assert_eq!(now, later(10));
    }
    assert_eq!(load(&store, &ours).await, None);
}

async fn a_change_of_guards_alone_commits_and_writes_nothing(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "x")).await;
    let guards = change().if_version(&ours, version).if_absent(&exchange("none")).if_before(later(1));
    assert_eq!(commit_ok(&store, guards).await, (start(), vec![]));
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "x")));
}

async fn a_change_of_guards_alone_can_conflict(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "x")).await;
    let (current, _) = commit_conflict(&store, change().if_version(&ours, version + 1)).await;
    assert_eq!(current, [Some(record(&ours, version, "x"))]);
    let (current, _) = commit_conflict(&store, change().if_absent(&ours)).await;
    assert_eq!(current, [Some(record(&ours, version, "x"))]);
}

async fn guards_check_the_state_before_the_change(harness: Box<dyn StoreHarness>) {
    let (store, going, coming) = (harness.store(), exchange("going"), exchange("coming"));
    let version = put_ok(&store, change().put(&going, "x")).await;
    let (current, _) = commit_conflict(&store, change().if_absent(&going).delete(&going)).await;
    assert_eq!(current, [Some(record(&going, version, "x"))]);
    let (current, _) = commit_conflict(&store, change().if_version(&coming, 1).put(&coming, "x")).await;
    assert_eq!(current, [None]);
}

async fn a_failing_guard_writes_nothing_at_all(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let (there, new) = (exchange("there"), exchange("new"));
    let (body, new_body, large_body) = (PayloadId(1), PayloadId(2), PayloadId(3));
    let before = change().put(&there, "there").add_payload(body, "body").due_at(start(), &there);
    let version = put_ok(&store, before.deliver(delivery(&ann, "there", &there))).await;

    let mut conflicting = change().if_absent(&new).if_version(&there, version + 6);
    conflicting = conflicting.put(&new, "new").put(&there, "overwritten").delete(&there);
    conflicting = conflicting
        .add_payload(new_body, "new body")
        .add_payload(large_body, bytes_of(2 << 20))
        .drop_payload(body);
    conflicting = conflicting.remove(one(&ann, 1)).remove(by_subject(&there, &[]));
    conflicting = conflicting.deliver(delivery(&ann, "new", &new)).mark(&ann, 1, "ann", MarkKind::Hidden);
    conflicting = conflicting.due_at(start(), &new).no_longer_due(&there);
    conflicting.audit.push(AuditRow { subject: new.clone(), event: "{}".into() });
    commit_conflict(&store, conflicting).await;

    assert_eq!(load(&store, &new).await, None);
    assert_eq!(load(&store, &there).await, Some(record(&there, version, "there")));
    assert_eq!(payload(&store, body).await, Some("body".into()));
    assert_eq!(payload(&store, new_body).await, None);
    assert!(payload(&store, large_body).await.is_none(), "a large payload");
    assert_eq!(numbers(&store, unmarked(&ann, "ann", MarkKind::Hidden)).await, [1]);
    assert_eq!(head(&store, &ann).await, 1);
    assert_eq!(claim(&store, 10).await, [(start(), there.clone())]);
    let (_, next) = commit_ok(&store, change().deliver(delivery(&ann, "next", &there))).await;
    assert_eq!(next, [2], "a conflicting change takes no number");
}

async fn a_failing_last_guard_writes_nothing_at_all(harness: Box<dyn StoreHarness>) {
    let (store, there, new, ann) = (harness.store(), exchange("there"), exchange("new"), inbox("ann"));
    let version = put_ok(&store, change().put(&there, "x")).await;
    let passing = || change().if_version(&there, version).if_absent(&new).if_before(later(1));
    let written = |guards: countersign_core::store::Change| {
        guards.put(&new, "new").put(&there, "y").deliver(delivery(&ann, "m", &new)).due_at(start(), &new)
    };
    commit_conflict(&store, written(passing().if_absent(&there))).await;
    commit_conflict(&store, written(passing().if_version(&new, 1))).await;
    commit_conflict(&store, written(passing().if_before(start()))).await;
    assert_eq!(load(&store, &there).await, Some(record(&there, version, "x")));
    assert_eq!(load(&store, &new).await, None);
    assert_eq!(head(&store, &ann).await, 0);
    assert_eq!(claim(&store, 10).await, []);
}

async fn a_conflict_returns_the_record_of_every_keyed_guard_in_order(harness: Box<dyn StoreHarness>) {
    let (store, a, b, none) = (harness.store(), exchange("a"), exchange("b"), exchange("none"));
    let [first, of_b] = puts_ok(&store, change().put(&a, "A").put(&b, "B")).await[..] else { panic!() };
    let second = put_ok(&store, change().put(&a, "A2")).await;
    let (is_a, is_b) = (Some(record(&a, second, "A2")), Some(record(&b, of_b, "B")));
    harness.set_now(later(5)).await;
    let guards = change().if_absent(&none).if_version(&b, of_b).if_before(later(60)).if_version(&a, first);
    let (current, now) = commit_conflict(&store, guards).await;
    assert_eq!(current, [None, is_b.clone(), is_a.clone()]);
    assert_eq!(now, later(5));
    // Records of guards after the failing one are returned as well.
    let (current, _) =
        commit_conflict(&store, change().if_absent(&a).if_version(&b, of_b).if_absent(&none)).await;
    assert_eq!(current, [is_a, is_b, None]);
}

async fn a_conflict_on_time_alone_returns_no_record(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let (current, now) = commit_conflict(&store, change().if_before(start()).put(&ours, "x")).await;
    assert_eq!((current, now), (vec![], start()));
    let (current, _) =
        commit_conflict(&store, change().if_before(start()).if_absent(&ours).put(&ours, "x")).await;
    assert_eq!(current, [None]);
}

async fn a_conflict_returns_a_record_once_per_guard_on_it(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "x")).await;
    let guards = change().if_version(&ours, version).if_version(&ours, version + 1);
    let (current, _) = commit_conflict(&store, guards).await;
    assert_eq!(current, [Some(record(&ours, version, "x")), Some(record(&ours, version, "x"))]);
}

async fn a_conflicting_change_can_be_retried_with_the_returned_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let first = put_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().put(&ours, "2")).await;
    let (current, _) = commit_conflict(&store, change().if_version(&ours, first).put(&ours, "3")).await;
    let version = current[0].as_ref().unwrap().version;
    commit_ok(&store, change().if_version(&ours, version).put(&ours, "3")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version + 1, "3")));
}
