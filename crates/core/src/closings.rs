//! Channels that are still to be closed in the store, with bounded memory: a store can be away for hours while enforcers
//! connect again and again.

use std::collections::{HashMap, VecDeque};

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

    /// What was closed on a shard before this order and is not confirmed.
    pub(crate) fn unconfirmed(&self, shard: Shard, before: u64) -> Vec<Unconfirmed> {
        let unconfirmed = self.unconfirmed.lock();
        let earlier = unconfirmed.closed.iter().take_while(|closed| closed.order < before);
        earlier.filter(|closed| closed.shard == shard).cloned().collect()
    }

    /// Forgets what [`PendingClosings::unconfirmed`] has returned.
    pub(crate) fn confirm(&self, shard: Shard, before: u64) {
        let is_left = |closed: &Unconfirmed| closed.shard != shard || closed.order >= before;
        self.unconfirmed.lock().closed.retain(is_left);
    }
}
