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

use crate::{queue::Job, residences::TenantInEpoch};

/// A new record starts with a number of the sequence `record_incarnation` above this many bits, in which its writes count.
pub(crate) const INCARNATION_SHIFT: u32 = 16;

/// A record of any tenant.
pub(crate) type RecordKey = (TenantId, Key);

/// A mailbox of any tenant, by its stored name.
pub(crate) type MailboxName = (TenantId, String);

/// Tenant, mailbox, number and reader.
pub(crate) type MarkKey = (TenantId, String, u64, String);

/// The records that a batch names, in lock order.
pub(crate) type NamedRecords = BTreeMap<RecordKey, IfMissing>;

/// What the first round trip does with a record that does not exist. Whoever inserts it first owns it until the end of
/// the transaction, as if it were locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// No change of the batch can write it.
    Ignore,
    /// Insert an empty row.
    Reserve,
    /// Insert what the first change that requires its absence writes. As a rule that is what the batch commits, so that
    /// nothing is left to do.
    Draft(Bytes),
}

/// The existing records that a batch names: version and content. They are locked, except those of [`seen_records`]. A record
/// that can't be decoded fails the changes that name it; for [`Guard::Seen`] it is another one than was seen.
pub(crate) type FoundRecords = HashMap<RecordKey, Result<(u64, Bytes), StoreError>>;

/// The records that the first round trip has inserted.
pub(crate) type ReservedRecords = BTreeMap<RecordKey, Reserved>;

/// A row that exists for this transaction alone, until it is written.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// The version of the first write. No earlier record of this key had it.
    pub(crate) version: u64,
    /// What was inserted; `None` for an empty row.
    pub(crate) draft: Option<Bytes>,
}

/// What the first round trip found.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) found: FoundRecords,
    pub(crate) reserved: ReservedRecords,
    /// Pending payloads that the sweeper has deleted: the changes that need them fail.
    pub(crate) swept: HashSet<PayloadId>,
    /// Tenants that are not here with this epoch: the changes that take them to be fail.
    pub(crate) elsewhere: HashSet<TenantInEpoch>,
    /// The store's time, read after the locks were granted.
    pub(crate) now: Timestamp,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// One for each job, valid if the transaction commits.
    pub(crate) outcomes: Vec<PlannedOutcome>,
    pub(crate) writes: Writes,
}

#[derive(Debug)]
pub(crate) enum PlannedOutcome {
    Committed {
        /// The positions of its deliveries in [`Writes::deliveries`].
        deliveries: Range<usize>,
        /// Of what it puts, in the order of the puts.
        versions: Vec<u64>,
    },
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
    /// Of existing records, and of reserved ones whose content is not yet what is to be written.
    pub(crate) changed_records: Vec<(RecordKey, u64, Bytes)>,
    /// Existing records, and reserved ones that nobody writes.
    pub(crate) deleted_records: Vec<RecordKey>,
    /// How many versions have grown into the next incarnation. The sequence advances as often, so that it stays ahead of all
    /// versions, and no later record of the same key starts with one of them.
    pub(crate) used_incarnations: u64,
    pub(crate) payloads: Vec<(TenantId, PayloadId, Bytes)>,
    /// Pending payloads that become visible.
    pub(crate) confirmed_payloads: Vec<PayloadId>,
    pub(crate) deleted_payloads: Vec<(TenantId, PayloadId)>,
    pub(crate) removals_by_number: Vec<(TenantId, Mailbox, u64)>,
    pub(crate) removals_by_subject: Vec<RemovalBySubject>,
    /// Whether to set hidden and acknowledged. Neither is ever unset.
    pub(crate) marks: BTreeMap<MarkKey, (bool, bool)>,
    /// `None` for a record that is no longer due. Sorted, because every transaction must lock the rows in the same order.
    pub(crate) due: BTreeMap<RecordKey, Option<Timestamp>>,
    pub(crate) audit: Vec<(TenantId, AuditRow)>,
    /// New deliveries per mailbox. Sorted, because every transaction must lock the counters in the same order.
    pub(crate) counters: BTreeMap<MailboxName, u64>,
    /// Each with its position among the batch's deliveries to the same mailbox, from one.
    pub(crate) deliveries: Vec<(TenantId, NewDelivery, u64)>,
}

