//! Guards on records that were only used: compared as the others are, and without a trace.

use countersign_core::store::Kind;

use super::{StoreHarness, cases, fixtures::*};

cases![
    seen_passes_while_the_version_is_current,
    seen_fails_where_the_version_is_another_one,
    zero_passes_only_where_there_is_no_record,
    a_version_from_before_a_deletion_is_never_current_again,
    a_seen_record_stays_as_it_is,
    a_seen_record_that_does_not_exist_stays_absent,
    a_seen_record_may_be_written_by_the_same_change,
    seen_compares_with_what_an_earlier_change_wrote,
    a_conflict_returns_seen_records_with_their_content,
    two_versions_of_one_record_are_never_both_current,
    many_changes_that_saw_the_same_record_are_all_committed,
];

fn policy() -> countersign_core::store::Key {
    key(Kind::Policy, "policy")
}

async fn seen_passes_while_the_version_is_current(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    commit_ok(&store, change().if_seen(&policy, 0).put(&ours, "1")).await;
    let mut version = put_ok(&store, change().put(&policy, "x")).await;
    for _ in 0..3 {
        commit_ok(&store, change().if_seen(&policy, version).put(&ours, "2")).await;
        // Alone, too.
        commit_ok(&store, change().if_seen(&policy, version)).await;
        version = put_ok(&store, change().put(&policy, "y")).await;
    }
}

async fn seen_fails_where_the_version_is_another_one(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    let first = put_ok(&store, change().put(&policy, "1")).await;
    let second = put_ok(&store, change().put(&policy, "2")).await;
    for version in [0, first, second + 1, 1 << 40] {
        let (current, _) = commit_conflict(&store, change().if_seen(&policy, version).put(&ours, "x")).await;
        assert_eq!(current, [Some(record(&policy, second, "2"))], "version {version}");
        let (current, _) = commit_conflict(&store, change().if_seen(&policy, version)).await;
        assert_eq!(current, [Some(record(&policy, second, "2"))], "version {version}, alone");
    }
    assert_eq!(load(&store, &ours).await, None);
}

async fn zero_passes_only_where_there_is_no_record(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    let (current, _) = commit_conflict(&store, change().if_seen(&policy, 1).put(&ours, "x")).await;
    assert_eq!(current, [None]);
    commit_ok(&store, change().if_seen(&policy, 0).put(&ours, "x")).await;
    let version = put_ok(&store, change().put(&policy, "x")).await;
    commit_conflict(&store, change().if_seen(&policy, 0).put(&ours, "x")).await;
    commit_ok(&store, change().delete(&policy)).await;
    commit_conflict(&store, change().if_seen(&policy, version).put(&ours, "x")).await;
    commit_ok(&store, change().if_seen(&policy, 0).put(&ours, "x")).await;
}

async fn a_version_from_before_a_deletion_is_never_current_again(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    let mut had = vec![0];
    for _ in 0..5 {
        had.push(put_ok(&store, change().put(&policy, "x")).await);
        commit_ok(&store, change().delete(&policy)).await;
    }
    for _ in 0..5 {
        let newest = put_ok(&store, change().put(&policy, "y")).await;
        for version in &had {
            let (current, _) =
                commit_conflict(&store, change().if_seen(&policy, *version).put(&ours, "x")).await;
            assert_eq!(current, [Some(record(&policy, newest, "y"))], "version {version}");
        }
        had.push(newest);
    }
}

async fn a_seen_record_stays_as_it_is(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    let version = put_ok(&store, change().put(&policy, "x")).await;
    commit_ok(&store, change().if_seen(&policy, version).put(&ours, "x")).await;
    commit_conflict(&store, change().if_seen(&policy, version + 1).put(&ours, "x")).await;
    commit_conflict(&store, change().if_seen(&policy, version).if_absent(&ours).put(&ours, "x")).await;
    assert_eq!(load(&store, &policy).await, Some(record(&policy, version, "x")));
}

async fn a_seen_record_that_does_not_exist_stays_absent(harness: Box<dyn StoreHarness>) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let (ours, policy) = (exchange("ours"), policy());
    commit_ok(&store, change().if_seen(&policy, 0).if_absent(&ours).put(&ours, "x")).await;
    commit_conflict(&store, change().if_seen(&policy, 0).if_absent(&ours).put(&ours, "x")).await;
    commit_conflict(&store, change().if_seen(&policy, 1)).await;
    assert_eq!(load(&store, &policy).await, None);
    assert_eq!(scan(&store, Kind::Policy, None, 10).await, NO_IDS);
    commit_ok(&other, change().if_absent(&policy).put(&policy, "x")).await;
}

