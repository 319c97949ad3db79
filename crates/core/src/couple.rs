//! An enforcer and an approver with all their pairs: three records that change together.

use countersign_wire::{
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    load::{RecordOf, record_at, record_of},
    model::{
        pairing::{PairedApprover, PairedEnforcer, Route},
        pairs::{Pair, Pairs, pairs_record},
    },
    store::{Change, Guard, StoreError, Stored as _, Versioned},
};

/// An enforcer and an approver.
#[derive(Clone, Copy)]
pub(crate) struct Couple<'a> {
    pub(crate) enforcer: &'a EnforcerId,
    pub(crate) approver: &'a ApproverId,
}

/// What names the pairs of a couple: their own record, and those of both sides.
pub(crate) type CoupleRecords = (RecordOf<Pairs>, RecordOf<PairedApprover>, RecordOf<PairedEnforcer>);

pub(crate) type CoupleValues =
    (Option<Versioned<Pairs>>, Option<Versioned<PairedApprover>>, Option<Versioned<PairedEnforcer>>);

impl<'a> Couple<'a> {
    pub(crate) fn records(self) -> CoupleRecords {
        let pairs = record_at(pairs_record(self.enforcer, self.approver));
        (pairs, record_of(self.approver), record_of(self.enforcer))
    }

    pub(crate) fn pairs(self, (pairs, _, of_enforcer): &CoupleValues) -> Pairs {
        let approvers = of_enforcer.as_ref().map(|known| known.value.approvers.as_slice());
        let are_paired = approvers.is_some_and(|approvers| approvers.contains(self.approver));
        Pairs::of(pairs.as_ref().map(|known| &known.value), are_paired)
    }

    /// The records as they are at this time, to be changed: what has ended is out of them. Guards that nobody else changes
    /// them meanwhile.
    pub(crate) fn open(self, change: &mut Change, values: &CoupleValues, now: Timestamp) -> OpenedCouple<'a> {
        let records = self.records();
        change.guards.push(Guard::unchanged(records.0.key(), values.0.as_ref()));
        change.guards.push(Guard::unchanged(records.1.key(), values.1.as_ref()));
        change.guards.push(Guard::unchanged(records.2.key(), values.2.as_ref()));
        let mut opened = OpenedCouple {
            couple: self,
            pairs: self.pairs(values),
            of_approver: values.1.as_ref().map(|known| known.value.clone()).unwrap_or_default(),
            of_enforcer: values.2.as_ref().map(|known| known.value.clone()).unwrap_or_default(),
            ended: Vec::new(),
        };
        opened.ended = opened.pairs.take_ended(now);
        for brought in opened.ended.iter().filter_map(Pair::brought) {
            opened.of_approver.release(brought);
        }
        opened
    }
}

/// The records of a couple while they are changed.
pub(crate) struct OpenedCouple<'a> {
    couple: Couple<'a>,
    pub(crate) pairs: Pairs,
    of_approver: PairedApprover,
    of_enforcer: PairedEnforcer,
    /// The pairs whose time was over.
    pub(crate) ended: Vec<Pair>,
}

impl OpenedCouple<'_> {
    /// Adds a pair to the records of both sides, its signing key to the approver's, and its routes.
    pub(crate) fn add(&mut self, change: &mut Change, pair: Pair) -> Result<(), Error> {
        let Couple { enforcer, approver } = self.couple;
        let route = Route { approver: approver.clone(), enforcer: Some(enforcer.clone()) };
        for token in &pair.routing_tokens {
            change.puts.push(route.put(Route::key(token))?);
        }
        let device = pair.device;
        let before = self.pairs.get(device).and_then(Pair::brought);
        let added = self.pairs.add(pair).ok_or_else(too_many)?;
        let after = self.pairs.get(device).and_then(Pair::brought);
        let brought = after.filter(|_| before != after);
        if !self.of_enforcer.add(approver) || !self.of_approver.add(enforcer, brought) {
            return Err(too_many());
        }
        // After the new one is there, so that a key that stays is not taken out in between.
        if let Some(before) = before.filter(|_| before != after) {
            self.of_approver.release(before);
        }
        change.deletes.extend(added.ended.iter().map(Route::key));
        Ok(())
    }

    /// Removes a pair: its routing tokens, and its signing key unless another pair brought the same.
    pub(crate) fn remove(&mut self, change: &mut Change, device: Sha256Hex) -> Option<Pair> {
        let removed = self.pairs.remove(device)?;
        if let Some(brought) = removed.brought() {
            self.of_approver.release(brought);
        }
        change.deletes.extend(removed.routing_tokens.iter().map(Route::key));
        Some(removed)
    }

    /// Writes the records. With their last pair, the approver and the enforcer go from each other's list.
    pub(crate) fn close(mut self, change: &mut Change) -> Result<(), StoreError> {
        let Couple { enforcer, approver } = self.couple;
        if self.pairs.pairs.is_empty() {
            self.of_approver.remove(enforcer);
            self.of_enforcer.remove(approver);
        }
        let record = pairs_record(enforcer, approver);
        match self.pairs == Pairs::default() {
            true => change.deletes.push(record.clone()),
            false => change.puts.push(self.pairs.put(record.clone())?),
        }
        change.no_longer_due.push(record.clone());
        change.due.extend(self.pairs.next_end().map(|end| (end, record)));
        // Kept when they are empty: the one says that there was a signing key, and a version must not come again.
        change.puts.push(self.of_approver.put(PairedApprover::key(approver))?);
        change.puts.push(self.of_enforcer.put(PairedEnforcer::key(enforcer))?);
        Ok(())
    }
}

pub(crate) fn too_many() -> Error {
    Error::breaks("approverId", "has as many pairs or keys as it may")
}
