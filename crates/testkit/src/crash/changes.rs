//! The changes that are written: each is determined by its id.

use bytes::Bytes;
use countersign_core::store::{AuditRow, Change, Guard, Key, Kind, Mailbox, NewDelivery, PayloadId, Put};
use countersign_wire::{
    id::{MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

/// More ids than a round can use.
const IDS_PER_ROUND: u64 = 1_000_000;

/// The first id of a round. Rounds use the same database, and no id is used twice.
pub fn first_id(round: u64) -> u64 {
    round * IDS_PER_ROUND
}

pub(super) fn tenant() -> TenantId {
    "crash".parse().expect("an id")
}

pub(super) fn mailboxes() -> [Mailbox; 2] {
    [Mailbox::Shared, Mailbox::Approver("approver".parse().expect("an id"))]
}

/// A change that is determined by its id, so that stored data can be compared with what was written.
pub(super) fn change(id: u64) -> Change {
    let key = Key::new(Kind::Exchange, format_args!("{id:012}"));
    let payload = PayloadId(id.into());
    // The PostgreSQL store writes payloads over 64 KB before the commit that needs them.
    let payload_length = if id.is_multiple_of(10) { 100_000 } else { 300 };
    // The newest are due first, so that a round reads its own without those of earlier rounds.
    let due_at = Timestamp::from_unix_micros(1_600_000_000_000_000 - i64::try_from(id).expect("a small id"));
    let [shared, own] = mailboxes();
    let mut change = Change::new(tenant());
    change.guards.push(Guard::Absent(key.clone()));
    change.puts.push(Put { key: key.clone(), content: bytes_of(!id, 100) });
    change.payloads.push((payload, bytes_of(id, payload_length)));
    change.deliveries.push(NewDelivery {
        mailbox: if id.is_multiple_of(3) { shared } else { own },
        msg_id: MsgId::new(format!("msg-{id}")).expect("an id"),
        msg_type: MsgType::ApprovalRequest,
        subject: key.clone(),
        payload: Some(payload),
        until: due_at,
    });
    change.due.push((due_at, key.clone()));
    change.audit.push(AuditRow { subject: key, event: format!("{{\"id\":{id}}}").into() });
    change
}

/// Pseudo-random bytes (`SplitMix64`), different for every seed.
fn bytes_of(seed: u64, length: usize) -> Bytes {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

pub(super) fn id_of(key: &Key) -> u64 {
    key.id.parse().unwrap_or_else(|_| panic!("not a key of this test: {key:?}"))
}
