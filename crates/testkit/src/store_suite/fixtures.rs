//! Helpers for the cases: names, changes, and store calls that panic on any error.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryQuery, Guard, Key, Kind, Mailbox, MailboxKey, Mark, MarkKind, NewDelivery,
    Outcome, PayloadId, Put, Record, Removal, Store,
};
use countersign_wire::{
    id::{ApproverId, MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use super::start;

/// The result of [`numbers`] for an empty mailbox.
pub(super) const NO_NUMBERS: [u64; 0] = [];

/// The result of [`scan`] where no record matches.
pub(super) const NO_IDS: [&str; 0] = [];

pub(super) type Handle = Arc<dyn Store>;

pub(super) fn tenant() -> TenantId {
    tenant_named("acme")
}

pub(super) fn tenant_named(name: &str) -> TenantId {
    name.parse().expect("an id")
}

pub(super) fn approver(id: &str) -> ApproverId {
    id.parse().expect("an id")
}

/// The mailbox of an approver.
pub(super) fn inbox(id: &str) -> Mailbox {
    Mailbox::Approver(approver(id))
}

pub(super) fn key(kind: Kind, id: &str) -> Key {
    Key::new(kind, id)
}

pub(super) fn exchange(id: &str) -> Key {
    key(Kind::Exchange, id)
}

/// `seconds` after the clock of a new harness.
pub(super) fn later(seconds: u64) -> Timestamp {
    start().plus(Duration::from_secs(seconds))
}

/// One microsecond after `at`, the smallest step of a [`Timestamp`].
pub(super) fn just_after(at: Timestamp) -> Timestamp {
    at.plus(Duration::from_micros(1))
}

/// `length` bytes in which every value occurs and no two neighbouring kilobytes are the same.
pub(super) fn bytes_of(length: usize) -> Bytes {
    let mut kilobyte: [u8; 1024] = std::array::from_fn(|at| at.to_le_bytes()[0]);
    let mut bytes = Vec::with_capacity(length + kilobyte.len());
    while bytes.len() < length {
        bytes.extend_from_slice(&kilobyte);
        kilobyte.rotate_left(1);
    }
    bytes.truncate(length);
    bytes.into()
}

/// An `approval.request` without a payload that is relevant for an hour.
pub(super) fn delivery(mailbox: &Mailbox, msg_id: &str, subject: &Key) -> NewDelivery {
    NewDelivery {
        mailbox: mailbox.clone(),
        msg_id: MsgId::new(msg_id).expect("an id"),
        msg_type: MsgType::ApprovalRequest,
        subject: subject.clone(),
        payload: None,
        until: later(3600),
    }
}

pub(super) fn one(mailbox: &Mailbox, number: u64) -> Removal {
    Removal::ByNumber { mailbox: mailbox.clone(), number }
}

pub(super) fn by_subject(subject: &Key, msg_types: &[MsgType]) -> Removal {
    Removal::BySubject { subject: subject.clone(), msg_types: msg_types.to_vec() }
}

/// A query for everything in the mailbox.
pub(super) fn all_of(mailbox: &Mailbox) -> DeliveryQuery {
    DeliveryQuery {
        up_to: None,
        mailbox: mailbox.clone(),
        after: 0,
        limit: 10_000,
        unless_marked: None,
        only_relevant: false,
    }
}

/// A query for everything in the mailbox that the reader has not marked with `mark`.
pub(super) fn unmarked(mailbox: &Mailbox, reader: &str, mark: MarkKind) -> DeliveryQuery {
    DeliveryQuery { unless_marked: Some((approver(reader), mark)), ..all_of(mailbox) }
}

/// An empty change in [`tenant`], to be extended with [`ChangeBuilder`].
pub(super) fn change() -> Change {
    Change::new(tenant())
}

pub(super) trait ChangeBuilder: Sized {
    fn change(&mut self) -> &mut Change;

    fn if_absent(mut self, key: &Key) -> Self {
        self.change().guards.push(Guard::Absent(key.clone()));
        self
    }

    fn if_version(mut self, key: &Key, version: u64) -> Self {
        self.change().guards.push(Guard::Version(key.clone(), version));
        self
    }

    fn if_seen(mut self, key: &Key, version: u64) -> Self {
        self.change().guards.push(Guard::Seen(key.clone(), version));
        self
    }

    fn if_before(mut self, time: Timestamp) -> Self {
        self.change().guards.push(Guard::Before(time));
        self
    }

    fn put(mut self, key: &Key, content: impl Into<Bytes>) -> Self {
        self.change().puts.push(Put { key: key.clone(), content: content.into() });
        self
    }

    fn delete(mut self, key: &Key) -> Self {
        self.change().deletes.push(key.clone());
        self
    }

    fn add_payload(mut self, id: PayloadId, bytes: impl Into<Bytes>) -> Self {
        self.change().payloads.push((id, bytes.into()));
        self
    }

    fn drop_payload(mut self, id: PayloadId) -> Self {
        self.change().drop_payloads.push(id);
        self
    }

    fn remove(mut self, removal: Removal) -> Self {
        self.change().removals.push(removal);
        self
    }

    fn deliver(mut self, delivery: NewDelivery) -> Self {
        self.change().deliveries.push(delivery);
        self
    }

    /// Of a delivery about the exchange `ours`, as most of the suite are.
    fn mark(mut self, mailbox: &Mailbox, number: u64, reader: &str, kind: MarkKind) -> Self {
        let (subject, reader) = (exchange("ours"), approver(reader));
        self.change().marks.push(Mark { mailbox: mailbox.clone(), number, subject, reader, kind });
        self
    }

    fn due_at(mut self, at: Timestamp, key: &Key) -> Self {
        self.change().due.push((at, key.clone()));
        self
    }

    fn no_longer_due(mut self, key: &Key) -> Self {
        self.change().no_longer_due.push(key.clone());
        self
    }
}

impl ChangeBuilder for Change {
    fn change(&mut self) -> &mut Change {
        self
    }
}

/// Expects a commit; returns its time and the numbers of its deliveries.
pub(super) async fn commit_ok(store: &Handle, change: Change) -> (Timestamp, Vec<u64>) {
    match store.commit(change).await.expect("the store answers") {
        Outcome::Committed { now, numbers, .. } => (now, numbers),
        Outcome::Conflict { current, now } => panic_for_conflict(&current, now),
    }
}

/// Expects a commit; returns the versions of what it put.
pub(super) async fn puts_ok(store: &Handle, change: Change) -> Vec<u64> {
    match store.commit(change).await.expect("the store answers") {
        Outcome::Committed { versions, .. } => versions,
        Outcome::Conflict { current, now } => panic_for_conflict(&current, now),
    }
}

/// Expects a commit; returns the version of the only record that it put.
pub(super) async fn put_ok(store: &Handle, change: Change) -> u64 {
    let versions = puts_ok(store, change).await;
    assert_eq!(versions.len(), 1, "one version for one put");
    versions[0]
}

fn panic_for_conflict(current: &[Option<Record>], now: Timestamp) -> ! {
    // Without the contents, which may be megabytes.
    let records: Vec<_> = current.iter().flatten().map(|record| (&record.key, record.version)).collect();
    panic!("should have been committed at {now}, but conflicts with {records:?}")
}

/// Expects a conflict; returns the current records of the keyed guards and the store's time.
pub(super) async fn commit_conflict(store: &Handle, change: Change) -> (Vec<Option<Record>>, Timestamp) {
    match store.commit(change).await.expect("the store answers") {
        Outcome::Conflict { current, now } => (current, now),
        committed @ Outcome::Committed { .. } => panic!("should have conflicted: {committed:?}"),
    }
}

pub(super) fn record(key: &Key, version: u64, content: impl Into<Bytes>) -> Record {
    Record { key: key.clone(), version, content: content.into() }
}

pub(super) async fn load(store: &Handle, key: &Key) -> Option<Record> {
    load_in(store, &tenant(), key).await
}

pub(super) async fn content(store: &Handle, key: &Key) -> Option<Bytes> {
    load(store, key).await.map(|record| record.content)
}

pub(super) async fn load_in(store: &Handle, tenant: &TenantId, key: &Key) -> Option<Record> {
    let loaded = store.load(tenant, std::slice::from_ref(key)).await.expect("the store answers");
    assert_eq!(loaded.records.len(), 1, "one record for one key");
    loaded.records.into_iter().next().flatten()
}

pub(super) async fn payload(store: &Handle, id: PayloadId) -> Option<Bytes> {
    payload_in(store, &tenant(), id).await
}

pub(super) async fn payload_in(store: &Handle, tenant: &TenantId, id: PayloadId) -> Option<Bytes> {
    let found = store.payloads(tenant, &[id]).await.expect("the store answers");
    assert_eq!(found.len(), 1, "one answer for one id");
    found.into_iter().next().flatten()
}

pub(super) async fn read(store: &Handle, query: DeliveryQuery) -> Vec<Delivery> {
    store.deliveries(&tenant(), query).await.expect("the store answers").deliveries
}

pub(super) async fn numbers(store: &Handle, query: DeliveryQuery) -> Vec<u64> {
    read(store, query).await.into_iter().map(|delivery| delivery.number).collect()
}

pub(super) async fn head(store: &Handle, mailbox: &Mailbox) -> u64 {
    let heads = store.heads(&[MailboxKey { tenant: tenant(), mailbox: mailbox.clone() }]).await;
    heads.expect("the store answers")[0].expect("its database answers")
}

/// Claims what is due in all tenants; without the tenant ids.
pub(super) async fn claim(store: &Handle, limit: u32) -> Vec<(Timestamp, Key)> {
    let (due, _) = store.claim_due(limit).await.expect("the store answers");
    due.into_iter().map(|due| (due.at, due.key)).collect()
}

pub(super) async fn scan(store: &Handle, kind: Kind, after: Option<&str>, limit: u32) -> Vec<String> {
    let found = store.scan(&tenant(), kind, after, limit).await.expect("the store answers");
    found.into_iter().map(|record| record.key.id).collect()
}
