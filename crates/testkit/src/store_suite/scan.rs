//! Scanning the records of a kind in the order of their ids.

use countersign_core::store::Kind;

use super::{StoreHarness, cases, fixtures::*};

cases![
    a_scan_of_nothing_is_empty,
    a_scan_goes_in_the_order_of_the_ids_bytes,
    a_scan_starts_after_an_id,
    a_scan_has_at_most_its_limit,
    a_scan_finds_only_its_kind,
    a_scan_returns_complete_records,
    a_scan_by_pages_finds_each_once,
];

async fn put_all(store: &Handle, kind: Kind, ids: &[&str]) {
    let all = ids.iter().fold(change(), |all, id| all.put(&key(kind, id), (*id).to_owned()));
    commit_ok(store, all).await;
}

async fn a_scan_of_nothing_is_empty(harness: Box<dyn StoreHarness>) {
    assert_eq!(scan(&harness.store(), Kind::Exchange, None, 10).await, NO_IDS);
}

async fn a_scan_goes_in_the_order_of_the_ids_bytes(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    // No collation of a language gives this order, and UTF-16 would swap the last two.
    let sorted = [" x", "10", "9", "A", "B", "_", "a", "a b", "aa", "b", "e\u{301}", "é", "\u{ffee}", "😀"];
    assert!(sorted.is_sorted());
    let shuffled: Vec<_> = (0..sorted.len()).map(|at| sorted[at * 5 % sorted.len()]).collect();
    put_all(&store, Kind::Exchange, &shuffled).await;
    assert_eq!(scan(&store, Kind::Exchange, None, 100).await, sorted);
    for (at, id) in sorted.iter().enumerate() {
        assert_eq!(scan(&store, Kind::Exchange, Some(id), 100).await, sorted[at + 1..], "after {id}");
    }
}

async fn a_scan_starts_after_an_id(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    put_all(&store, Kind::Session, &["a", "c", "e"]).await;
    assert_eq!(scan(&store, Kind::Session, Some("a"), 10).await, ["c", "e"]);
    // The id need not exist.
    assert_eq!(scan(&store, Kind::Session, Some("b"), 10).await, ["c", "e"]);
    assert_eq!(scan(&store, Kind::Session, Some("A"), 10).await, ["a", "c", "e"]);
    assert_eq!(scan(&store, Kind::Session, Some("e"), 10).await, NO_IDS);
}

async fn a_scan_has_at_most_its_limit(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    put_all(&store, Kind::Session, &["a", "b", "c"]).await;
    assert_eq!(scan(&store, Kind::Session, None, 0).await, NO_IDS);
    assert_eq!(scan(&store, Kind::Session, None, 2).await, ["a", "b"]);
    assert_eq!(scan(&store, Kind::Session, None, 3).await, ["a", "b", "c"]);
    assert_eq!(scan(&store, Kind::Session, Some("a"), 1).await, ["b"]);
}

async fn a_scan_finds_only_its_kind(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for kind in Kind::ALL {
        put_all(&store, *kind, &["same", &format!("{kind:?}")]).await;
    }
    for kind in Kind::ALL {
        let mut expected = vec![format!("{kind:?}"), "same".to_owned()];
        expected.sort();
        assert_eq!(scan(&store, *kind, None, 100).await, expected);
    }
}

async fn a_scan_returns_complete_records(harness: Box<dyn StoreHarness>) {
    let (store, a, b) = (harness.store(), exchange("a"), exchange("b"));
    let written = change().put(&a, "A1").put(&b, bytes_of(70_000)).put(&exchange("c"), "C");
    let versions = puts_ok(&store, written).await;
    commit_ok(&store, change().put(&a, "A2").delete(&exchange("c"))).await;
    let found = store.scan(&tenant(), Kind::Exchange, None, 10).await.unwrap();
    assert!(found == [record(&a, versions[0] + 1, "A2"), record(&b, versions[1], bytes_of(70_000))]);
}

async fn a_scan_by_pages_finds_each_once(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let ids: Vec<_> = (0..250).map(|at| format!("id {at:03}")).collect();
    put_all(&store, Kind::Route, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for limit in [1, 7, 100] {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = scan(&store, Kind::Route, after.as_deref(), limit).await;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            seen.extend(page);
        }
        assert_eq!(seen, ids, "by {limit}");
    }
}
