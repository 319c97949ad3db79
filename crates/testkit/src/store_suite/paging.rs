//! Reading a mailbox page by page, while others write to it.

use std::sync::Arc;

use countersign_core::store::{DeliveryPage, DeliveryQuery, MAX_SCANNED, MarkKind, NewDelivery};
use tokio::task::JoinSet;

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    only_numbers_above_after_are_read,
    a_page_has_at_most_its_limit,
    a_limit_of_what_is_there_reads_all_of_it,
    a_page_of_an_empty_mailbox_is_empty,
    a_limit_counts_only_what_the_page_shows,
    a_page_has_the_time,
    a_page_has_the_head_of_its_mailbox_whatever_it_shows,
    a_page_and_its_head_are_of_the_same_moment,
    a_read_looks_at_so_many_deliveries_and_says_where_it_stopped,
    irrelevant_deliveries_are_left_out_on_request,
    a_delivery_is_irrelevant_from_its_until_time_on,
    a_walk_by_ones_sees_once_what_stays,
    a_walk_by_sevens_sees_once_what_stays,
    a_walk_by_two_hundreds_sees_once_what_stays,
];

/// Fills the mailbox of ann with `count` deliveries in one change.
async fn fill(store: &Handle, count: u64) {
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    let all = (1..=count).fold(change(), |all, at| all.deliver(delivery(&ann, &format!("m{at}"), &ours)));
    assert_eq!(commit_ok(store, all).await.1, (1..=count).collect::<Vec<_>>());
}

fn page(after: u64, limit: u32) -> DeliveryQuery {
    DeliveryQuery { after, limit, ..all_of(&inbox("ann")) }
}

async fn only_numbers_above_after_are_read(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    fill(&store, 5).await;
    assert_eq!(numbers(&store, page(0, 100)).await, [1, 2, 3, 4, 5]);
    assert_eq!(numbers(&store, page(1, 100)).await, [2, 3, 4, 5]);
    assert_eq!(numbers(&store, page(4, 100)).await, [5]);
    assert_eq!(numbers(&store, page(5, 100)).await, NO_NUMBERS);
    // No mailbox reaches such numbers, but a client's cursor may contain them.
    assert_eq!(numbers(&store, page(i64::MAX.unsigned_abs(), 100)).await, NO_NUMBERS);
    assert_eq!(numbers(&store, page(u64::MAX, 100)).await, NO_NUMBERS);
}

async fn a_page_has_at_most_its_limit(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    fill(&store, 10).await;
    assert_eq!(numbers(&store, page(0, 1)).await, [1]);
    assert_eq!(numbers(&store, page(0, 3)).await, [1, 2, 3]);
    assert_eq!(numbers(&store, page(3, 3)).await, [4, 5, 6]);
    assert_eq!(numbers(&store, page(9, 3)).await, [10]);
    assert_eq!(numbers(&store, page(0, 0)).await, NO_NUMBERS);
}

async fn a_limit_of_what_is_there_reads_all_of_it(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    fill(&store, 200).await;
    for limit in [200, 201, u32::MAX] {
        assert_eq!(numbers(&store, page(0, limit)).await, (1..=200).collect::<Vec<_>>(), "{limit}");
    }
    assert_eq!(numbers(&store, page(0, 199)).await, (1..=199).collect::<Vec<_>>());
    assert_eq!(numbers(&store, page(200, 200)).await, NO_NUMBERS);
}

async fn a_page_of_an_empty_mailbox_is_empty(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    assert_eq!(read(&store, page(0, 10)).await, []);
    fill(&store, 1).await;
    assert_eq!(read(&store, all_of(&inbox("bob"))).await, []);
}

async fn a_limit_counts_only_what_the_page_shows(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    fill(&store, 10).await;
    commit_ok(&store, change().remove(one(&ann, 1)).remove(one(&ann, 3)).remove(one(&ann, 4))).await;
    assert_eq!(numbers(&store, page(0, 3)).await, [2, 5, 6]);
    assert_eq!(numbers(&store, page(6, 3)).await, [7, 8, 9]);
}

