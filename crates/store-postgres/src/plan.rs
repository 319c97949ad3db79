//! Decides what a batch writes: checks the guards in order, each change seeing what those before it write.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use bytes::Bytes;
use countersign_core::store::{
    AuditRow, Change, Guard, Key, Mailbox, MarkKind, NewDelivery, PayloadId, Put, Record, Removal, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::queue::Job;

/// A record of any tenant.
pub(crate) type RecordKey = (TenantId, Key);

/// A mailbox of any tenant, by its stored name.
pub(crate) type MailboxName = (TenantId, String);

/// Tenant, mailbox, number and reader.
pub(crate) type MarkKey = (TenantId, String, u64, String);

/// The records that a batch names: version and content, locked.
pub(crate) type LockedRecords = HashMap<RecordKey, (u64, Bytes)>;

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// One for each job, valid if the transaction commits.
    pub(crate) outcomes: Vec<PlannedOutcome>,
    pub(crate) writes: Writes,
}

#[derive(Debug)]
pub(crate) enum PlannedOutcome {
    /// With the positions of its deliveries in [`Writes::deliveries`].
    Committed(Range<usize>),
    Conflict(Vec<Option<Record>>),
    Failed(StoreError),
}

/// Deliveries about a record to remove; `None` means whatever type or message.
#[derive(Debug)]
pub(crate) struct RemovalBySubject {
    pub(crate) tenant: TenantId,
    pub(crate) subject: Key,
    pub(crate) msg_type: Option<String>,
    pub(crate) msg_id: Option<String>,
}

/// Everything that one transaction writes, by table.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) new_records: Vec<(RecordKey, u64, Bytes)>,
    pub(crate) changed_records: Vec<(RecordKey, u64, Bytes)>,
    pub(crate) deleted_records: Vec<RecordKey>,
    /// Records that no other transaction may insert while this transaction runs, and that it does not insert itself.
    pub(crate) absent_records: Vec<RecordKey>,
    pub(crate) payloads: Vec<(TenantId, PayloadId, Bytes)>,
    /// Pending payloads that become visible.
    pub(crate) confirmed_payloads: Vec<PayloadId>,
    pub(crate) deleted_payloads: Vec<(TenantId, PayloadId)>,
    pub(crate) removals_by_number: Vec<(TenantId, Mailbox, u64)>,
    /// The message type is `None` for all types.
    pub(crate) removals_by_subject: Vec<RemovalBySubject>,
    /// Whether to set hidden and acknowledged. Neither is ever unset.
    pub(crate) marks: BTreeMap<MarkKey, (bool, bool)>,
    pub(crate) due: Vec<(Timestamp, RecordKey)>,
    pub(crate) no_longer_due: Vec<(Timestamp, RecordKey)>,
    pub(crate) audit: Vec<(TenantId, AuditRow)>,
    /// New deliveries per mailbox. Sorted, because every transaction must lock the counters in the same order.
    pub(crate) counters: BTreeMap<MailboxName, u64>,
    /// Each with its position among the batch's deliveries to the same mailbox, from one.
    pub(crate) deliveries: Vec<(TenantId, NewDelivery, u64)>,
}

