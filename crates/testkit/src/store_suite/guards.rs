//! Guards: what holds, what does not, and that nothing is written then.

use countersign_core::store::{AuditRow, MarkKind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    absent_holds_where_there_is_no_record,
    absent_fails_where_there_is_one,
    absent_holds_again_after_a_deletion,
    a_version_that_is_current_holds,
    a_version_that_is_not_current_fails,
    a_version_of_a_record_that_is_gone_fails,
    before_holds_until_just_before_its_time,
    before_fails_at_its_time_and_after,
    a_change_of_guards_alone_commits_and_writes_nothing,
    a_change_of_guards_alone_can_be_lost,
    guards_look_at_what_was_before_the_change,
    a_failing_guard_writes_nothing_at_all,
    a_last_guard_that_fails_undoes_those_before_it,
    lost_tells_what_every_keyed_guard_met_in_their_order,
    lost_by_the_clock_alone_meets_no_record,
    lost_tells_of_a_key_as_often_as_guards_name_it,
    a_lost_change_can_be_mended_from_what_it_met,
];

async fn absent_holds_where_there_is_no_record(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().if_absent(&ours).put(&ours, "first")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "first")));
}

async fn absent_fails_where_there_is_one(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "first")).await;
    let (met, now) = commit_lost(&store, change().if_absent(&ours).put(&ours, "second")).await;
    assert_eq!(met, [Some(record(&ours, 1, "first"))]);
    assert_eq!(now, start());
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "first")));
}

async fn absent_holds_again_after_a_deletion(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "first")).await;
    commit_ok(&store, change().delete(&ours)).await;
    commit_ok(&store, change().if_absent(&ours).put(&ours, "second")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "second")));
}

async fn a_version_that_is_current_holds(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().if_version(&ours, 1).put(&ours, "2")).await;
    commit_ok(&store, change().if_version(&ours, 2).delete(&ours)).await;
    assert_eq!(load(&store, &ours).await, None);
}

async fn a_version_that_is_not_current_fails(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().put(&ours, "2")).await;
    for version in [0, 1, 3, 1 << 40] {
        let (met, _) = commit_lost(&store, change().if_version(&ours, version).put(&ours, "lost")).await;
        assert_eq!(met, [Some(record(&ours, 2, "2"))], "version {version}");
    }
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 2, "2")));
}

async fn a_version_of_a_record_that_is_gone_fails(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let (met, _) = commit_lost(&store, change().if_version(&ours, 1).put(&ours, "never there")).await;
    assert_eq!(met, [None]);
    commit_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().delete(&ours)).await;
    for version in [0, 1, 2] {
        let (met, _) = commit_lost(&store, change().if_version(&ours, version).put(&ours, "gone")).await;
        assert_eq!(met, [None], "version {version}");
    }
    assert_eq!(load(&store, &ours).await, None);
}

async fn before_holds_until_just_before_its_time(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().if_before(just_after(start())).put(&ours, "x")).await;
    commit_ok(&store, change().if_before(later(3600)).put(&ours, "x")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 2, "x")));
}

async fn before_fails_at_its_time_and_after(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_lost(&store, change().if_before(start()).put(&ours, "x")).await;
    harness.set_now(later(10)).await;
    for time in [start(), later(9), later(10)] {
        let (_, now) = commit_lost(&store, change().if_before(time).put(&ours, "x")).await;
        assert_eq!(now, later(10));
    }
    assert_eq!(load(&store, &ours).await, None);
}

async fn a_change_of_guards_alone_commits_and_writes_nothing(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "x")).await;
    let asked = change().if_version(&ours, 1).if_absent(&exchange("none")).if_before(later(1));
    assert_eq!(commit_ok(&store, asked).await, (start(), vec![]));
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "x")));
}

async fn a_change_of_guards_alone_can_be_lost(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "x")).await;
    let (met, _) = commit_lost(&store, change().if_version(&ours, 2)).await;
    assert_eq!(met, [Some(record(&ours, 1, "x"))]);
    let (met, _) = commit_lost(&store, change().if_absent(&ours)).await;
    assert_eq!(met, [Some(record(&ours, 1, "x"))]);
}

async fn guards_look_at_what_was_before_the_change(harness: Box<dyn StoreHarness>) {
    let (store, going, coming) = (harness.store(), exchange("going"), exchange("coming"));
    commit_ok(&store, change().put(&going, "x")).await;
    let (met, _) = commit_lost(&store, change().if_absent(&going).delete(&going)).await;
    assert_eq!(met, [Some(record(&going, 1, "x"))]);
    let (met, _) = commit_lost(&store, change().if_version(&coming, 1).put(&coming, "x")).await;
    assert_eq!(met, [None]);
}