/// The records that must be locked or reserved before `jobs` can be planned.
pub(crate) fn named_records(jobs: &[Job]) -> NamedRecords {
    let mut named = NamedRecords::new();
    for Job { change, .. } in jobs {
        let mut name = |key: &Key, if_missing: IfMissing| {
            let known = named.entry((change.tenant.clone(), key.clone())).or_insert(IfMissing::Ignore);
            match (&known, &if_missing) {
                (IfMissing::Ignore, _) | (IfMissing::Reserve, IfMissing::Draft(_)) => *known = if_missing,
                _ => {}
            }
        };
        let requires_absence =
            |key: &Key| change.guards.iter().any(|it| matches!(it, Guard::Absent(of) if of == key));
        let requires_version =
            |key: &Key| change.guards.iter().any(|it| matches!(it, Guard::Version(of, _) if of == key));
        for guard in &change.guards {
            match guard {
                Guard::Absent(key) => name(key, IfMissing::Reserve),
                Guard::Version(key, _) => name(key, IfMissing::Ignore),
                // Compared without a lock.
                Guard::Seen(..) | Guard::Before(_) | Guard::NotBefore(_) => {}
            }
        }
        for Put { key, content } in &change.puts {
            let if_missing = if requires_absence(key) {
                IfMissing::Draft(content.clone())
            } else if requires_version(key) {
                IfMissing::Ignore
            } else {
                IfMissing::Reserve
            };
            name(key, if_missing);
        }
        change.deletes.iter().for_each(|key| name(key, IfMissing::Ignore));
        // A mark and a removal of what it marks wait for each other at the record that both are about. Otherwise a mark
        // could be inserted beside a removal that does not see it, and stay for ever.
        change.marks.iter().for_each(|mark| name(&mark.subject, IfMissing::Ignore));
        change.removals.iter().filter_map(Removal::subject).for_each(|key| name(key, IfMissing::Ignore));
    }
    named
}

/// The records that only [`Guard::Seen`] names, each once however many changes of the batch have seen it. They are read when
/// the locks are granted, so that a batch that has waited sees what was committed meanwhile.
pub(crate) fn seen_records(jobs: &[Job], named: &NamedRecords) -> BTreeSet<RecordKey> {
    let seen = jobs.iter().flat_map(|Job { change, .. }| {
        change.guards.iter().filter_map(|guard| match guard {
            Guard::Seen(key, _) => Some((change.tenant.clone(), key.clone())),
            Guard::Absent(_) | Guard::Version(..) | Guard::Before(_) | Guard::NotBefore(_) => None,
        })
    });
    seen.filter(|key| !named.contains_key(key)).collect()
}

/// The tenants of a batch, each with the epoch that it is taken to have.
pub(crate) fn tenants(jobs: &[Job]) -> BTreeSet<TenantInEpoch> {
    jobs.iter().map(|job| (job.change.tenant.clone(), job.epoch)).collect()
}

/// Splits off the first job that can't share a transaction with those before it, and all jobs after it. Statements
/// run table by table, deletions first, so a removal would not see what an earlier change of the batch inserts.
pub(crate) fn split_off_dependent(jobs: &mut Vec<Job>) -> Vec<Job> {
    let mut delivered: HashSet<(&TenantId, &Key)> = HashSet::new();
    let first_dependent = jobs.iter().position(|Job { change, .. }| {
        let mut removed = change.removals.iter().filter_map(Removal::subject);
        let removes_delivered = removed.any(|subject| delivered.contains(&(&change.tenant, subject)));
        delivered.extend(change.deliveries.iter().map(|delivery| (&change.tenant, &delivery.subject)));
        removes_delivered
    });
    first_dependent.map_or_else(Vec::new, |first| jobs.split_off(first))
}

