//! What a commit leaves behind once it is durable: known records, deliveries that are handed over, rings.

use bytes::Bytes;
use countersign_wire::{
    decision::DecisionOutcome,
    id::{RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde::Deserialize;

use tokio::time::Instant;

use crate::{
    cache::{NodeCache, is_kept},
    compose,
    metrics::{RequestEnd, RequestMetrics},
    model::exchange::{Exchange, State},
    notify::{HandOver, Ring},
    store::{
        Change, Delivery, Guard, Key, Kind, Mailbox, MailboxKey, NewDelivery, PayloadId, Record, Removal,
        Stored as _,
    },
};

/// What of a change is needed after its commit. The bytes are shared with it.
pub(crate) struct Written {
    tenant: TenantId,
    puts: Vec<(Key, Bytes)>,
    deletes: Vec<Key>,
    /// What the guards named, with the version that they required of it; `None` for all but [`Guard::Version`].
    guarded: Vec<(Key, Option<u64>)>,
    deliveries: Vec<NewDelivery>,
    payloads: Vec<(PayloadId, Bytes)>,
    /// Exchanges that leave the inboxes.
    left_inboxes: Vec<Key>,
    /// How many exchanges are new.
    submitted: u64,
}

/// Whether others hear of a change of such a record: they may know it, or wait for its change.
fn is_announced(kind: Kind) -> bool {
    is_kept(kind)
}

impl Written {
    pub(crate) fn of(change: &Change) -> Self {
        let guarded = change.guards.iter().filter_map(|guard| match guard {
            Guard::Version(key, version) => Some((key.clone(), Some(*version))),
            Guard::Absent(key) | Guard::Seen(key, _) => Some((key.clone(), None)),
            Guard::Before(_) | Guard::NotBefore(_) => None,
        });
        // Payloads are needed for messages only.
        let payloads = if change.deliveries.is_empty() { Vec::new() } else { change.payloads.clone() };
        let left = change.removals.iter().filter_map(|removal| match removal {
            Removal::BySubject { subject, msg_types } => {
                msg_types.contains(&MsgType::ApprovalRequest).then(|| subject.clone())
            }
            Removal::ByNumber { .. } | Removal::ByMessage { .. } => None,
        });
        let is_new = |key: &Key| change.guards.contains(&Guard::Absent(key.clone()));
        let submitted = change.puts.iter().filter(|put| put.key.kind == Kind::Exchange && is_new(&put.key));
        Self {
            left_inboxes: left.collect(),
            submitted: submitted.count() as u64,
            tenant: change.tenant.clone(),
            guarded: guarded.collect(),
            puts: change.puts.iter().map(|put| (put.key.clone(), put.content.clone())).collect(),
            deletes: change.deletes.clone(),
            deliveries: change.deliveries.clone(),
            payloads,
        }
    }

    /// A guard did not hold: something that was known is old.
    pub(crate) fn forget_guarded(&self, cache: &NodeCache) {
        for (key, _) in &self.guarded {
            cache.known.forget(&self.tenant, key);
        }
    }
}

/// A change that is durable.
pub(crate) struct Committed {
    pub(crate) written: Written,
    /// The store's time of the commit.
    pub(crate) now: Timestamp,
    /// Of its deliveries, in their order.
    pub(crate) numbers: Vec<u64>,
    /// Of the records that it put, in their order.
    pub(crate) versions: Vec<u64>,
    /// The exchanges that have ended with it.
    ended: Vec<(Key, Exchange)>,
}

/// What of a decision is counted.
#[derive(Deserialize)]
struct Verdict {
    decision: DecisionOutcome,
}

impl Committed {
    pub(crate) fn new(written: Written, now: Timestamp, numbers: Vec<u64>, versions: Vec<u64>) -> Self {
        let mut committed = Self { written, now, numbers, versions, ended: Vec::new() };
        let ended = committed.written.left_inboxes.iter().filter_map(|key| {
            let (_, content, version) = committed.records().find(|(written, ..)| *written == key)?;
            let record = Record { key: key.clone(), version, content: content.clone() };
            Some((key.clone(), Exchange::read(Some(&record)).ok()??.value))
        });
        committed.ended = ended.collect();
        committed
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.written.tenant
    }

    fn records(&self) -> impl Iterator<Item = (&Key, &Bytes, u64)> {
        let versions = self.versions.iter().copied();
        self.written.puts.iter().zip(versions).map(|((key, content), version)| (key, content, version))
    }

    /// The versions that are durable now: those that were written, and those that were only guarded.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (&Key, u64)> {
        let is_written = |key: &Key| self.written.puts.iter().any(|(written, _)| written == key);
        let guarded = self.written.guarded.iter().filter(move |(key, _)| !is_written(key));
        let guarded = guarded.filter_map(|(key, version)| Some((key, (*version)?)));
        self.records().map(|(key, _, version)| (key, version)).chain(guarded)
    }

    /// Keeps what was written in memory.
    pub(crate) fn remember(&self, cache: &NodeCache) {
        for key in self.written.deletes.iter().filter(|key| is_kept(key.kind)) {
            cache.known.forget(self.tenant(), key);
        }
        for (key, content, version) in self.records().filter(|(key, ..)| is_kept(key.kind)) {
            let record = Record { key: key.clone(), version, content: content.clone() };
            cache.known.insert(self.tenant(), key, Some(record), Instant::now());
        }
    }

    /// What rings, with the number of the newest delivery or the version of the record.
    pub(crate) fn rings(&self) -> Vec<(Ring, u64)> {
        let mailboxes = self
            .deliveries()
            .map(|(delivery, number)| (Ring::Mailbox(self.mailbox(&delivery.mailbox)), number));
        let record = |key: &Key| Ring::Record(self.tenant().clone(), key.clone());
        let written = self.records().filter(|(key, ..)| is_announced(key.kind));
        let written = written.map(|(key, _, version)| (record(key), version));
        let deleted = self.written.deletes.iter().filter(|key| is_announced(key.kind));
        let deleted = deleted.map(|key| (record(key), 0));
        mailboxes.chain(written).chain(deleted).chain(self.endings()).collect()
    }

    /// The requests that have left mailboxes. That one was withdrawn is a message of its own.
    fn endings(&self) -> Vec<(Ring, u64)> {
        let mut endings = Vec::new();
        for (key, exchange) in &self.ended {
            if let Ok(request_id) = key.id.parse::<RequestId>()
                && !matches!(exchange.state, State::Withdrawn { .. })
            {
                let of = |mailbox: &Mailbox| Ring::Ended(self.mailbox(mailbox), request_id.clone());
                endings.extend(exchange.mailboxes.iter().map(|mailbox| (of(mailbox), 0)));
            }
        }
        endings
    }

    /// Counts what has come and what has ended.
    pub(crate) fn count(&self, metrics: &RequestMetrics) {
        metrics.submitted.inc_by(self.written.submitted);
        for (_, exchange) in &self.ended {
            let end = match &exchange.state {
                State::Decided(decided) | State::Delivered { decided, .. } => {
                    metrics.decision_seconds.observe(decided.at.since(exchange.created_at));
                    match decided.decision.and_then(|id| self.verdict(id)) {
                        Some(DecisionOutcome::Approve) => RequestEnd::Approved,
                        _ => RequestEnd::Rejected,
                    }
                }
                State::Expired { .. } => RequestEnd::Expired,
                State::Withdrawn { .. } => RequestEnd::Withdrawn,
                State::Cancelled { .. } => RequestEnd::Cancelled,
                State::Pending => continue,
            };
            metrics.ended.at(end).inc();
        }
    }

    fn verdict(&self, decision: PayloadId) -> Option<DecisionOutcome> {
        let (_, bytes) = self.written.payloads.iter().find(|(id, _)| *id == decision)?;
        serde_json::from_slice(bytes).ok().map(|Verdict { decision }| decision)
    }

    /// The new deliveries with their numbers.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = (&NewDelivery, u64)> {
        self.written.deliveries.iter().zip(self.numbers.iter().copied())
    }

    pub(crate) fn mailbox(&self, mailbox: &Mailbox) -> MailboxKey {
        MailboxKey { tenant: self.tenant().clone(), mailbox: mailbox.clone() }
    }

    /// A delivery with its message. `None` where the commit does not have all of it: then it is read.
    pub(crate) fn hand_over(&self, new: &NewDelivery, number: u64) -> Option<HandOver> {
        let (key, content) = self.written.puts.iter().find(|(key, _)| *key == new.subject)?;
        let record = Record { key: key.clone(), version: 0, content: content.clone() };
        let delivery = Delivery {
            number,
            msg_id: new.msg_id.clone(),
            msg_type: new.msg_type.clone(),
            subject: new.subject.clone(),
            payload: new.payload,
            at: self.now,
            until: new.until,
        };
        let parts = compose::parts(&delivery, &record).ok().flatten()?;
        let payload = |id: PayloadId| {
            self.written.payloads.iter().find(|(of, _)| *of == id).map(|(_, bytes)| bytes.clone())
        };
        let body = match new.payload {
            Some(id) => payload(id)?,
            None => parts.body.clone(),
        };
        let trace = match parts.trace {
            Some(id) => Some(payload(id)?),
            None => None,
        };
        let message = parts.into_message(&delivery, body, trace).ok()?;
        Some(HandOver { mailbox: self.mailbox(&new.mailbox), delivery, message })
    }
}