async fn a_seen_record_may_be_written_by_the_same_change(harness: Box<dyn StoreHarness>) {
    let (store, policy) = (harness.store(), policy());
    let first = put_ok(&store, change().if_seen(&policy, 0).put(&policy, "1")).await;
    let second = put_ok(&store, change().if_seen(&policy, first).put(&policy, "2")).await;
    assert_eq!(second, first + 1);
    commit_conflict(&store, change().if_seen(&policy, first).put(&policy, "3")).await;
    commit_conflict(&store, change().if_seen(&policy, 0).put(&policy, "3")).await;
    assert_eq!(load(&store, &policy).await, Some(record(&policy, second, "2")));
    commit_conflict(&store, change().if_seen(&policy, first).delete(&policy)).await;
    commit_ok(&store, change().if_seen(&policy, second).delete(&policy)).await;
    assert_eq!(load(&store, &policy).await, None);
}

/// A store may write them in one transaction; they name the same exchange, so that none does it in another order.
async fn seen_compares_with_what_an_earlier_change_wrote(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy) = (harness.store(), exchange("ours"), policy());
    let first = put_ok(&store, change().put(&policy, "1")).await;
    let write = || change().put(&ours, "x");
    let (_, of_first, of_second, _, of_none, after_deletion) = tokio::join!(
        biased;
        commit_ok(&store, write().put(&policy, "2")),
        commit_conflict(&store, write().if_seen(&policy, first)),
        commit_ok(&store, write().if_seen(&policy, first + 1)),
        commit_ok(&store, write().delete(&policy)),
        commit_ok(&store, write().if_seen(&policy, 0)),
        commit_conflict(&store, write().if_seen(&policy, first + 1)),
    );
    assert_eq!(of_first.0, [Some(record(&policy, first + 1, "2"))]);
    assert_eq!(of_second.1, NO_NUMBERS);
    assert_eq!(of_none.1, NO_NUMBERS);
    assert_eq!(after_deletion.0, [None]);
}

async fn a_conflict_returns_seen_records_with_their_content(harness: Box<dyn StoreHarness>) {
    let (store, ours, policy, none) = (harness.store(), exchange("ours"), policy(), exchange("none"));
    let versions = puts_ok(&store, change().put(&policy, "P").put(&ours, "O")).await;
    let (is_policy, is_ours) =
        (Some(record(&policy, versions[0], "P")), Some(record(&ours, versions[1], "O")));
    // The seen guard holds, and another one does not.
    let guards = change().if_seen(&policy, versions[0]).if_absent(&ours).if_seen(&none, 0);
    let (current, _) = commit_conflict(&store, guards.put(&ours, "x")).await;
    assert_eq!(current, [is_policy.clone(), is_ours.clone(), None]);
    // The other way round.
    let guards = change().if_version(&ours, versions[1]).if_seen(&none, 5).if_seen(&policy, versions[0]);
    let (current, _) = commit_conflict(&store, guards.put(&ours, "x")).await;
    assert_eq!(current, [is_ours, None, is_policy]);
}

async fn two_versions_of_one_record_are_never_both_current(harness: Box<dyn StoreHarness>) {
    let (store, policy) = (harness.store(), policy());
    let version = put_ok(&store, change().put(&policy, "x")).await;
    let both = change().if_seen(&policy, version).if_seen(&policy, version + 1);
    let (current, _) = commit_conflict(&store, both).await;
    assert_eq!(current, vec![Some(record(&policy, version, "x")); 2]);
    commit_conflict(&store, change().if_version(&policy, version).if_seen(&policy, 0)).await;
    commit_ok(&store, change().if_version(&policy, version).if_seen(&policy, version)).await;
}

async fn many_changes_that_saw_the_same_record_are_all_committed(harness: Box<dyn StoreHarness>) {
    let (store, policy) = (harness.store(), policy());
    let version = put_ok(&store, change().put(&policy, "x")).await;
    let mut commits = tokio::task::JoinSet::new();
    for at in 0..64 {
        let (store, ours) = (store.clone(), exchange(&at.to_string()));
        // Every eighth has seen something older.
        let seen = if at % 8 == 0 { version + 1 } else { version };
        let submit = change().if_seen(&policy, seen).if_absent(&ours).put(&ours, "x");
        commits.spawn(async move {
            match seen == version {
                true => drop(commit_ok(&store, submit).await),
                false => drop(commit_conflict(&store, submit).await),
            }
        });
    }
    commits.join_all().await;
    assert_eq!(scan(&store, Kind::Exchange, None, 100).await.len(), 56);
}