/// The records that must be locked before `jobs` can be planned, in lock order.
pub(crate) fn keys_to_lock(jobs: &[Job]) -> Vec<RecordKey> {
    let mut keys: Vec<RecordKey> = jobs
        .iter()
        .flat_map(|Job { change, .. }| {
            let guarded = change.guards.iter().filter_map(Guard::key);
            let written = change.puts.iter().map(|put| &put.key);
            guarded.chain(written).chain(&change.deletes).map(|key| (change.tenant.clone(), key.clone()))
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Splits off the first job that can't share a transaction with those before it, and all jobs after it. Statements
/// run table by table, deletions first, so a removal would not see what an earlier change of the batch inserts.
pub(crate) fn split_off_dependent(jobs: &mut Vec<Job>) -> Vec<Job> {
    let mut delivered: HashSet<(&TenantId, &Key)> = HashSet::new();
    let mut made_due: HashSet<(&TenantId, &(Timestamp, Key))> = HashSet::new();
    let first_dependent = jobs.iter().position(|Job { change, .. }| {
        let removes_delivered = change.removals.iter().any(|removal| match removal {
            Removal::BySubject { subject, .. } | Removal::ByMessage { subject, .. } => {
                delivered.contains(&(&change.tenant, subject))
            }
            Removal::ByNumber { .. } => false,
        });
        let removes_due = change.no_longer_due.iter().any(|due| made_due.contains(&(&change.tenant, due)));
        made_due.extend(change.due.iter().map(|due| (&change.tenant, due)));
        delivered.extend(change.deliveries.iter().map(|delivery| (&change.tenant, &delivery.subject)));
        removes_delivered || removes_due
    });
    first_dependent.map_or_else(Vec::new, |first| jobs.split_off(first))
}

/// Plans `jobs` against the locked records at the store's time `now`. `swept` are pending payloads that the sweeper
/// has deleted: the changes that need them fail.
pub(crate) fn plan(jobs: &[Job], locked: &LockedRecords, swept: &HashSet<PayloadId>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut overlay = BatchOverlay { locked, changed: BTreeMap::new(), absent: BTreeSet::new() };
    for Job { change, pending_payloads, .. } in jobs {
        let outcome = if pending_payloads.iter().any(|id| swept.contains(id)) {
            PlannedOutcome::Failed(StoreError::unavailable(
                "a pending payload waited too long for its commit and was swept",
            ))
        } else if change.guards.iter().all(|guard| overlay.is_satisfied(&change.tenant, guard, now)) {
            let first = plan.writes.deliveries.len();
            overlay.require_absence(change);
            overlay.apply(change);
            plan.writes.confirmed_payloads.extend(pending_payloads);
            plan.writes.collect(change);
            PlannedOutcome::Committed(first..plan.writes.deliveries.len())
        } else {
            let keys = change.guards.iter().filter_map(Guard::key);
            PlannedOutcome::Conflict(keys.map(|key| overlay.record(&change.tenant, key)).collect())
        };
        plan.outcomes.push(outcome);
    }
    overlay.into_writes(&mut plan.writes);
    plan
}

/// The locked records with what the batch has written so far.
struct BatchOverlay<'r> {
    locked: &'r LockedRecords,
    /// `None` where the batch deletes the record.
    changed: BTreeMap<RecordKey, Option<(u64, Bytes)>>,
    /// Records that a guard requires to be absent.
    absent: BTreeSet<RecordKey>,
}

impl BatchOverlay<'_> {
    fn get(&self, tenant: &TenantId, key: &Key) -> Option<&(u64, Bytes)> {
        let key = (tenant.clone(), key.clone());
        match self.changed.get(&key) {
            Some(changed) => changed.as_ref(),
            None => self.locked.get(&key),
        }
    }

    fn is_satisfied(&self, tenant: &TenantId, guard: &Guard, now: Timestamp) -> bool {
        match guard {
            Guard::Absent(key) => self.get(tenant, key).is_none(),
            Guard::Version(key, version) => {
                self.get(tenant, key).is_some_and(|(current, _)| current == version)
            }
            Guard::Before(deadline) => now < *deadline,
        }
    }

    fn record(&self, tenant: &TenantId, key: &Key) -> Option<Record> {
        let (version, content) = self.get(tenant, key)?;
        Some(Record { key: key.clone(), version: *version, content: content.clone() })
    }

    fn require_absence(&mut self, change: &Change) {
        for guard in &change.guards {
            if let Guard::Absent(key) = guard {
                self.absent.insert((change.tenant.clone(), key.clone()));
            }
        }
    }

    fn apply(&mut self, change: &Change) {
        for key in &change.deletes {
            self.changed.insert((change.tenant.clone(), key.clone()), None);
        }
        for Put { key, content } in &change.puts {
            let version = self.get(&change.tenant, key).map_or(1, |(version, _)| version + 1);
            self.changed.insert((change.tenant.clone(), key.clone()), Some((version, content.clone())));
        }
    }

    fn into_writes(self, writes: &mut Writes) {
        let is_written =
            |key: &RecordKey| self.locked.contains_key(key) || matches!(self.changed.get(key), Some(Some(_)));
        writes.absent_records.extend(self.absent.iter().filter(|key| !is_written(key)).cloned());
        for (key, record) in self.changed {
            let exists = self.locked.contains_key(&key);
            match record {
                Some((version, content)) if exists => writes.changed_records.push((key, version, content)),
                Some((version, content)) => writes.new_records.push((key, version, content)),
                None if exists => writes.deleted_records.push(key),
                None => {}
            }
        }
    }
}

impl Writes {
    /// Adds everything of a change except its records.
    fn collect(&mut self, change: &Change) {
        let tenant = || change.tenant.clone();
        let record_key = |key: &Key| (tenant(), key.clone());
        self.payloads.extend(change.payloads.iter().map(|(id, bytes)| (tenant(), *id, bytes.clone())));
        self.deleted_payloads.extend(change.drop_payloads.iter().map(|id| (tenant(), *id)));
        self.due.extend(change.due.iter().map(|(at, key)| (*at, record_key(key))));
        self.no_longer_due.extend(change.no_longer_due.iter().map(|(at, key)| (*at, record_key(key))));
        self.audit.extend(change.audit.iter().map(|row| (tenant(), row.clone())));
        self.collect_removals(change);
        for mark in &change.marks {
            let key = (tenant(), mark.mailbox.to_string(), mark.number, mark.reader.to_string());
            let (hidden, acknowledged) = self.marks.entry(key).or_default();
            match mark.kind {
                MarkKind::Hidden => *hidden = true,
                MarkKind::Acknowledged => *acknowledged = true,
            }
        }
        for delivery in &change.deliveries {
            let counter = self.counters.entry((tenant(), delivery.mailbox.to_string())).or_default();
            *counter += 1;
            self.deliveries.push((tenant(), delivery.clone(), *counter));
        }
    }

    fn collect_removals(&mut self, change: &Change) {
        let tenant = || change.tenant.clone();
        for removal in &change.removals {
            match removal {
                Removal::ByNumber { mailbox, number } => {
                    self.removals_by_number.push((tenant(), mailbox.clone(), *number));
                }
                Removal::BySubject { subject, msg_types } if msg_types.is_empty() => {
                    self.remove_by_subject(tenant(), subject, None, None);
                }
                Removal::BySubject { subject, msg_types } => {
                    for msg_type in msg_types {
                        self.remove_by_subject(tenant(), subject, Some(msg_type.to_string()), None);
                    }
                }
                Removal::ByMessage { subject, msg_id } => {
                    self.remove_by_subject(tenant(), subject, None, Some(msg_id.to_string()));
                }
            }
        }
    }

    fn remove_by_subject(
        &mut self,
        tenant: TenantId,
        subject: &Key,
        msg_type: Option<String>,
        msg_id: Option<String>,
    ) {
        self.removals_by_subject.push(RemovalBySubject {
            tenant,
            subject: subject.clone(),
            msg_type,
            msg_id,
        });
    }
}
