//! What a commit leaves behind once it is durable: known records, deliveries that are handed over, rings.

use bytes::Bytes;
use countersign_wire::{
    id::{RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use tokio::time::Instant;

use crate::{
    cache::{NodeCache, is_kept},
    compose,
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
        Self {
            left_inboxes: left.collect(),
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
}

impl Committed {
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
        for key in &self.written.left_inboxes {
            let written = self.records().find(|(written, ..)| *written == key);
            let record = written.map(|(key, content, version)| Record {
                key: key.clone(),
                version,
                content: content.clone(),
            });
            if let (Ok(Some(exchange)), Ok(request_id)) =
                (Exchange::read(record.as_ref()), key.id.parse::<RequestId>())
                && !matches!(exchange.value.state, State::Withdrawn { .. })
            {
                let of = |mailbox: &Mailbox| Ring::Ended(self.mailbox(mailbox), request_id.clone());
                endings.extend(exchange.value.mailboxes.iter().map(|mailbox| (of(mailbox), 0)));
            }
        }
        endings
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
