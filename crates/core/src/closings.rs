//! Channels that are still to be closed in the store, with bounded memory: a store can be away for hours while enforcers
//! connect again and again.

use std::collections::{HashMap, HashSet, VecDeque};

use countersign_wire::id::{EnforcerId, TenantId};
use parking_lot::Mutex;

use crate::{model::channels::ChannelId, store::Shard};

/// Openings of one enforcer whose outcome is unknown. With as many a node opens no other channel for it.
const MAX_UNKNOWN_OPENINGS: usize = 16;

/// With as many closings that a failover could undo, the next ones wait for the lease that makes them durable.
const MAX_UNCONFIRMED: usize = 100_000;

/// Channels of one enforcer that are to be closed, by the attempts that opened them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    pub(crate) opened: Vec<String>,
    /// Those which these attempts may have opened, or may still open.
    pub(crate) unknown: Vec<String>,
}

impl Closing {
    pub(crate) fn opened(channel: &ChannelId) -> Self {
        Self { opened: vec![channel.attempt.clone()], ..Self::default() }
    }

    pub(crate) fn unknown(attempt: String) -> Self {
        Self { unknown: vec![attempt], ..Self::default() }
    }

    pub(crate) fn attempts(&self) -> impl Iterator<Item = &String> {
        self.opened.iter().chain(&self.unknown)
    }
}

/// A channel that is closed in the store, and that a failover could open again.
#[derive(Debug, Clone)]
pub(crate) struct Unconfirmed {
    order: u64,
    shard: Shard,
    pub(crate) tenant: TenantId,
    pub(crate) enforcer: EnforcerId,
    pub(crate) attempt: String,
}

#[derive(Debug, Default)]
struct UnconfirmedClosings {
    next: u64,
    closed: VecDeque<Unconfirmed>,
    /// The shards on which a task reads what was closed. One at a time: a slow store must not collect tasks.
    being_confirmed: HashSet<Shard>,
}

/// What is still to be closed. Each enforcer's entry has one task that works on it.
#[derive(Debug, Default)]
pub(crate) struct PendingClosings {
    pending: Mutex<HashMap<(TenantId, EnforcerId), Closing>>,
    unconfirmed: Mutex<UnconfirmedClosings>,
}

impl PendingClosings {
    /// Adds to what is pending for an enforcer. Whether nothing was: then the caller starts the task.
    pub(crate) fn add(&self, key: &(TenantId, EnforcerId), closing: Closing) -> bool {
        let mut pending = self.pending.lock();
        if let Some(entry) = pending.get_mut(key) {
            entry.opened.extend(closing.opened);
            entry.unknown.extend(closing.unknown);
            return false;
        }
        pending.insert(key.clone(), closing);
        true
    }

    pub(crate) fn get(&self, key: &(TenantId, EnforcerId)) -> Option<Closing> {
        self.pending.lock().get(key).cloned()
    }

    /// Removes what [`PendingClosings::get`] has returned. Whether nothing is pending any more: then the task ends.
    pub(crate) fn remove(&self, key: &(TenantId, EnforcerId), done: &Closing) -> bool {
        let mut pending = self.pending.lock();
        let Some(entry) = pending.get_mut(key) else { return true };
        entry.opened.drain(..done.opened.len());
        entry.unknown.drain(..done.unknown.len());
        let is_empty = entry.opened.is_empty() && entry.unknown.is_empty();
        if is_empty {
            pending.remove(key);
        }
        is_empty
    }

    /// Whether too many openings of an enforcer have an unknown outcome.
    pub(crate) fn is_full(&self, key: &(TenantId, EnforcerId)) -> bool {
        self.pending.lock().get(key).is_some_and(|closing| closing.unknown.len() >= MAX_UNKNOWN_OPENINGS)
    }

    /// Remembers what was closed until a lease has confirmed it. False if there is too much of it.
    pub(crate) fn closed(
        &self,
        shard: Shard,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        done: &Closing,
    ) -> bool {
        let mut unconfirmed = self.unconfirmed.lock();
        if unconfirmed.closed.len() >= MAX_UNCONFIRMED {
            return false;
        }
        for attempt in done.attempts() {
            let (tenant, enforcer, attempt) = (tenant.clone(), enforcer.clone(), attempt.clone());
            let order = unconfirmed.next;
            unconfirmed.next += 1;
            unconfirmed.closed.push_back(Unconfirmed { order, shard, tenant, enforcer, attempt });
        }
        true
    }

    /// The order of what is closed after this moment.
    pub(crate) fn next_order(&self) -> u64 {
        self.unconfirmed.lock().next
    }

    /// What was closed on a shard before this order, for a task that confirms it and says when it has ended. Empty if another
    /// task does, or if there is nothing: then no task starts.
    pub(crate) fn start_confirming(&self, shard: Shard, before: u64) -> Vec<Unconfirmed> {
        let mut unconfirmed = self.unconfirmed.lock();
        if unconfirmed.being_confirmed.contains(&shard) {
            return Vec::new();
        }
        let earlier = unconfirmed.closed.iter().take_while(|closed| closed.order < before);
        let earlier: Vec<Unconfirmed> = earlier.filter(|closed| closed.shard == shard).cloned().collect();
        if !earlier.is_empty() {
            unconfirmed.being_confirmed.insert(shard);
        }
        earlier
    }

    /// The task has ended. What was closed before this order is confirmed; `None` if nothing is.
    pub(crate) fn end_confirming(&self, shard: Shard, confirmed_before: Option<u64>) {
        let mut unconfirmed = self.unconfirmed.lock();
        unconfirmed.being_confirmed.remove(&shard);
        if let Some(before) = confirmed_before {
            unconfirmed.closed.retain(|closed| closed.shard != shard || closed.order >= before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_task_at_a_time_confirms_what_was_closed_before_it() {
        let (closings, shard, other) = (PendingClosings::default(), Shard(0), Shard(1));
        let (tenant, robot) = ("acme".parse().unwrap(), "robot".parse().unwrap());
        let close = |shard, attempt: &str| {
            closings.closed(shard, &tenant, &robot, &Closing::unknown(attempt.to_owned()));
        };
        let attempts = |found: Vec<Unconfirmed>| found.into_iter().map(|one| one.attempt).collect::<Vec<_>>();
        close(shard, "first");
        close(other, "elsewhere");
        let before = closings.next_order();
        close(shard, "later");
        assert_eq!(attempts(closings.start_confirming(shard, before)), ["first"]);
        assert!(closings.start_confirming(shard, before).is_empty(), "a task is at it");
        closings.end_confirming(shard, None);
        assert_eq!(attempts(closings.start_confirming(shard, before)), ["first"], "it failed");
        closings.end_confirming(shard, Some(before));
        assert_eq!(attempts(closings.start_confirming(shard, closings.next_order())), ["later"]);
        assert_eq!(attempts(closings.start_confirming(other, before)), ["elsewhere"]);
    }
}
