//! What a batch will write: guards checked in order, each change seeing those before it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use countersign_core::store::{
    AuditRow, Change, Guard, Key, Mailbox, MarkKind, NewDelivery, PayloadId, Put, Record, Removal, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::queue::Job;

/// A record's place among all tenants.
pub(crate) type Place = (TenantId, Key);

/// The records that a batch names, as they stand and are locked.
pub(crate) type Rows = HashMap<Place, (u64, Bytes)>;

/// What a batch will write, and what each of its jobs will be told if that succeeds.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) answers: Vec<Answer>,
    pub(crate) writes: Writes,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// Committed, with these of the batch's deliveries.
    Committed(std::ops::Range<usize>),
    Conflict(Vec<Option<Record>>),
    Failed(StoreError),
}

/// Everything of one transaction, by table.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) new_records: Vec<(Place, u64, Bytes)>,
    pub(crate) changed_records: Vec<(Place, u64, Bytes)>,
    pub(crate) gone_records: Vec<Place>,
    /// Records that must not come to be while this transaction runs, and that it does not write itself.
    pub(crate) absent_records: Vec<Place>,
    pub(crate) payloads: Vec<(TenantId, PayloadId, Bytes)>,
    pub(crate) settled_payloads: Vec<PayloadId>,
    pub(crate) gone_payloads: Vec<(TenantId, PayloadId)>,
    pub(crate) removals: Vec<(TenantId, Mailbox, u64)>,
    pub(crate) removals_about: Vec<(TenantId, Key, Option<String>)>,
    /// Hidden and acknowledged, by delivery and reader.
    pub(crate) marks: BTreeMap<(TenantId, String, u64, String), (bool, bool)>,
    pub(crate) due: Vec<(Timestamp, Place)>,
    pub(crate) no_longer_due: Vec<(Timestamp, Place)>,
    pub(crate) audit: Vec<(TenantId, AuditRow)>,
    /// Sorted, because every transaction must take the counters in the same order.
    pub(crate) counters: BTreeMap<(TenantId, String), u64>,
    /// Each with its place among the batch's deliveries to the same mailbox, from one.
    pub(crate) deliveries: Vec<(TenantId, NewDelivery, u64)>,
}

