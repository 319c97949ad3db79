//! Checks the database after a crash: every acknowledged change is there, and every change completely or not at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::RangeInclusive,
};

use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryQuery, Kind, Mailbox, MailboxKey, NewDelivery, PayloadId, Put, Record, Store,
};
use countersign_wire::timestamp::Timestamp;

use super::{
    changes::{change, first_id, id_of, mailboxes, tenant},
    report::{Acked, CommitReport},
    writers::WRITERS,
};

const PAGE: u32 = 1_000;

/// What a test knows about its database, over all rounds.
#[derive(Debug, Default)]
pub struct CrashLog {
    acked: Vec<Acked>,
    heads: [u64; 2],
    rounds: u64,
    found: u64,
}

impl CrashLog {
    /// Checks all changes of the next round, acknowledged or not.
    pub async fn verify_round(&mut self, store: &dyn Store, reports: &[CommitReport]) {
        let first = first_id(self.rounds);
        // Each writer may have had one more commit in flight than it could report.
        let last = reports.iter().map(CommitReport::id).max().unwrap_or(first) + WRITERS;
        let stored = StoredChanges::read(store, first, &self.heads).await;
        self.found += stored.check(store, reports, Some(first..=last)).await;
        self.heads = stored.heads;
        self.rounds += 1;
        self.acked.extend(reports.iter().filter_map(|report| match report {
            CommitReport::Acked(acked) => Some(acked),
            _ => None,
        }));
    }

    /// Sweeps orphans, then checks the changes of all rounds again.
    pub async fn verify_all(&self, store: &dyn Store) {
        let now = store.now().await.expect("the time");
        store.sweep_orphans(now, u32::MAX).await.expect("a sweep");
        let found = verify(store, &self.acked).await;
        assert_eq!(found, self.found, "changes that were complete in their rounds");
    }

    /// How many changes are in the database, acknowledged or not.
    pub fn found(&self) -> u64 {
        self.found
    }
}

impl fmt::Display for CrashLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acked, rounds, found, .. } = self;
        write!(f, "{rounds} rounds, {} changes acknowledged, {found} found complete", acked.len())
    }
}

/// Panics if a change of `acked` is missing or differs from what was written, if any change is incomplete, or if
/// numbers have gaps. Returns how many changes there are.
pub async fn verify(store: &dyn Store, acked: &[Acked]) -> u64 {
    let reports: Vec<CommitReport> = acked.iter().copied().map(CommitReport::Acked).collect();
    StoredChanges::read(store, 0, &[0, 0]).await.check(store, &reports, None).await
}

/// The store's contents from one id on.
struct StoredChanges {
    first: u64,
    heads: [u64; 2],
    records: BTreeMap<u64, Record>,
    deliveries: BTreeMap<u64, Vec<(Mailbox, Delivery)>>,
}

impl StoredChanges {
    /// `heads` are the last numbers before the first change to read.
    async fn read(store: &dyn Store, first: u64, heads: &[u64; 2]) -> Self {
        let mut stored = Self { first, heads: *heads, records: BTreeMap::new(), deliveries: BTreeMap::new() };
        stored.read_records(store).await;
        for (at, mailbox) in mailboxes().into_iter().enumerate() {
            stored.read_mailbox(store, at, &mailbox).await;
        }
        stored
    }

    async fn read_records(&mut self, store: &dyn Store) {
        let mut after = self.first.checked_sub(1).map(|id| format!("{id:012}"));
        loop {
            let page = store.scan(&tenant(), Kind::Exchange, after.as_deref(), PAGE).await.expect("records");
            let Some(last) = page.last() else { break };
            after = Some(last.key.id.clone());
            self.records.extend(page.into_iter().map(|record| (id_of(&record.key), record)));
        }
    }

