//! The records of a journal in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use countersign_wire::timestamp::Timestamp;
use zeroize::Zeroizing;

use super::port::{Change, Kind, Record};

#[derive(Default)]
pub(super) struct Index {
    records: BTreeMap<(Kind, String), (Zeroizing<String>, Timestamp)>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({} records)", self.records.len())
    }
}

impl Index {
    /// The first condition that is not met, by the kind of record that is in the way or missing.
    pub(super) fn conflict(&self, changes: &[Change]) -> Option<Kind> {
        changes.iter().find_map(|change| {
            let (kind, key, is_wanted) = match change {
                Change::Add(record) => (record.kind, &record.key, false),
                Change::Absent(kind, key) => (*kind, key, false),
                Change::Present(kind, key) => (*kind, key, true),
                Change::Put(_) | Change::Remove(..) => return None,
            };
            (self.records.contains_key(&(kind, key.clone())) != is_wanted).then_some(kind)
        })
    }

    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Add(record) | Change::Put(record) => {
                self.records.insert((record.kind, record.key), (record.value, record.keep_until));
            }
            Change::Remove(kind, key) => drop(self.records.remove(&(kind, key))),
            Change::Absent(..) | Change::Present(..) => (),
        }
    }

    /// Forgets what need not be kept any more.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.records.retain(|_, (_, keep_until)| *keep_until > now);
    }

    pub(super) fn get(&self, kind: Kind, key: &str) -> Option<Record> {
        self.records.get_key_value(&(kind, key.to_owned())).map(to_record)
    }

    pub(super) fn list(&self, kind: Kind) -> Vec<Record> {
        self.from(kind, "").map(to_record).collect()
    }

    pub(super) fn list_new(&self, kind: Kind, known: &BTreeSet<String>) -> Vec<Record> {
        self.from(kind, "").filter(|((_, key), _)| !known.contains(key)).map(to_record).collect()
    }

    pub(super) fn last(&self, kind: Kind, prefix: &str) -> Option<Record> {
        let (start, end) = ((kind, prefix.to_owned()), (kind, format!("{prefix}{}", char::MAX)));
        self.records.range(start..end).next_back().map(to_record)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Record> {
        self.records.iter().map(to_record)
    }

    fn from<'a>(
        &'a self,
        kind: Kind,
        key: &str,
    ) -> impl Iterator<Item = (&'a (Kind, String), &'a (Zeroizing<String>, Timestamp))> {
        let start = Bound::Included((kind, key.to_owned()));
        self.records.range((start, Bound::Unbounded)).take_while(move |((found, _), _)| *found == kind)
    }
}

fn to_record(
    ((kind, key), (value, keep_until)): (&(Kind, String), &(Zeroizing<String>, Timestamp)),
) -> Record {
    Record { kind: *kind, key: key.clone(), value: value.clone(), keep_until: *keep_until }
}
