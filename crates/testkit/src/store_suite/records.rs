//! Records: versions, put, delete and load.

use countersign_core::store::{AuditRow, Kind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    a_new_record_has_version_one,
    every_put_adds_exactly_one_to_the_version,
    a_put_replaces_the_content,
    puts_of_one_change_count_versions_by_themselves,
    a_put_without_guard_overwrites_what_is_there,
    a_deleted_record_is_gone,
    deleting_what_is_not_there_is_no_error,
    a_record_recreated_after_its_deletion_has_version_one,
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

async fn a_new_record_has_version_one(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    assert_eq!(load(&store, &ours).await, None);
    commit_ok(&store, change().put(&ours, "new")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "new")));
}

async fn every_put_adds_exactly_one_to_the_version(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for version in 1..=20 {
        commit_ok(&store, change().put(&ours, format!("content {version}"))).await;
        let expected = record(&ours, version, format!("content {version}"));
        assert_eq!(load(&store, &ours).await, Some(expected));
    }
}

async fn a_put_replaces_the_content(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "a long content to begin with")).await;
    commit_ok(&store, change().put(&ours, "short")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 2, "short")));
}

async fn puts_of_one_change_count_versions_by_themselves(harness: Box<dyn StoreHarness>) {
    let (store, old, new) = (harness.store(), exchange("old"), exchange("new"));
    commit_ok(&store, change().put(&old, "1")).await;
    commit_ok(&store, change().put(&old, "2")).await;
    commit_ok(&store, change().put(&old, "3").put(&new, "1")).await;
    assert_eq!(load(&store, &old).await, Some(record(&old, 3, "3")));
    assert_eq!(load(&store, &new).await, Some(record(&new, 1, "1")));
}

async fn a_put_without_guard_overwrites_what_is_there(harness: Box<dyn StoreHarness>) {
    let (store, other, ours) = (harness.store(), harness.second_handle().await, exchange("ours"));
    commit_ok(&store, change().put(&ours, "from one")).await;
    commit_ok(&other, change().put(&ours, "from the other")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 2, "from the other")));
}

async fn a_deleted_record_is_gone(harness: Box<dyn StoreHarness>) {
    let (store, ours, neighbour) = (harness.store(), exchange("ours"), exchange("ours too"));
    commit_ok(&store, change().put(&ours, "x").put(&neighbour, "y")).await;
    commit_ok(&store, change().delete(&ours)).await;
    assert_eq!(load(&store, &ours).await, None);
    assert_eq!(load(&store, &neighbour).await, Some(record(&neighbour, 1, "y")));
}

async fn deleting_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().delete(&exchange("never there")).put(&ours, "x")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "x")));
}

async fn a_record_recreated_after_its_deletion_has_version_one(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "1")).await;
    commit_ok(&store, change().put(&ours, "2")).await;
    commit_ok(&store, change().delete(&ours)).await;
    commit_ok(&store, change().put(&ours, "new")).await;
    assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, "new")));
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
    assert_eq!(load(&store, &prompt).await, Some(record(&prompt, 1, "a prompt")));
}

async fn every_kind_can_be_stored(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for kind in Kind::ALL {
        commit_ok(&store, change().put(&key(*kind, "x"), format!("{kind:?}"))).await;
    }
    for kind in Kind::ALL {
        let ours = key(*kind, "x");
        assert_eq!(load(&store, &ours).await, Some(record(&ours, 1, format!("{kind:?}"))));
    }
}

async fn load_keeps_the_order_of_its_keys(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let (a, b, c) = (exchange("a"), exchange("b"), key(Kind::Session, "a"));
    commit_ok(&store, change().put(&a, "A").put(&b, "B").put(&c, "C")).await;
    let keys = [c.clone(), exchange("unknown"), b.clone(), a.clone()];
    let loaded = store.load(&tenant(), &keys).await.unwrap();
    let expected = [Some(record(&c, 1, "C")), None, Some(record(&b, 1, "B")), Some(record(&a, 1, "A"))];
    assert_eq!(loaded.records, expected);
}

async fn load_of_a_key_twice_finds_it_twice(harness: Box<dyn StoreHarness>) {
    let (store, a, unknown) = (harness.store(), exchange("a"), exchange("unknown"));
    commit_ok(&store, change().put(&a, "A")).await;
    let keys = [a.clone(), unknown.clone(), a.clone(), unknown];
    let loaded = store.load(&tenant(), &keys).await.unwrap();
    assert_eq!(loaded.records, [Some(record(&a, 1, "A")), None, Some(record(&a, 1, "A")), None]);
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
        let expected = (at % 2 == 0).then(|| record(key, 1, key.id.clone()));
        assert_eq!(found, expected, "{key:?}");
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
    commit_ok(&store, before.deliver(delivery(&ann, "old", &old))).await;

    let mut everything = change().if_version(&old, 1).if_absent(&new).if_before(later(1));
    everything =
        everything.put(&new, "new").delete(&old).add_payload(new_body, "new body").drop_payload(old_body);
    everything = everything.remove(one(&ann, 1)).deliver(delivery(&ann, "new", &new));
    everything = everything.due_at(start(), &new).no_longer_due(&old);
    everything.audit.push(AuditRow { subject: new.clone(), event: r#"{"did":"all"}"#.into() });
    assert_eq!(commit_ok(&store, everything).await, (start(), vec![2]));

    assert_eq!(load(&store, &old).await, None);
    assert_eq!(load(&store, &new).await, Some(record(&new, 1, "new")));
    assert_eq!(payload(&store, old_body).await, None);
    assert_eq!(payload(&store, new_body).await, Some("new body".into()));
    assert_eq!(numbers(&store, all_of(&ann)).await, [2]);
    assert_eq!(claim(&store, 10).await, [(start(), new)]);
}