/// The records that must be locked before `jobs` can be planned.
pub(crate) fn places(jobs: &[Job]) -> Vec<Place> {
    let mut places: Vec<Place> = jobs
        .iter()
        .flat_map(|Job { change, .. }| {
            let guarded = change.guards.iter().filter_map(Guard::key);
            let written = change.puts.iter().map(|put| &put.key);
            guarded.chain(written).chain(&change.deletes).map(|key| (change.tenant.clone(), key.clone()))
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Splits off what can't be in one transaction with what is before it: statements run table by table, so
/// a removal would come before what an earlier change of the batch puts in.
pub(crate) fn split_off_dependent(jobs: &mut Vec<Job>) -> Vec<Job> {
    let mut told_of: HashSet<(&TenantId, &Key)> = HashSet::new();
    let mut made_due: HashSet<(&TenantId, &(Timestamp, Key))> = HashSet::new();
    let depends = jobs.iter().position(|Job { change, .. }| {
        let removes = change.removals.iter().any(|removal| match removal {
            Removal::BySubject { subject, .. } => told_of.contains(&(&change.tenant, subject)),
            Removal::ByNumber { .. } => false,
        });
        let depends =
            removes || change.no_longer_due.iter().any(|due| made_due.contains(&(&change.tenant, due)));
        made_due.extend(change.due.iter().map(|due| (&change.tenant, due)));
        told_of.extend(change.deliveries.iter().map(|delivery| (&change.tenant, &delivery.subject)));
        depends
    });
    depends.map_or_else(Vec::new, |first| jobs.split_off(first))
}

/// Plans `jobs` against the locked `rows` at the store's time `now`.
pub(crate) fn plan(jobs: &[Job], rows: &Rows, swept: &HashSet<PayloadId>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut standing = Standing { rows, changed: BTreeMap::new(), absent: BTreeSet::new() };
    for Job { change, ahead, .. } in jobs {
        let answer = if ahead.iter().any(|id| swept.contains(id)) {
            Answer::Failed(StoreError::unavailable("a body waited too long and was swept"))
        } else if change.guards.iter().all(|guard| standing.holds(&change.tenant, guard, now)) {
            let first = plan.writes.deliveries.len();
            standing.rely_on_absence(change);
            standing.apply(change);
            plan.writes.settled_payloads.extend(ahead);
            plan.writes.collect(change);
            Answer::Committed(first..plan.writes.deliveries.len())
        } else {
            let keys = change.guards.iter().filter_map(Guard::key);
            Answer::Conflict(keys.map(|key| standing.record(&change.tenant, key)).collect())
        };
        plan.answers.push(answer);
    }
    standing.into_writes(&mut plan.writes);
    plan
}

/// The records as the batch has them so far.
struct Standing<'r> {
    rows: &'r Rows,
    changed: BTreeMap<Place, Option<(u64, Bytes)>>,
    absent: BTreeSet<Place>,
}

impl Standing<'_> {
    fn get(&self, tenant: &TenantId, key: &Key) -> Option<&(u64, Bytes)> {
        let place = (tenant.clone(), key.clone());
        match self.changed.get(&place) {
            Some(changed) => changed.as_ref(),
            None => self.rows.get(&place),
        }
    }

    fn holds(&self, tenant: &TenantId, guard: &Guard, now: Timestamp) -> bool {
        match guard {
            Guard::Absent(key) => self.get(tenant, key).is_none(),
            Guard::Version(key, version) => self.get(tenant, key).is_some_and(|(known, _)| known == version),
            Guard::Before(deadline) => now < *deadline,
        }
    }

    fn record(&self, tenant: &TenantId, key: &Key) -> Option<Record> {
        let (version, content) = self.get(tenant, key)?;
        Some(Record { key: key.clone(), version: *version, content: content.clone() })
    }

    fn rely_on_absence(&mut self, change: &Change) {
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
        let written =
            |place: &Place| self.rows.contains_key(place) || matches!(self.changed.get(place), Some(Some(_)));
        writes.absent_records.extend(self.absent.iter().filter(|place| !written(place)).cloned());
        for (place, row) in self.changed {
            let is_there = self.rows.contains_key(&place);
            match row {
                Some((version, content)) if is_there => {
                    writes.changed_records.push((place, version, content));
                }
                Some((version, content)) => writes.new_records.push((place, version, content)),
                None if is_there => writes.gone_records.push(place),
                None => {}
            }
        }
    }
}

impl Writes {
    /// Everything of a change but its records.
    fn collect(&mut self, change: &Change) {
        let tenant = || change.tenant.clone();
        let place = |key: &Key| (tenant(), key.clone());
        self.payloads.extend(change.payloads.iter().map(|(id, bytes)| (tenant(), *id, bytes.clone())));
        self.gone_payloads.extend(change.drop_payloads.iter().map(|id| (tenant(), *id)));
        self.due.extend(change.due.iter().map(|(at, key)| (*at, place(key))));
        self.no_longer_due.extend(change.no_longer_due.iter().map(|(at, key)| (*at, place(key))));
        self.audit.extend(change.audit.iter().map(|row| (tenant(), row.clone())));
        for removal in &change.removals {
            match removal {
                Removal::ByNumber { mailbox, number } => {
                    self.removals.push((tenant(), mailbox.clone(), *number))
                }
                Removal::BySubject { subject, msg_types } if msg_types.is_empty() => {
                    self.removals_about.push((tenant(), subject.clone(), None));
                }
                Removal::BySubject { subject, msg_types } => self.removals_about.extend(
                    msg_types.iter().map(|msg_type| (tenant(), subject.clone(), Some(msg_type.to_string()))),
                ),
            }
        }
        for mark in &change.marks {
            let place = (tenant(), mark.mailbox.to_string(), mark.number, mark.reader.to_string());
            let (hidden, acknowledged) = self.marks.entry(place).or_default();
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
}
