//! Records: versions, put, delete and load.

use countersign_core::store::{AuditRow, Kind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    a_new_record_has_the_version_that_its_commit_returns,
    every_put_adds_exactly_one_to_the_version,
    a_put_replaces_the_content,
    puts_of_one_change_count_versions_by_themselves,
    a_put_without_guard_overwrites_what_is_there,
    a_deleted_record_is_gone,
    deleting_what_is_not_there_is_no_error,
    a_record_made_again_after_its_deletion_starts_with_a_new_version,
    a_record_that_one_change_deletes_and_puts_starts_with_a_new_version,
    versions_never_repeat_whoever_deletes_and_makes_again,
    versions_come_in_the_order_of_the_puts,
    deleting_a_record_leaves_its_deliveries,
    records_of_the_same_id_and_another_kind_are_distinct,
    every_kind_can_be_stored,
    load_keeps_the_order_of_its_keys,
    load_of_a_key_twice_finds_it_twice,
    load_of_no_keys_returns_no_records_and_the_time,
    load_of_many_keys_finds_each,
    an_empty_change_commits,
    a_change_of_everything_commits_all_of_it,
];

async fn a_new_record_has_the_version_that_its_commit_returns(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    assert_eq!(load(&store, &ours).await, None);
    let version = put_ok(&store, change().put(&ours, "new")).await;
    assert_ne!(version, 0);
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version, "new")));
}

async fn every_put_adds_exactly_one_to_the_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let first = put_ok(&store, change().put(&ours, "first")).await;
    for version in first + 1..first + 20 {
        let written = put_ok(&store, change().put(&ours, format!("content {version}"))).await;
        assert_eq!(written, version);
        let expected = record(&ours, version, format!("content {version}"));
        assert_eq!(load(&store, &ours).await, Some(expected));
    }
}

async fn a_put_replaces_the_content(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "a long content to begin with")).await;
    commit_ok(&store, change().put(&ours, "short")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version + 1, "short")));
}

async fn puts_of_one_change_count_versions_by_themselves(harness: Box<dyn StoreHarness>) {
    let (store, old, new) = (harness.store(), exchange("old"), exchange("new"));
    let first = put_ok(&store, change().put(&old, "1")).await;
    commit_ok(&store, change().put(&old, "2")).await;
    let versions = puts_ok(&store, change().put(&old, "3").put(&new, "1")).await;
    assert_eq!(versions[0], first + 2);
    assert_eq!(load(&store, &old).await, Some(record(&old, versions[0], "3")));
    assert_eq!(load(&store, &new).await, Some(record(&new, versions[1], "1")));
}

async fn a_put_without_guard_overwrites_what_is_there(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    let version = put_ok(&store, change().put(&ours, "from one")).await;
    assert_eq!(put_ok(&other, change().put(&ours, "from the other")).await, version + 1);
    assert_eq!(load(&store, &ours).await, Some(record(&ours, version + 1, "from the other")));
}

async fn a_deleted_record_is_gone(harness: Box<dyn StoreHarness>) {
    let (store, ours, neighbour) = (harness.store(), exchange("ours"), exchange("ours too"));
    let versions = puts_ok(&store, change().put(&ours, "x").put(&neighbour, "y")).await;
    commit_ok(&store, change().delete(&ours)).await;
    assert_eq!(load(&store, &ours).await, None);
    assert_eq!(load(&store, &neighbour).await, Some(record(&neighbour, versions[1], "y")));
}

async fn deleting_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().delete(&exchange("never there")).put(&ours, "x")).await;
    assert_eq!(content(&store, &ours).await, Some("x".into()));
}

async fn a_record_made_again_after_its_deletion_starts_with_a_new_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mut had = Vec::new();
    for again in 0..10 {
        // Each time with more writes, so that counting from the deletions alone would repeat a version.
        for write in 0..=again {
            had.push(put_ok(&store, change().put(&ours, write.to_string())).await);
        }
        commit_ok(&store, change().delete(&ours)).await;
    }
    assert_distinct(had);
}

async fn a_record_that_one_change_deletes_and_puts_starts_with_a_new_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mut had = Vec::new();
    for _ in 0..5 {
        had.push(put_ok(&store, change().put(&ours, "x")).await);
        had.push(put_ok(&store, change().delete(&ours).put(&ours, "again")).await);
    }
    assert_eq!(load(&store, &ours).await, Some(record(&ours, had[9], "again")));
    assert_distinct(had);
}

fn assert_distinct(mut versions: Vec<u64>) {
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), count, "{versions:?}");
}

async fn versions_never_repeat_whoever_deletes_and_makes_again(mut harness: Box<dyn StoreHarness>) {
    let ours = exchange("ours");
    let mut had = Vec::new();
    for _ in 0..3 {
        let handles = [harness.store(), harness.second_handle().await];
        for round in 0..10 {
            let (one, other) = (&handles[round % 2], &handles[(round / 2) % 2]);
            // Other records are made meanwhile.
            commit_ok(other, change().put(&exchange(&format!("{round}")), "x")).await;
            had.push(put_ok(one, change().if_absent(&ours).put(&ours, "x")).await);
            had.push(put_ok(other, change().put(&ours, "y")).await);
            commit_ok(other, change().delete(&ours)).await;
        }
        drop(handles);
        harness.reopen().await;
    }
    assert_distinct(had);
}

