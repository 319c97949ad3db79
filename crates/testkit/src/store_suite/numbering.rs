//! Deliveries and their numbers: without gaps, in the order of commits, separately for each mailbox.

use countersign_core::store::{Delivery, Mailbox, MailboxKey, NewDelivery, PayloadId};
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    a_mailbox_counts_from_one,
    a_delivery_comes_back_complete,
    a_delivery_has_the_time_of_its_commit,
    every_message_type_comes_back,
    every_point_in_time_comes_back,
    deliveries_of_one_change_keep_their_order,
    numbers_are_returned_in_the_order_of_the_deliveries,
    each_mailbox_counts_by_itself,
    kinds_of_mailboxes_of_the_same_name_are_distinct,
    one_message_may_be_in_several_mailboxes,
    one_message_may_be_in_a_mailbox_twice,
    heads_come_in_the_order_of_their_mailboxes,
    heads_of_no_mailboxes_are_none,
    a_head_stays_when_its_delivery_is_removed,
    numbers_are_never_used_again,
];

fn five_of_one_name() -> [Mailbox; 5] {
    [
        inbox("x"),
        Mailbox::Enforcer("x".parse().unwrap()),
        Mailbox::Shared,
        Mailbox::ExpiredOfApprover(approver("x")),
        Mailbox::ExpiredShared,
    ]
}

async fn a_mailbox_counts_from_one(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    assert_eq!(head(&store, &ann).await, 0);
    assert_eq!(read(&store, all_of(&ann)).await, []);
    for number in 1..=10 {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
        assert_eq!(assigned, [number]);
        assert_eq!(head(&store, &ann).await, number);
    }
    assert_eq!(numbers(&store, all_of(&ann)).await, (1..=10).collect::<Vec<_>>());
}

async fn a_delivery_comes_back_complete(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann, body) =
        (harness.store(), exchange("ours"), inbox("ann"), PayloadId(u128::MAX - 1));
    let with_body = NewDelivery { payload: Some(body), ..delivery(&ann, "with body", &ours) };
    let without = NewDelivery { until: later(7), ..delivery(&ann, "without", &ours) };
    commit_ok(&store, change().add_payload(body, "body").deliver(with_body).deliver(without)).await;
    let first = Delivery {
        number: 1,
        msg_id: "with body".parse().unwrap(),
        msg_type: MsgType::ApprovalRequest,
        subject: ours.clone(),
        payload: Some(body),
        at: start(),
        until: later(3600),
    };
    let second = Delivery {
        number: 2,
        msg_id: "without".parse().unwrap(),
        payload: None,
        until: later(7),
        ..first.clone()
    };
    assert_eq!(read(&store, all_of(&ann)).await, [first, second]);
}

async fn a_delivery_has_the_time_of_its_commit(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let mut times = Vec::new();
    for at in [start(), just_after(start()), later(86_400)] {
        harness.set_now(at).await;
        let (now, _) = commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
        assert_eq!(now, at);
        times.push(at);
    }
    let found: Vec<_> = read(&store, all_of(&ann)).await.into_iter().map(|delivery| delivery.at).collect();
    assert_eq!(found, times);
}

async fn every_message_type_comes_back(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let unknown = [MsgType::Other("x.unknown".into()), MsgType::Other("It's \"new\" 😀".into())];
    let types: Vec<_> = MsgType::KNOWN.iter().cloned().chain(unknown).collect();
    let written = types.iter().fold(change(), |change, msg_type| {
        change.deliver(NewDelivery { msg_type: msg_type.clone(), ..delivery(&ann, "m", &ours) })
    });
    commit_ok(&store, written).await;
    let found: Vec<_> = read(&store, all_of(&ann)).await.into_iter().map(|found| found.msg_type).collect();
    assert_eq!(found, types);
}

async fn every_point_in_time_comes_back(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    let before_1970 = Timestamp::from_unix_micros(-1);
    let times = [Timestamp::MIN, before_1970, just_after(start()), Timestamp::MAX];
    let written = times.iter().fold(change(), |change, until| {
        change.deliver(NewDelivery { until: *until, ..delivery(&ann, "m", &ours) })
    });
    commit_ok(&store, written).await;
    let found: Vec<_> = read(&store, all_of(&ann)).await.into_iter().map(|found| found.until).collect();
    assert_eq!(found, times);
}

