//! Removing deliveries from mailboxes, by number or by subject, and finding them by subject.

use countersign_core::store::{Key, Kind, Mailbox, MarkKind, NewDelivery};
use countersign_wire::msg_type::MsgType;

use super::{StoreHarness, cases, fixtures::*};

cases![
    one_removal_removes_one_delivery,
    removing_what_is_not_there_is_no_error,
    a_removal_by_subject_removes_all_in_every_mailbox,
    a_removal_by_subject_leaves_other_records,
    a_removal_by_subject_leaves_the_same_id_of_another_kind,
    a_removal_with_types_removes_only_those,
    removals_are_done_before_deliveries,
    several_removals_of_one_change_are_all_done,
    a_later_delivery_inherits_no_marks_of_a_removed_one,
    deliveries_by_subject_finds_all_kinds_in_all_mailboxes,
    deliveries_by_subject_takes_its_subject_literally,
    deliveries_by_subject_omits_removed_ones,
];

fn typed(mailbox: &Mailbox, msg_type: MsgType, subject: &Key) -> NewDelivery {
    NewDelivery { msg_type, ..delivery(mailbox, "m", subject) }
}

/// The deliveries about the subject as mailbox name and number, sorted.
async fn found_by_subject(store: &Handle, subject: &str) -> Vec<(String, u64)> {
    let found = store.deliveries_by_subject(&tenant(), subject).await.unwrap();
    let mut found: Vec<_> =
        found.into_iter().map(|(mailbox, delivery)| (mailbox.to_string(), delivery.number)).collect();
    found.sort();
    found
}

async fn one_removal_removes_one_delivery(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann, bob) = (harness.store(), exchange("ours"), inbox("ann"), inbox("bob"));
    for mailbox in [&ann, &ann, &ann, &bob, &bob] {
        commit_ok(&store, change().deliver(delivery(mailbox, "m", &ours))).await;
    }
    commit_ok(&store, change().remove(one(&ann, 2))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [1, 3]);
    assert_eq!(numbers(&store, all_of(&bob)).await, [1, 2]);
}

async fn removing_what_is_not_there_is_no_error(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
    let removals = change().remove(one(&ann, 2)).remove(one(&ann, 0)).remove(one(&inbox("bob"), 1));
    commit_ok(&store, removals.remove(by_subject(&exchange("unknown"), &[]))).await;
    commit_ok(&store, change().remove(one(&ann, 1)).remove(one(&ann, 1))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, NO_NUMBERS);
}

async fn a_removal_by_subject_removes_all_in_every_mailbox(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mailboxes = [
        inbox("ann"),
        Mailbox::Enforcer("agent".parse().unwrap()),
        Mailbox::Shared,
        Mailbox::ExpiredOfApprover(approver("ann")),
        Mailbox::ExpiredShared,
    ];
    for mailbox in &mailboxes {
        let two = change().deliver(typed(mailbox, MsgType::ApprovalRequest, &ours));
        commit_ok(&store, two.deliver(typed(mailbox, MsgType::ExchangeWithdrawn, &ours))).await;
    }
    commit_ok(&store, change().remove(by_subject(&ours, &[]))).await;
    for mailbox in &mailboxes {
        assert_eq!(numbers(&store, all_of(mailbox)).await, NO_NUMBERS, "{mailbox}");
    }
}

async fn a_removal_by_subject_leaves_other_records(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    for id in ["ours", "theirs", "our", "ours ", "Ours", "%"] {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &exchange(id)))).await;
    }
    commit_ok(&store, change().remove(by_subject(&exchange("ours"), &[]))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [2, 3, 4, 5, 6]);
    commit_ok(&store, change().remove(by_subject(&exchange("%"), &[]))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [2, 3, 4, 5]);
}

async fn a_removal_by_subject_leaves_the_same_id_of_another_kind(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    for kind in [Kind::Exchange, Kind::Prompt, Kind::Session] {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &key(kind, "x")))).await;
    }
    commit_ok(&store, change().remove(by_subject(&key(Kind::Prompt, "x"), &[]))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [1, 3]);
    let types = [MsgType::ApprovalRequest];
    commit_ok(&store, change().remove(by_subject(&key(Kind::Session, "x"), &types))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [1]);
}

async fn a_removal_with_types_removes_only_those(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann, bob) = (harness.store(), exchange("ours"), inbox("ann"), inbox("bob"));
    let odd = MsgType::Other("x.odd".into());
    let types = [MsgType::ApprovalRequest, MsgType::ExchangeWithdrawn, MsgType::DecisionDeliver, odd.clone()];
    for mailbox in [&ann, &bob] {
        for msg_type in &types {
            commit_ok(&store, change().deliver(typed(mailbox, msg_type.clone(), &ours))).await;
        }
    }
    let some = [MsgType::DecisionDeliver, MsgType::ApprovalRequest, MsgType::PromptSend];
    commit_ok(&store, change().remove(by_subject(&ours, &some))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [2, 4]);
    assert_eq!(numbers(&store, all_of(&bob)).await, [2, 4]);
    commit_ok(&store, change().remove(by_subject(&ours, &[odd]))).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [2]);
}