async fn versions_come_in_the_order_of_the_puts(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let keys = ["m", "z", "a", "q"].map(exchange);
    commit_ok(&store, change().put(&keys[1], "x")).await;
    let all = keys.iter().fold(change(), |all, key| all.put(key, key.id.clone()));
    let versions = puts_ok(&store, all.delete(&exchange("none"))).await;
    assert_eq!(versions.len(), keys.len());
    for (key, version) in keys.iter().zip(versions) {
        assert_eq!(load(&store, key).await, Some(record(key, version, key.id.clone())));
    }
}

async fn deleting_a_record_leaves_its_deliveries(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let written = change().put(&ours, "x").deliver(delivery(&ann, "m", &ours)).due_at(start(), &ours);
    commit_ok(&store, written).await;
    commit_ok(&store, change().delete(&ours)).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [1]);
    assert_eq!(claim(&store, 10).await, [(start(), ours)]);
}

async fn records_of_the_same_id_and_another_kind_are_distinct(harness: Box<dyn StoreHarness>) {
    let (store, exchange, prompt) = (harness.store(), key(Kind::Exchange, "x"), key(Kind::Prompt, "x"));
    commit_ok(&store, change().put(&exchange, "an exchange")).await;
    commit_ok(&store, change().if_absent(&prompt).put(&prompt, "a prompt")).await;
    commit_ok(&store, change().delete(&exchange)).await;
    assert_eq!(content(&store, &prompt).await, Some("a prompt".into()));
}

async fn every_kind_can_be_stored(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for kind in Kind::ALL {
        commit_ok(&store, change().put(&key(*kind, "x"), format!("{kind:?}"))).await;
    }
    for kind in Kind::ALL {
        let ours = key(*kind, "x");
        assert_eq!(content(&store, &ours).await, Some(format!("{kind:?}").into()));
    }
}

async fn load_keeps_the_order_of_its_keys(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let (a, b, c) = (exchange("a"), exchange("b"), key(Kind::Session, "a"));
    let versions = puts_ok(&store, change().put(&a, "A").put(&b, "B").put(&c, "C")).await;
    let keys = [c.clone(), exchange("unknown"), b.clone(), a.clone()];
    let loaded = store.load(&tenant(), &keys).await.unwrap();
    let [is_a, is_b, is_c] = [(&a, "A", 0), (&b, "B", 1), (&c, "C", 2)]
        .map(|(key, content, at)| Some(record(key, versions[at], content)));
    assert_eq!(loaded.records, [is_c, None, is_b, is_a]);
}

async fn load_of_a_key_twice_finds_it_twice(harness: Box<dyn StoreHarness>) {
    let (store, a, unknown) = (harness.store(), exchange("a"), exchange("unknown"));
    let version = put_ok(&store, change().put(&a, "A")).await;
    let keys = [a.clone(), unknown.clone(), a.clone(), unknown];
    let loaded = store.load(&tenant(), &keys).await.unwrap();
    assert_eq!(loaded.records, [Some(record(&a, version, "A")), None, Some(record(&a, version, "A")), None]);
}

async fn load_of_no_keys_returns_no_records_and_the_time(harness: Box<dyn StoreHarness>) {
    let loaded = harness.store().load(&tenant(), &[]).await.unwrap();
    assert_eq!(loaded.records, []);
    assert_eq!(loaded.now, start());
}

async fn load_of_many_keys_finds_each(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let keys: Vec<_> = (0..1000).map(|at| exchange(&format!("id {at}"))).collect();
    let written = keys.iter().step_by(2).fold(change(), |change, key| change.put(key, key.id.clone()));
    commit_ok(&store, written).await;
    let loaded = store.load(&tenant(), &keys).await.unwrap();
    assert_eq!(loaded.records.len(), keys.len());
    for (at, (key, found)) in keys.iter().zip(loaded.records).enumerate() {
        let expected = (at % 2 == 0).then(|| key.id.clone().into());
        assert_eq!(found.map(|found| found.content), expected, "{key:?}");
    }
}

async fn an_empty_change_commits(harness: Box<dyn StoreHarness>) {
    assert_eq!(commit_ok(&harness.store(), change()).await, (start(), vec![]));
}

async fn a_change_of_everything_commits_all_of_it(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let (old, new) = (exchange("old"), exchange("new"));
    let (old_body, new_body) = (PayloadId(1), PayloadId(2));
    let before = change().put(&old, "old").add_payload(old_body, "old body").due_at(start(), &old);
    let version = put_ok(&store, before.deliver(delivery(&ann, "old", &old))).await;

    let mut everything = change().if_version(&old, version).if_absent(&new).if_before(later(1));
    everything =
        everything.put(&new, "new").delete(&old).add_payload(new_body, "new body").drop_payload(old_body);
    everything = everything.remove(one(&ann, 1)).deliver(delivery(&ann, "new", &new));
    everything = everything.due_at(start(), &new).no_longer_due(&old);
    everything.audit.push(AuditRow { subject: new.clone(), event: r#"{"did":"all"}"#.into() });
    assert_eq!(commit_ok(&store, everything).await, (start(), vec![2]));

    assert_eq!(load(&store, &old).await, None);
    assert_eq!(content(&store, &new).await, Some("new".into()));
    assert_eq!(payload(&store, old_body).await, None);
    assert_eq!(payload(&store, new_body).await, Some("new body".into()));
    assert_eq!(numbers(&store, all_of(&ann)).await, [2]);
    assert_eq!(claim(&store, 10).await, [(start(), new)]);
}