    /// Checks that the numbers continue from the head without a gap, up to the new head.
    async fn read_mailbox(&mut self, store: &dyn Store, at: usize, mailbox: &Mailbox) {
        loop {
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after: self.heads[at],
                up_to: None,
                limit: PAGE,
                unless_marked: None,
                only_relevant: false,
            };
            let page = store.deliveries(&tenant(), query).await.expect("deliveries").deliveries;
            if page.is_empty() {
                break;
            }
            for delivery in page {
                assert_eq!(delivery.number, self.heads[at] + 1, "a gap in the numbers of {mailbox}");
                self.heads[at] = delivery.number;
                let of_id = self.deliveries.entry(id_of(&delivery.subject)).or_default();
                of_id.push((mailbox.clone(), delivery));
            }
        }
        let key = MailboxKey { tenant: tenant(), mailbox: mailbox.clone() };
        let heads = store.heads(&[key]).await.expect("a head");
        assert_eq!(heads, [Some(self.heads[at])], "the head of {mailbox} is its highest number");
    }

    /// Counts the changes that are there; panics if one is incomplete or contradicts its report.
    async fn check(
        &self,
        store: &dyn Store,
        reports: &[CommitReport],
        tried: Option<RangeInclusive<u64>>,
    ) -> u64 {
        let reports: BTreeMap<u64, &CommitReport> =
            reports.iter().map(|report| (report.id(), report)).collect();
        let mut ids: BTreeSet<u64> = tried.into_iter().flatten().collect();
        ids.extend(reports.keys());
        ids.extend(self.records.keys());
        ids.extend(self.deliveries.keys());
        let due = self.due(store, ids.len()).await;
        ids.extend(due.keys());

        let mut found = 0;
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(100) {
            let payload_ids: Vec<PayloadId> = ids.iter().map(|id| PayloadId((*id).into())).collect();
            let payloads = store.payloads(&tenant(), &payload_ids).await.expect("payloads");
            for (id, payload) in ids.iter().zip(payloads) {
                let number = self.number_if_complete(*id, payload.as_ref(), due.get(id));
                match (reports.get(id), number) {
                    (Some(CommitReport::Acked(acked)), None) => {
                        panic!("acknowledged, but gone: {acked:?}")
                    }
                    (Some(CommitReport::Acked(acked)), Some(number)) => {
                        assert_eq!(
                            number, acked.number,
                            "change {id} has another number than was acknowledged"
                        );
                        assert_eq!(
                            self.records.get(id).map(|record| record.version),
                            Some(acked.version),
                            "the record of change {id} has another version than was acknowledged"
                        );
                    }
                    (Some(CommitReport::Refused(id)), Some(_)) => {
                        panic!("change {id} was rejected, but is there")
                    }
                    (Some(CommitReport::Refused(_)), None) | (Some(CommitReport::Unknown(_)) | None, _) => {}
                }
                found += u64::from(number.is_some());
            }
        }
        found
    }

    /// What is due, by id; panics if there is more than `max_count`. Puts back what it claims, for the next check.
    async fn due(&self, store: &dyn Store, max_count: usize) -> BTreeMap<u64, Timestamp> {
        let limit = u32::try_from(max_count + 1).expect("a small number");
        let (list, _) = store.claim_due(limit).await.expect("what is due");
        let mut back = Change::new(tenant());
        back.due = list.iter().map(|due| (due.at, due.key.clone())).collect();
        store.commit(back).await.expect("what is due is due again");
        let mut by_id = BTreeMap::new();
        for due in list.iter().filter(|due| id_of(&due.key) >= self.first) {
            assert_eq!(due.tenant, tenant(), "there is only one tenant");
            by_id.insert(id_of(&due.key), due.at);
        }
        assert!(by_id.len() <= max_count, "more is due than was ever written");
        by_id
    }

    /// The number of a change whose parts are all there and unchanged; `None` if no part is there.
    fn number_if_complete(&self, id: u64, payload: Option<&Bytes>, due: Option<&Timestamp>) -> Option<u64> {
        let written = change(id);
        let record = self.records.get(&id);
        let deliveries = self.deliveries.get(&id);
        let parts = [record.is_some(), payload.is_some(), deliveries.is_some(), due.is_some()];
        if parts == [false; 4] {
            return None;
        }
        let (Some(record), Some(payload), Some(deliveries), Some(due)) = (record, payload, deliveries, due)
        else {
            panic!("change {id} is incomplete: [record, payload, delivery, due] is {parts:?}");
        };
        let Put { key, content } = &written.puts[0];
        let is_written = record.key == *key && record.content == *content && record.version > 0;
        assert!(is_written, "the record of change {id} is not what was written");
        assert!(*payload == written.payloads[0].1, "the payload of change {id} is not what was written");
        assert_eq!(*due, written.due[0].0, "when change {id} is due");
        let [(mailbox, delivery)] = &deliveries[..] else {
            panic!("change {id} was delivered more than once: {deliveries:?}");
        };
        let delivered = NewDelivery {
            mailbox: mailbox.clone(),
            msg_id: delivery.msg_id.clone(),
            msg_type: delivery.msg_type.clone(),
            subject: delivery.subject.clone(),
            payload: delivery.payload,
            until: delivery.until,
        };
        assert_eq!(delivered, written.deliveries[0], "the delivery of change {id}");
        Some(delivery.number)
    }
}