async fn a_page_has_the_time(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    assert_eq!(store.deliveries(&tenant(), page(0, 1)).await.unwrap().now, start());
    harness.set_now(later(5)).await;
    assert_eq!(store.deliveries(&tenant(), page(0, 1)).await.unwrap().now, later(5));
}

/// Deliveries that are relevant until 10, 20 and 30 seconds after the start.
async fn needed_until_10_20_30(store: &Handle) {
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    for seconds in [10, 20, 30] {
        let new = NewDelivery { until: later(seconds), ..delivery(&ann, "m", &ours) };
        commit_ok(store, change().deliver(new)).await;
    }
}

async fn head_of(store: &Handle, query: DeliveryQuery) -> (Vec<u64>, u64) {
    let page = store.deliveries(&tenant(), query).await.unwrap();
    (page.deliveries.iter().map(|delivery| delivery.number).collect(), page.head)
}

async fn a_page_has_the_head_of_its_mailbox_whatever_it_shows(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    assert_eq!(head_of(&store, page(0, 10)).await, (vec![], 0), "never delivered to");
    fill(&store, 5).await;
    commit_ok(&store, change().deliver(delivery(&inbox("bob"), "m", &ours))).await;
    assert_eq!(head_of(&store, page(0, 10)).await, (vec![1, 2, 3, 4, 5], 5));
    assert_eq!(head_of(&store, page(0, 2)).await, (vec![1, 2], 5), "the limit cuts it off");
    assert_eq!(head_of(&store, page(0, 0)).await, (vec![], 5));
    assert_eq!(head_of(&store, page(5, 10)).await, (vec![], 5), "nothing new");
    assert_eq!(head_of(&store, page(u64::MAX, 10)).await, (vec![], 5));
    commit_ok(&store, change().remove(one(&ann, 5)).mark(&ann, 4, "ann", MarkKind::Acknowledged)).await;
    let acknowledged = unmarked(&ann, "ann", MarkKind::Acknowledged);
    assert_eq!(head_of(&store, acknowledged.clone()).await, (vec![1, 2, 3], 5), "removed or marked");
    assert_eq!(head_of(&store, DeliveryQuery { after: 3, ..acknowledged }).await, (vec![], 5));
    harness.set_now(later(86_400)).await;
    let relevant = DeliveryQuery { only_relevant: true, ..page(0, 10) };
    assert_eq!(head_of(&store, relevant).await, (vec![], 5), "irrelevant");
    commit_ok(&store, change().remove(by_subject(&ours, &[]))).await;
    assert_eq!(head_of(&store, page(0, 10)).await, (vec![], 5), "all are gone");
}

async fn a_read_looks_at_so_many_deliveries_and_says_where_it_stopped(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let (bound, visible) = (u64::from(MAX_SCANNED), u64::from(MAX_SCANNED) * 2 + 5);
    fill(&store, visible).await;
    let hidden = (1..visible).fold(change(), |all, at| all.mark(&ann, at, "ann", MarkKind::Hidden));
    commit_ok(&store, hidden).await;
    let unhidden = async |after, up_to, limit| {
        let query = unmarked(&ann, "ann", MarkKind::Hidden);
        store.deliveries(&tenant(), DeliveryQuery { after, up_to, limit, ..query }).await
    };
    let seen = |page: DeliveryPage| {
        let numbers: Vec<u64> = page.deliveries.iter().map(|delivery| delivery.number).collect();
        (numbers, page.read_to, page.head)
    };
    assert_eq!(seen(unhidden(0, None, 10).await.unwrap()), (vec![], bound, visible));
    assert_eq!(seen(unhidden(bound, None, 10).await.unwrap()), (vec![], bound * 2, visible));
    assert_eq!(seen(unhidden(bound * 2, None, 10).await.unwrap()), (vec![visible], visible, visible));
    assert_eq!(seen(unhidden(7, Some(9), 10).await.unwrap()), (vec![], 9, visible), "only up to there");
    let all = store.deliveries(&tenant(), page(0, u32::MAX)).await.unwrap();
    assert_eq!((all.deliveries.len() as u64, all.read_to), (bound, bound), "also of those that it returns");
    let cut = store.deliveries(&tenant(), page(10, 3)).await.unwrap();
    assert_eq!(seen(cut), (vec![11, 12, 13], 13, visible));
}

