//! What travels has one form, and nothing else is taken for it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use countersign_core::{
    model::message::{Message, Party},
    notify::{HandOver, Ring},
    store::{Delivery, Key, Kind, Mailbox, MailboxKey, PayloadId},
};
use countersign_doorbell_nats::format::{
    Answer, MAX_ANSWERS, MAX_BODY, MAX_HAND_OVERS, MAX_RINGS, MAX_TEXT, NodeMessage, RingBatch,
};
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
use proptest::{collection::vec, prelude::*, strategy::ValueTree as _};

fn any_mailbox() -> impl Strategy<Value = MailboxKey> {
    let id = "[a-zä-ü]{1,20}";
    let mailbox = prop_oneof![
        Just(Mailbox::Shared),
        Just(Mailbox::SharedNews),
        id.prop_map(|id| Mailbox::Enforcer(id.parse().unwrap())),
        id.prop_map(|id| Mailbox::Approver(id.parse().unwrap())),
        id.prop_map(|id| Mailbox::News(id.parse().unwrap())),
    ];
    (id, mailbox).prop_map(|(tenant, mailbox)| MailboxKey { tenant: tenant.parse().unwrap(), mailbox })
}

fn any_key() -> impl Strategy<Value = Key> {
    (prop::sample::select(Kind::ALL), "[ -~]{1,300}").prop_map(|(kind, id)| Key { kind, id })
}

fn any_ring() -> impl Strategy<Value = (Ring, u64)> {
    let record =
        ("[a-z]{1,9}", any_key()).prop_map(|(tenant, key)| Ring::Record(tenant.parse().unwrap(), key));
    let ended =
        (any_mailbox(), "[a-z]{1,256}").prop_map(|(mailbox, id)| Ring::Ended(mailbox, id.parse().unwrap()));
    (prop_oneof![any_mailbox().prop_map(Ring::Mailbox), record, ended], any::<u64>())
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_unix_micros)
}

fn any_message() -> impl Strategy<Value = Message> {
    let party = ("[a-z]{1,9}", any::<bool>()).prop_map(|(id, is_enforcer)| match is_enforcer {
        true => Party::Enforcer(id.parse().unwrap()),
        false => Party::Approver(id.parse().unwrap()),
    });
    let bytes = || vec(any::<u8>(), 0..500).prop_map(Bytes::from);
    let kinds = prop::sample::select(MsgType::KNOWN);
    (kinds, any_time(), prop::option::of(any_time()), party, bytes(), prop::option::of(bytes())).prop_map(
        |(msg_type, created_at, expires_at, from, body, trace)| Message {
            msg_id: "message".parse().unwrap(),
            msg_type,
            request_id: "request".parse().unwrap(),
            created_at,
            expires_at,
            from,
            body,
            trace,
        },
    )
}

fn any_hand_over() -> impl Strategy<Value = Arc<HandOver>> {
    let payload = prop::option::of(any::<u128>().prop_map(PayloadId));
    (any_mailbox(), any::<u64>(), any_key(), payload, any_time(), any_time(), any_message()).prop_map(
        |(mailbox, number, subject, payload, at, until, message)| {
            let delivery = Delivery {
                number,
                msg_id: message.msg_id.clone(),
                msg_type: message.msg_type.clone(),
                subject,
                payload,
                at,
                until,
            };
            Arc::new(HandOver { mailbox, delivery, message })
        },
    )
}

fn any_batch() -> impl Strategy<Value = RingBatch> {
    let answer = any::<([u8; 16], [u8; 16])>().prop_map(|(to, challenge)| Answer { to, challenge });
    (any::<u64>(), vec(answer, 0..4), any::<u64>(), vec(any_ring(), 0..20))
        .prop_map(|(number, answers, timeline, rings)| RingBatch { number, answers, timeline, rings })
}

fn any_node_message() -> impl Strategy<Value = NodeMessage> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(NodeMessage::Challenge),
        (any::<u64>(), vec(any_hand_over(), 0..4))
            .prop_map(|(timeline, hand_overs)| NodeMessage::HandOvers { timeline, hand_overs }),
    ]
}