async fn removals_are_done_before_deliveries(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    commit_ok(&store, change().deliver(delivery(&ann, "old", &ours))).await;
    let replaced = change().deliver(delivery(&ann, "new", &ours)).remove(by_subject(&ours, &[]));
    assert_eq!(commit_ok(&store, replaced).await.1, [2]);
    assert_eq!(numbers(&store, all_of(&ann)).await, [2]);
    // Even if the removal names the number that the new delivery gets.
    let replaced = change().deliver(delivery(&ann, "newer", &ours)).remove(one(&ann, 3));
    assert_eq!(commit_ok(&store, replaced).await.1, [3]);
    assert_eq!(numbers(&store, all_of(&ann)).await, [2, 3]);
}

async fn several_removals_of_one_change_are_all_done(harness: Box<dyn StoreHarness>) {
    let (store, ann, bob) = (harness.store(), inbox("ann"), inbox("bob"));
    for (mailbox, id) in [(&ann, "a"), (&ann, "b"), (&ann, "c"), (&bob, "a"), (&bob, "b")] {
        commit_ok(&store, change().deliver(delivery(mailbox, "m", &exchange(id)))).await;
    }
    let removals = change().remove(one(&bob, 2)).remove(by_subject(&exchange("a"), &[])).remove(one(&ann, 3));
    commit_ok(&store, removals).await;
    assert_eq!(numbers(&store, all_of(&ann)).await, [2]);
    assert_eq!(numbers(&store, all_of(&bob)).await, NO_NUMBERS);
}

async fn a_later_delivery_inherits_no_marks_of_a_removed_one(harness: Box<dyn StoreHarness>) {
    let (store, ours, shared) = (harness.store(), exchange("ours"), Mailbox::Shared);
    for _ in 0..2 {
        commit_ok(&store, change().deliver(delivery(&shared, "m", &ours))).await;
    }
    for number in [1, 2] {
        commit_ok(&store, change().mark(&shared, number, "ann", MarkKind::Hidden)).await;
    }
    commit_ok(&store, change().remove(one(&shared, 1))).await;
    commit_ok(&store, change().remove(by_subject(&ours, &[]))).await;
    let (_, assigned) = commit_ok(&store, change().deliver(delivery(&shared, "m", &ours))).await;
    assert_eq!(assigned, [3]);
    assert_eq!(numbers(&store, unmarked(&shared, "ann", MarkKind::Hidden)).await, [3]);
}

async fn deliveries_by_subject_finds_all_kinds_in_all_mailboxes(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    commit_ok(&store, change().deliver(delivery(&ann, "m", &exchange("other")))).await;
    let mut all = change().deliver(delivery(&ann, "m", &key(Kind::Exchange, "x")));
    all = all.deliver(delivery(&Mailbox::Shared, "m", &key(Kind::Prompt, "x")));
    all = all.deliver(delivery(&Mailbox::ExpiredShared, "m", &key(Kind::Session, "x")));
    commit_ok(&store, all).await;
    let expected = [("a:ann", 2), ("s", 1), ("xs", 1)].map(|(name, number)| (name.to_owned(), number));
    assert_eq!(found_by_subject(&store, "x").await, expected);

    let found = store.deliveries_by_subject(&tenant(), "x").await.unwrap();
    for (mailbox, delivery) in found {
        let there = read(&store, all_of(&mailbox)).await;
        assert!(there.contains(&delivery), "complete, as in its mailbox: {delivery:?}");
    }
}

async fn deliveries_by_subject_takes_its_subject_literally(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    for id in ["x", "X", "x ", "xx", "%", "_"] {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &exchange(id)))).await;
    }
    for (number, id) in [(1, "x"), (2, "X"), (3, "x "), (4, "xx"), (5, "%"), (6, "_")] {
        assert_eq!(found_by_subject(&store, id).await, [("a:ann".to_owned(), number)], "{id:?}");
    }
    assert_eq!(found_by_subject(&store, "unknown").await, []);
}

async fn deliveries_by_subject_omits_removed_ones(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    for _ in 0..3 {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
    }
    commit_ok(&store, change().remove(one(&ann, 2))).await;
    assert_eq!(found_by_subject(&store, "ours").await, [("a:ann".to_owned(), 1), ("a:ann".to_owned(), 3)]);
}