async fn deliveries_of_one_change_keep_their_order(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    // Neither alphabetical nor reverse order.
    let messages = ["m", "z", "a", "q", "b", "zz", "0"];
    let deliver = || messages.iter().fold(change(), |all, msg_id| all.deliver(delivery(&ann, msg_id, &ours)));
    assert_eq!(commit_ok(&store, deliver()).await.1, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(commit_ok(&store, deliver()).await.1, [8, 9, 10, 11, 12, 13, 14]);
    let found: Vec<_> =
        read(&store, all_of(&ann)).await.into_iter().map(|found| found.msg_id.to_string()).collect();
    assert_eq!(found, [messages, messages].concat());
}

async fn numbers_are_returned_in_the_order_of_the_deliveries(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann, bob) = (harness.store(), exchange("ours"), inbox("ann"), inbox("bob"));
    commit_ok(&store, change().deliver(delivery(&bob, "before", &ours))).await;
    let mixed = [&bob, &ann, &Mailbox::Shared, &bob, &ann, &bob];
    let written = mixed.iter().fold(change(), |all, mailbox| all.deliver(delivery(mailbox, "m", &ours)));
    assert_eq!(commit_ok(&store, written).await.1, [2, 1, 1, 3, 2, 4]);
}

async fn each_mailbox_counts_by_itself(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for (owner, expected) in [("ann", 1), ("bob", 1), ("ann", 2), ("ann", 3), ("bob", 2), ("cyd", 1)] {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&inbox(owner), "m", &ours))).await;
        assert_eq!(assigned, [expected], "{owner}");
    }
}

async fn kinds_of_mailboxes_of_the_same_name_are_distinct(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for mailbox in five_of_one_name() {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&mailbox, "m", &ours))).await;
        assert_eq!(assigned, [1], "{mailbox}");
    }
    // Owners whose ids are prefixes of other mailbox names.
    for owner in ["s", "xs", "a:x", "e:x", "xa:x", ":"] {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&inbox(owner), "m", &ours))).await;
        assert_eq!(assigned, [1], "{owner}");
    }
}

async fn one_message_may_be_in_several_mailboxes(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let all = five_of_one_name();
    let written = all.iter().fold(change(), |all, mailbox| all.deliver(delivery(mailbox, "same", &ours)));
    commit_ok(&store, written).await;
    for mailbox in all {
        assert_eq!(read(&store, all_of(&mailbox)).await[0].msg_id.as_str(), "same");
    }
}

async fn one_message_may_be_in_a_mailbox_twice(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    for number in [1, 2] {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&ann, "same", &ours))).await;
        assert_eq!(assigned, [number]);
    }
}

async fn heads_come_in_the_order_of_their_mailboxes(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for owner in ["bob", "ann", "bob"] {
        commit_ok(&store, change().deliver(delivery(&inbox(owner), "m", &ours))).await;
    }
    let query =
        ["ann", "cyd", "bob", "ann"].map(|owner| MailboxKey { tenant: tenant(), mailbox: inbox(owner) });
    assert_eq!(store.heads(&query).await, Ok([1, 0, 2, 1].map(Some).to_vec()));
}

async fn heads_of_no_mailboxes_are_none(harness: Box<dyn StoreHarness>) {
    assert_eq!(harness.store().heads(&[]).await, Ok(vec![]));
}

async fn a_head_stays_when_its_delivery_is_removed(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    for _ in 0..3 {
        commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
    }
    commit_ok(&store, change().remove(one(&ann, 3))).await;
    assert_eq!(head(&store, &ann).await, 3);
    commit_ok(&store, change().remove(by_subject(&ours, &[]))).await;
    assert_eq!(head(&store, &ann).await, 3);
}

async fn numbers_are_never_used_again(harness: Box<dyn StoreHarness>) {
    let (store, ours, ann) = (harness.store(), exchange("ours"), inbox("ann"));
    for number in 1..=5 {
        let (_, assigned) = commit_ok(&store, change().deliver(delivery(&ann, "m", &ours))).await;
        assert_eq!(assigned, [number]);
        commit_ok(&store, change().remove(one(&ann, number))).await;
    }
    let both = change().remove(by_subject(&ours, &[])).deliver(delivery(&ann, "m", &ours));
    assert_eq!(commit_ok(&store, both).await.1, [6]);
}