/// Plans `jobs` against what the first round trip found.
pub(crate) fn plan(jobs: &[Job], begun: Begun) -> Plan {
    let Begun { found, reserved, swept, elsewhere, now } = begun;
    let mut plan = Plan::default();
    let mut overlay = BatchOverlay { found: &found, reserved: &reserved, changed: BTreeMap::new() };
    for Job { change, epoch, pending_payloads, .. } in jobs {
        let outcome = if elsewhere.contains(&(change.tenant.clone(), *epoch)) {
            PlannedOutcome::Failed(StoreError::Moved)
        } else if pending_payloads.iter().any(|id| swept.contains(id)) {
            PlannedOutcome::Failed(StoreError::unavailable(
                "a pending payload waited too long for its commit and was swept",
            ))
        } else if let Some(error) = overlay.undecodable(change) {
            PlannedOutcome::Failed(error)
        } else if change.guards.iter().all(|guard| overlay.is_satisfied(&change.tenant, guard, now)) {
            let first = plan.writes.deliveries.len();
            let versions = overlay.apply(change);
            plan.writes.confirmed_payloads.extend(pending_payloads);
            plan.writes.collect(change);
            PlannedOutcome::Committed { deliveries: first..plan.writes.deliveries.len(), versions }
        } else {
            let keys = change.guards.iter().filter_map(Guard::key);
            PlannedOutcome::Conflict(keys.map(|key| overlay.record(&change.tenant, key)).collect())
        };
        plan.outcomes.push(outcome);
    }
    overlay.into_writes(&mut plan.writes);
    plan
}

/// The records that were found, with what the batch has written so far.
struct BatchOverlay<'r> {
    found: &'r FoundRecords,
    reserved: &'r ReservedRecords,
    changed: BTreeMap<RecordKey, ChangedRecord>,
}

struct ChangedRecord {
    /// The newest one, also of a deleted record: if the batch makes it again, it goes on from there.
    version: u64,
    /// `None` where the batch deletes the record.
    content: Option<Bytes>,
}

impl BatchOverlay<'_> {
    fn get(&self, tenant: &TenantId, key: &Key) -> Option<(u64, &Bytes)> {
        let key = (tenant.clone(), key.clone());
        if let Some(changed) = self.changed.get(&key) {
            return Some((changed.version, changed.content.as_ref()?));
        }
        let (version, content) = self.found.get(&key)?.as_ref().ok()?;
        Some((*version, content))
    }

    fn undecodable(&self, change: &Change) -> Option<StoreError> {
        let guarded = change.guards.iter().filter_map(|guard| match guard {
            Guard::Absent(key) | Guard::Version(key, _) => Some(key),
            Guard::Seen(..) | Guard::Before(_) | Guard::NotBefore(_) => None,
        });
        let mut named = guarded.chain(change.puts.iter().map(|put| &put.key)).chain(&change.deletes);
        named.find_map(|key| self.found.get(&(change.tenant.clone(), key.clone()))?.as_ref().err().cloned())
    }

    fn is_satisfied(&self, tenant: &TenantId, guard: &Guard, now: Timestamp) -> bool {
        match guard {
            Guard::Absent(key) => self.get(tenant, key).is_none(),
            Guard::Version(key, version) => {
                self.get(tenant, key).is_some_and(|(current, _)| current == *version)
            }
            Guard::Seen(key, version) => match self.get(tenant, key) {
                Some((current, _)) => current == *version,
                // One that can't be decoded is there.
                None => {
                    *version == 0 && self.found.get(&(tenant.clone(), key.clone())).is_none_or(Result::is_ok)
                }
            },
            Guard::Before(deadline) => now < *deadline,
            Guard::NotBefore(earliest) => now >= *earliest,
        }
    }

    fn record(&self, tenant: &TenantId, key: &Key) -> Option<Record> {
        let (version, content) = self.get(tenant, key)?;
        Some(Record { key: key.clone(), version, content: content.clone() })
    }

    /// Returns the versions of what it puts.
    fn apply(&mut self, change: &Change) -> Vec<u64> {
        for key in &change.deletes {
            let key = (change.tenant.clone(), key.clone());
            if let Some(version) = self.newest_version(&key) {
                self.changed.insert(key, ChangedRecord { version, content: None });
            }
        }
        let put = |Put { key, content }: &Put| {
            let key = (change.tenant.clone(), key.clone());
            let reserved = self.reserved.get(&key).map(|reserved| reserved.version);
            let version = self.newest_version(&key).map(|newest| newest + 1).or(reserved);
            debug_assert!(version.is_some(), "a record that is written is locked or reserved");
            let version = version.unwrap_or_default();
            self.changed.insert(key, ChangedRecord { version, content: Some(content.clone()) });
            version
        };
        change.puts.iter().map(put).collect()
    }

    /// Of a record that exists, or that the batch has deleted.
    fn newest_version(&self, key: &RecordKey) -> Option<u64> {
        match self.changed.get(key) {
            Some(changed) => Some(changed.version),
            None => self.found.get(key)?.as_ref().ok().map(|(version, _)| *version),
        }
    }

    fn into_writes(mut self, writes: &mut Writes) {
        for (key, Reserved { version, draft }) in self.reserved {
            match self.changed.remove(key) {
                Some(changed)
                    if draft.is_some() && changed.content == *draft && changed.version == *version => {}
                Some(changed) => writes.change_record(key.clone(), *version, changed),
                None => writes.deleted_records.push(key.clone()),
            }
        }
        for (key, changed) in self.changed {
            if let Some(Ok((version, _))) = self.found.get(&key) {
                writes.change_record(key, *version, changed);
            }
        }
    }
}