async fn a_failing_guard_writes_nothing_at_all(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let (there, new) = (exchange("there"), exchange("new"));
    let (body, new_body, large_body) = (PayloadId(1), PayloadId(2), PayloadId(3));
    let before = change().put(&there, "there").keep(body, "body").due_at(start(), &there);
    commit_ok(&store, before.deliver(delivery(&ann, "there", &there))).await;

    let mut lost = change().if_absent(&new).if_version(&there, 7);
    lost = lost.put(&new, "new").put(&there, "written over").delete(&there);
    lost = lost.keep(new_body, "new body").keep(large_body, bytes_of(2 << 20)).drop_payload(body);
    lost = lost.remove(one(&ann, 1)).remove(about(&there, &[]));
    lost = lost.deliver(delivery(&ann, "new", &new)).mark(&ann, 1, "ann", MarkKind::Hidden);
    lost = lost.due_at(start(), &new).no_longer_due_at(start(), &there);
    lost.audit.push(AuditRow { subject: new.clone(), event: "{}".into() });
    commit_lost(&store, lost).await;

    assert_eq!(load(&store, &new).await, None);
    assert_eq!(load(&store, &there).await, Some(record(&there, 1, "there")));
    assert_eq!(payload(&store, body).await, Some("body".into()));
    assert_eq!(payload(&store, new_body).await, None);
    assert!(payload(&store, large_body).await.is_none(), "a large payload");
    assert_eq!(numbers(&store, unmarked(&ann, "ann", MarkKind::Hidden)).await, [1]);
    assert_eq!(head(&store, &ann).await, 1);
    assert_eq!(due(&store, 10).await, [(start(), there.clone())]);
    let (_, next) = commit_ok(&store, change().deliver(delivery(&ann, "next", &there))).await;
    assert_eq!(next, [2], "a lost change takes no number");
}

async fn a_last_guard_that_fails_undoes_those_before_it(harness: Box<dyn StoreHarness>) {
    let (store, there, new, ann) = (harness.store(), exchange("there"), exchange("new"), inbox("ann"));
    commit_ok(&store, change().put(&there, "x")).await;
    let holding = || change().if_version(&there, 1).if_absent(&new).if_before(later(1));
    let written = |guards: countersign_core::store::Change| {
        guards.put(&new, "new").put(&there, "y").deliver(delivery(&ann, "m", &new)).due_at(start(), &new)
    };
    commit_lost(&store, written(holding().if_absent(&there))).await;
    commit_lost(&store, written(holding().if_version(&new, 1))).await;
    commit_lost(&store, written(holding().if_before(start()))).await;
    assert_eq!(load(&store, &there).await, Some(record(&there, 1, "x")));
    assert_eq!(load(&store, &new).await, None);
    assert_eq!(head(&store, &ann).await, 0);
    assert_eq!(due(&store, 10).await, []);
}

async fn lost_tells_what_every_keyed_guard_met_in_their_order(harness: Box<dyn StoreHarness>) {
    let (store, a, b, none) = (harness.store(), exchange("a"), exchange("b"), exchange("none"));
    commit_ok(&store, change().put(&a, "A").put(&b, "B")).await;
    commit_ok(&store, change().put(&a, "A2")).await;
    harness.set_now(later(5)).await;
    let guards = change().if_absent(&none).if_version(&b, 1).if_before(later(60)).if_version(&a, 1);
    let (met, now) = commit_lost(&store, guards).await;
    assert_eq!(met, [None, Some(record(&b, 1, "B")), Some(record(&a, 2, "A2"))]);
    assert_eq!(now, later(5));
    // What comes after the guard that failed is told as well.
    let (met, _) = commit_lost(&store, change().if_absent(&a).if_version(&b, 1).if_absent(&none)).await;
    assert_eq!(met, [Some(record(&a, 2, "A2")), Some(record(&b, 1, "B")), None]);
}

async fn lost_by_the_clock_alone_meets_no_record(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let (met, now) = commit_lost(&store, change().if_before(start()).put(&ours, "x")).await;
    assert_eq!((met, now), (vec![], start()));
    let (met, _) = commit_lost(&store, change().if_before(start()).if_absent(&ours).put(&ours, "x")).await;
    assert_eq!(met, [None]);
}

async fn lost_tells_of_a_key_as_often_as_guards_name_it(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "x")).await;
    let (met, _) = commit_lost(&store, change().if_version(&ours, 1).if_version(&ours, 2)).await;
    assert_eq!(met, [Some(record(&ours, 1, "x")), Some(record(&ours, 1, "x"))]);
}

async fn a_lost_change_can_be_mended_from_what_it_met(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().put(&ours, "2")).await;
    let (met, _) = commit_lost(&store, change().if_version(&ours, 1).put(&ours, "3")).await;
    let version = met[0].as_ref().unwrap().version;
    commit_ok(&store, change().if_version(&ours, version).put(&ours, "3")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 3, "3")));
}