/// Nothing is removed, so a page that is not cut off ends at its head, whoever delivers meanwhile.
async fn a_page_and_its_head_are_of_the_same_moment(harness: Box<dyn StoreHarness>) {
    let handles = [harness.store(), harness.second_handle().await];
    let mut writers = JoinSet::new();
    for store in &handles {
        let store = Arc::clone(store);
        writers.spawn(async move {
            for _ in 0..100 {
                commit_ok(&store, change().deliver(delivery(&inbox("ann"), "m", &exchange("ours")))).await;
            }
        });
    }
    let mut newest = 0;
    while newest < 200 {
        let (found, head) = head_of(&handles[0], page(newest, 1_000)).await;
        assert_eq!(found.last().copied().unwrap_or(newest), head);
        newest = head;
    }
    writers.join_all().await;
}

async fn irrelevant_deliveries_are_left_out_on_request(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    needed_until_10_20_30(&store).await;
    let relevant = |limit| DeliveryQuery { only_relevant: true, ..page(0, limit) };
    assert_eq!(numbers(&store, relevant(10)).await, [1, 2, 3]);
    harness.set_now(later(15)).await;
    assert_eq!(numbers(&store, relevant(10)).await, [2, 3]);
    assert_eq!(numbers(&store, relevant(1)).await, [2]);
    harness.set_now(later(100)).await;
    assert_eq!(numbers(&store, relevant(10)).await, NO_NUMBERS);
    assert_eq!(numbers(&store, page(0, 10)).await, [1, 2, 3]);
}

async fn a_delivery_is_irrelevant_from_its_until_time_on(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    needed_until_10_20_30(&store).await;
    let relevant = || DeliveryQuery { only_relevant: true, ..page(0, 10) };
    harness.set_now(later(20).minus(std::time::Duration::from_micros(1))).await;
    assert_eq!(numbers(&store, relevant()).await, [2, 3]);
    harness.set_now(later(20)).await;
    assert_eq!(numbers(&store, relevant()).await, [3]);
}

async fn a_walk_by_ones_sees_once_what_stays(harness: Box<dyn StoreHarness>) {
    walk_while_others_come_and_go(harness, 1).await;
}

async fn a_walk_by_sevens_sees_once_what_stays(harness: Box<dyn StoreHarness>) {
    walk_while_others_come_and_go(harness, 7).await;
}

async fn a_walk_by_two_hundreds_sees_once_what_stays(harness: Box<dyn StoreHarness>) {
    walk_while_others_come_and_go(harness, 200).await;
}

/// Of the numbers 1 to 60, the even ones stay. After each page one odd number is removed, alternately behind and
/// ahead of the reader, and a new delivery arrives.
async fn walk_while_others_come_and_go(harness: Box<dyn StoreHarness>, limit: u32) {
    let (store, other) = (harness.store(), harness.second_handle().await);
    let (ours, ann) = (exchange("ours"), inbox("ann"));
    fill(&store, 60).await;
    let mut going = (0..15).flat_map(|at| [2 * at + 1, 59 - 2 * at]);

    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        let read = numbers(&store, page(cursor, limit)).await;
        let Some(last) = read.last() else { break };
        cursor = *last;
        seen.extend(read);
        if let Some(number) = going.next() {
            commit_ok(&other, change().remove(one(&ann, number)).deliver(delivery(&ann, "new", &ours))).await;
        }
    }
    assert!(seen.is_sorted_by(|one, next| one < next), "ascending, none twice: {seen:?}");
    let stayed: Vec<_> = seen.iter().copied().filter(|number| *number <= 60 && number % 2 == 0).collect();
    assert_eq!(stayed, (1..=30).map(|half| 2 * half).collect::<Vec<_>>());
}