impl Writes {
    /// `before` is the version in the table.
    fn change_record(&mut self, key: RecordKey, before: u64, changed: ChangedRecord) {
        let ChangedRecord { version, content } = changed;
        self.used_incarnations += (version >> INCARNATION_SHIFT) - (before >> INCARNATION_SHIFT);
        match content {
            Some(content) => self.changed_records.push((key, version, content)),
            None => self.deleted_records.push(key),
        }
    }

    /// Adds everything of a change except its records.
    fn collect(&mut self, change: &Change) {
        let tenant = || change.tenant.clone();
        let record_key = |key: &Key| (tenant(), key.clone());
        self.payloads.extend(change.payloads.iter().map(|(id, bytes)| (tenant(), *id, bytes.clone())));
        self.deleted_payloads.extend(change.drop_payloads.iter().map(|id| (tenant(), *id)));
        self.due.extend(change.no_longer_due.iter().map(|key| (record_key(key), None)));
        self.due.extend(change.due.iter().map(|(at, key)| (record_key(key), Some(*at))));
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

#[cfg(test)]
mod tests {
    use countersign_core::store::{Epoch, Kind};
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn a_record_that_many_changes_saw_is_read_once_and_not_at_all_if_it_is_locked() {
        let (policy, pairing) = (Key::new(Kind::Policy, "policy"), Key::new(Kind::Pairing, "p"));
        let submit = |at: u64| {
            let ours = Key::new(Kind::Exchange, at);
            let mut change = Change::new("acme".parse().unwrap());
            change.guards = vec![Guard::Seen(policy.clone(), at), Guard::Seen(pairing.clone(), at)];
            change.puts.push(Put { key: ours, content: Bytes::new() });
            Job { change, epoch: Epoch(0), pending_payloads: Vec::new(), reply: oneshot::channel().0 }
        };
        let mut jobs: Vec<Job> = (0..64).map(submit).collect();
        let named = named_records(&jobs);
        assert_eq!(named.len(), 64, "the exchanges alone");
        let of_acme = |key: &Key| ("acme".parse().unwrap(), key.clone());
        assert_eq!(seen_records(&jobs, &named), [&policy, &pairing].map(of_acme).into());
        jobs[40].change.deletes.push(policy.clone());
        let named = named_records(&jobs);
        assert!(named.contains_key(&of_acme(&policy)));
        assert_eq!(seen_records(&jobs, &named), [of_acme(&pairing)].into());
    }
}
