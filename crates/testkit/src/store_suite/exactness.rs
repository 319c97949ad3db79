//! Bytes come back as they went in: contents, and every kind of name.

use bytes::Bytes;
use countersign_core::store::{Change, DeliveryQuery, Kind, Mailbox, MarkKind, PayloadId};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    contents_of_every_byte_come_back,
    contents_of_every_size_come_back,
    an_empty_content_is_a_record,
    payloads_of_every_byte_come_back,
    names_of_records_come_back,
    names_that_look_alike_are_distinct,
    names_of_mailboxes_come_back,
    names_of_messages_and_subjects_come_back,
    names_of_readers_are_exact,
    names_in_what_is_due_come_back,
    names_longer_than_an_id_are_stored,
];

/// Names that a careless store would normalise, mistake for syntax, or truncate.
fn odd_names() -> Vec<String> {
    let plain = [
        " ",
        "a b",
        " a",
        "a ",
        "a/b",
        "/",
        "..",
        "😀👩‍👩‍👧",
        "'",
        "\"",
        "'; DROP TABLE records; --",
        "%",
        "%25",
        "_",
        "?",
        "$1",
        ":a",
        "@a",
        "\\",
        "\\x41",
        "\\0",
        "{}",
        "[1]",
        "null",
        "NULL",
        "0",
        "007",
        "1e3",
        "a:b",
        "é",
        "e\u{301}",
        "\u{a0}",
        "\u{feff}a",
        "ﬃ",
        "İ",
        "ß",
        "\u{10ffff}",
    ];
    let long = ["x".repeat(256), "é".repeat(128), "😀".repeat(64)];
    plain.into_iter().map(str::to_owned).chain(long).collect()
}

async fn contents_of_every_byte_come_back(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let all: Bytes = (0..=255).collect();
    commit_ok(&store, change().put(&ours, all.clone())).await;
    assert_eq!(content(&store, &ours).await, Some(all));
    for byte in 0..=255u8 {
        commit_ok(&store, change().put(&exchange(&byte.to_string()), vec![byte])).await;
    }
    for byte in 0..=255u8 {
        assert_eq!(load(&store, &exchange(&byte.to_string())).await.unwrap().content, vec![byte]);
    }
}

async fn contents_of_every_size_come_back(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    for size in [0, 1, 2000, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 2 << 20, 5 << 20] {
        commit_ok(&store, change().put(&ours, bytes_of(size))).await;
        assert!(load(&store, &ours).await.unwrap().content == bytes_of(size), "{size} bytes");
        let (current, _) = commit_conflict(&store, change().if_absent(&ours)).await;
        assert!(
            current[0].as_ref().unwrap().content == bytes_of(size),
            "{size} bytes, returned by a conflict"
        );
    }
}

async fn an_empty_content_is_a_record(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    commit_ok(&store, change().put(&ours, "").add_payload(PayloadId(1), "")).await;
    assert_eq!(content(&store, &ours).await, Some("".into()));
    commit_conflict(&store, change().if_absent(&ours)).await;
    assert_eq!(payload(&store, PayloadId(1)).await, Some(Bytes::new()));
}

async fn payloads_of_every_byte_come_back(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let all: Bytes = (0..=255).collect();
    let text = "{\"a\":  1.0,\r\n\t\"é\": \"\\u00e9 \0\"}";
    commit_ok(
        &store,
        change().put(&ours, "x").add_payload(PayloadId(1), all.clone()).add_payload(PayloadId(2), text),
    )
    .await;
    assert_eq!(payload(&store, PayloadId(1)).await, Some(all));
    assert_eq!(payload(&store, PayloadId(2)).await, Some(text.into()));
}

async fn names_of_records_come_back(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for id in odd_names() {
        let ours = exchange(&id);
        commit_ok(&store, change().if_absent(&ours).put(&ours, id.clone())).await;
    }
    for id in odd_names() {
        let ours = exchange(&id);
        assert_eq!(content(&store, &ours).await, Some(id.clone().into()), "{id:?}");
    }
    let mut sorted = odd_names();
    sorted.sort();
    assert_eq!(scan(&store, Kind::Exchange, None, 1000).await, sorted);
}

