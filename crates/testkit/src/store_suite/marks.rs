//! Marks of single readers on deliveries that other readers still need.

use MarkKind::{Acknowledged, Hidden};
use countersign_core::store::{DeliveryQuery, Mailbox, MarkKind};

use super::{StoreHarness, cases, fixtures::*};

cases![
    a_marked_delivery_is_left_out_for_its_reader,
    marks_are_of_one_reader,
    hidden_and_acknowledged_are_independent,
    a_query_that_names_no_reader_shows_marked_ones,
    marking_twice_is_no_error,
    a_mark_on_what_is_not_there_is_dropped,
    a_mark_ahead_of_its_delivery_is_dropped,
    marks_are_of_one_mailbox,
    a_limit_does_not_count_marked_ones,
];

async fn three_shared(harness: &dyn StoreHarness) -> Handle {
    let (store, ours) = (harness.store(), exchange("ours"));
    for _ in 0..3 {
        commit_ok(&store, change().deliver(delivery(&Mailbox::Shared, "m", &ours))).await;
    }
    store
}

async fn a_marked_delivery_is_left_out_for_its_reader(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    for mark in [Hidden, Acknowledged] {
        commit_ok(&store, change().mark(&Mailbox::Shared, 2, "ann", mark)).await;
        assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", mark)).await, [1, 3], "{mark:?}");
    }
}

async fn marks_are_of_one_reader(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    let marks = change().mark(&Mailbox::Shared, 1, "ann", Hidden).mark(&Mailbox::Shared, 3, "bob", Hidden);
    commit_ok(&store, marks).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [2, 3]);
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "bob", Hidden)).await, [1, 2]);
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "Ann", Hidden)).await, [1, 2, 3]);
}

async fn hidden_and_acknowledged_are_independent(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    let marks =
        change().mark(&Mailbox::Shared, 1, "ann", Hidden).mark(&Mailbox::Shared, 2, "ann", Acknowledged);
    commit_ok(&store, marks).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [2, 3]);
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Acknowledged)).await, [1, 3]);
    // Both marks on one delivery, the second in a separate change.
    commit_ok(&store, change().mark(&Mailbox::Shared, 1, "ann", Acknowledged)).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [2, 3]);
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Acknowledged)).await, [3]);
}

async fn a_query_that_names_no_reader_shows_marked_ones(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    commit_ok(&store, change().mark(&Mailbox::Shared, 1, "ann", Hidden)).await;
    assert_eq!(numbers(&store, all_of(&Mailbox::Shared)).await, [1, 2, 3]);
}

async fn marking_twice_is_no_error(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    let mark = || change().mark(&Mailbox::Shared, 1, "ann", Hidden);
    commit_ok(&store, mark()).await;
    commit_ok(&store, mark().mark(&Mailbox::Shared, 1, "ann", Hidden)).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [2, 3]);
}

async fn a_mark_on_what_is_not_there_is_dropped(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (three_shared(&*harness).await, exchange("ours"));
    commit_ok(&store, change().remove(one(&Mailbox::Shared, 1))).await;
    let marks = change().mark(&Mailbox::Shared, 1, "ann", Hidden).mark(&inbox("bob"), 1, "ann", Hidden);
    commit_ok(&store, marks.mark(&Mailbox::Shared, 3, "ann", Hidden).put(&ours, "x")).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [2]);
    assert_eq!(content(&store, &ours).await, Some("x".into()));
}

async fn a_mark_ahead_of_its_delivery_is_dropped(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (three_shared(&*harness).await, exchange("ours"));
    commit_ok(&store, change().mark(&Mailbox::Shared, 4, "ann", Hidden)).await;
    commit_ok(&store, change().deliver(delivery(&Mailbox::Shared, "m", &ours))).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::Shared, "ann", Hidden)).await, [1, 2, 3, 4]);
}

async fn marks_are_of_one_mailbox(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (three_shared(&*harness).await, exchange("ours"));
    commit_ok(&store, change().deliver(delivery(&Mailbox::ExpiredShared, "m", &ours))).await;
    commit_ok(&store, change().mark(&Mailbox::Shared, 1, "ann", Hidden)).await;
    assert_eq!(numbers(&store, unmarked(&Mailbox::ExpiredShared, "ann", Hidden)).await, [1]);
}

async fn a_limit_does_not_count_marked_ones(harness: Box<dyn StoreHarness>) {
    let store = three_shared(&*harness).await;
    commit_ok(&store, change().mark(&Mailbox::Shared, 1, "ann", Hidden)).await;
    let query = |after| DeliveryQuery { after, limit: 1, ..unmarked(&Mailbox::Shared, "ann", Hidden) };
    assert_eq!(numbers(&store, query(0)).await, [2]);
    assert_eq!(numbers(&store, query(2)).await, [3]);
}