proptest! {
    #[test]
    fn what_is_sent_arrives(batch in any_batch(), message in any_node_message()) {
        prop_assert_eq!(RingBatch::decode(&batch.encode().unwrap()), Ok(batch));
        prop_assert_eq!(NodeMessage::decode(&message.encode().unwrap()), Ok(message));
    }

    #[test]
    fn what_is_cut_or_longer_is_malformed(batch in any_batch(), message in any_node_message(), at in any::<prop::sample::Index>()) {
        let (batch, message) = (batch.encode().unwrap(), message.encode().unwrap());
        prop_assert!(RingBatch::decode(&batch[..at.index(batch.len())]).is_err());
        prop_assert!(NodeMessage::decode(&message[..at.index(message.len())]).is_err());
        prop_assert!(RingBatch::decode(&[&batch[..], b"\0"].concat()).is_err());
        prop_assert!(NodeMessage::decode(&[&message[..], b"\0"].concat()).is_err());
    }

    #[test]
    fn what_is_changed_is_another_message_or_none(batch in any_batch(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = batch.encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        if let Ok(other) = RingBatch::decode(&bytes) {
            prop_assert_ne!(&other, &batch);
            prop_assert_eq!(other.encode().unwrap(), bytes);
        }
    }
}

#[test]
fn counts_and_sizes_are_limited_on_both_sides() {
    let ring =
        |length: usize| (Ring::Record("t".parse().unwrap(), Key::new(Kind::Policy, "x".repeat(length))), 1);
    let batch =
        |count: usize, length: usize| RingBatch { rings: vec![ring(length); count], ..RingBatch::default() };
    assert!(batch(MAX_RINGS, 1).encode().is_some() && batch(MAX_RINGS + 1, 1).encode().is_none());
    assert!(batch(1, MAX_TEXT).encode().is_some() && batch(1, MAX_TEXT + 1).encode().is_none());
    let answers = vec![Answer { to: [0; 16], challenge: [0; 16] }; MAX_ANSWERS + 1];
    assert!(RingBatch { answers, ..RingBatch::default() }.encode().is_none());

    // A message that another program wrote: one ring more than is allowed.
    let mut bytes = batch(MAX_RINGS, 1).encode().unwrap();
    let one = batch(1, 1).encode().unwrap();
    assert_eq!(bytes[3..5], [0x80, 0x40], "the count");
    bytes[3] += 1;
    bytes.extend(&one[4..]);
    RingBatch::decode(&bytes).unwrap_err();
}

#[test]
fn a_large_body_is_not_handed_over() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let some = any_hand_over().new_tree(&mut runner).unwrap().current();
    let with = |size: usize, count: usize| {
        let message = Message { body: Bytes::from(vec![0; size]), ..some.message.clone() };
        let hand_over = Arc::new(HandOver { message, ..HandOver::clone(&some) });
        NodeMessage::HandOvers { timeline: 0, hand_overs: vec![hand_over; count] }
    };
    let fits = with(MAX_BODY, 1);
    assert_eq!(NodeMessage::decode(&fits.encode().unwrap()), Ok(fits));
    assert!(with(MAX_BODY + 1, 1).encode().is_none());
    assert!(with(0, MAX_HAND_OVERS).encode().is_some() && with(0, MAX_HAND_OVERS + 1).encode().is_none());
}

/// The seeds of the fuzz target `doorbell`: the first byte says which message the rest is.
#[test]
fn the_seeds_of_the_fuzz_target_are_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/doorbell");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        let (which, message) = bytes.split_first().unwrap();
        let is_message = if which % 2 == 0 {
            RingBatch::decode(message).is_ok()
        } else {
            NodeMessage::decode(message).is_ok()
        };
        assert!(is_message, "{}", file.display());
        count += 1;
    }
    assert!(count >= 6, "{count} seeds");
}