async fn names_that_look_alike_are_distinct(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    let alike = ["a", "A", "a ", " a", "á", "a\u{301}", "ａ", "а", "ss", "ß", "SS", "i", "I", "İ", "ı"];
    for id in alike {
        commit_ok(&store, change().if_absent(&exchange(id)).put(&exchange(id), id)).await;
    }
    for id in alike {
        assert_eq!(content(&store, &exchange(id)).await, Some(id.into()), "{id:?}");
    }
}

async fn names_of_mailboxes_come_back(harness: Box<dyn StoreHarness>) {
    let (store, ours) = (harness.store(), exchange("ours"));
    let mut mailboxes = vec![Mailbox::Shared, Mailbox::ExpiredShared];
    for id in odd_names() {
        mailboxes.push(inbox(&id));
        mailboxes.push(Mailbox::Enforcer(id.parse().unwrap()));
        mailboxes.push(Mailbox::ExpiredOfApprover(approver(&id)));
    }
    let all = mailboxes.iter().fold(change(), |all, mailbox| all.deliver(delivery(mailbox, "m", &ours)));
    let (_, assigned) = commit_ok(&store, all).await;
    assert_eq!(assigned, vec![1; mailboxes.len()]);
    let found = store.deliveries_by_subject(&tenant(), "ours").await.unwrap();
    let mut found: Vec<_> = found.into_iter().map(|(mailbox, _)| mailbox).collect();
    found.sort();
    mailboxes.sort();
    assert_eq!(found, mailboxes);
}

async fn names_of_messages_and_subjects_come_back(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let all =
        odd_names().into_iter().fold(change(), |all, id| all.deliver(delivery(&ann, &id, &exchange(&id))));
    commit_ok(&store, all).await;
    let found = read(&store, all_of(&ann)).await;
    assert!(found.iter().map(|found| found.msg_id.to_string()).eq(odd_names()));
    assert!(found.iter().map(|found| found.subject.clone()).eq(odd_names().iter().map(|id| exchange(id))));
}

async fn names_of_readers_are_exact(harness: Box<dyn StoreHarness>) {
    let (store, ours, shared) = (harness.store(), exchange("ours"), Mailbox::Shared);
    let readers = odd_names();
    let all = readers.iter().fold(change(), |all, _| all.deliver(delivery(&shared, "m", &ours)));
    commit_ok(&store, all).await;
    // Each reader hides a different delivery.
    for (number, reader) in (1..).zip(&readers) {
        commit_ok(&store, change().mark(&shared, number, reader, MarkKind::Hidden)).await;
    }
    for (number, reader) in (1..).zip(&readers) {
        let query = DeliveryQuery { limit: 1000, ..unmarked(&shared, reader, MarkKind::Hidden) };
        let shown = numbers(&store, query).await;
        assert_eq!(shown.len(), readers.len() - 1, "{reader:?}");
        assert!(!shown.contains(&number), "{reader:?}");
    }
}

async fn names_in_what_is_due_come_back(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for name in odd_names() {
        commit_ok(&store, Change::new(tenant_named(&name)).due_at(start(), &exchange(&name))).await;
    }
    let (found, _) = store.claim_due(1000).await.unwrap();
    let mut found: Vec<_> = found.into_iter().map(|due| (due.tenant.to_string(), due.key.id)).collect();
    found.sort();
    let mut expected: Vec<_> = odd_names().into_iter().map(|name| (name.clone(), name)).collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// An `Idempotency-Key` is named by principal, path and key; a session's event by session and digest.
async fn names_longer_than_an_id_are_stored(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    // Digits that do not repeat, so that a store that compresses its keys still has a long one.
    let long: String = (1000_u64..1200).map(|at| (at * at).to_string()).collect();
    assert!(long.len() > 1024);
    for (at, last) in ["x", "y"].into_iter().enumerate() {
        let ours = key(Kind::Idempotency, &format!("{long}{last}"));
        commit_ok(&store, change().if_absent(&ours).put(&ours, last).due_at(start(), &ours)).await;
        assert_eq!(content(&store, &ours).await, Some(last.into()));
        assert_eq!(claim(&store, 10).await, [(start(), ours)], "{at}");
    }
}
