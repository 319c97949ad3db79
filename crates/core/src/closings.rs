//! Channels that are still to be closed in the store, with bounded memory: a store can be away for hours while enforcers
//! connect again and again.

use std::collections::HashMap;

use countersign_wire::id::{EnforcerId, TenantId};
use parking_lot::Mutex;

use crate::model::channels::ChannelNumber;

/// Openings of one enforcer whose outcome is unknown. With as many a node opens no other channel for it.
const MAX_UNKNOWN_OPENINGS: usize = 16;

/// Channels of one enforcer that are to be closed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    pub(crate) numbers: Vec<ChannelNumber>,
    /// Those which these attempts may have opened, or may still open.
    pub(crate) attempts: Vec<String>,
}

impl Closing {
    pub(crate) fn of_number(number: ChannelNumber) -> Self {
        Self { numbers: vec![number], ..Self::default() }
    }

    pub(crate) fn of_attempt(attempt: String) -> Self {
        Self { attempts: vec![attempt], ..Self::default() }
    }
}

/// What is still to be closed. Each enforcer's entry has one task that works on it.
#[derive(Debug, Default)]
pub(crate) struct PendingClosings(Mutex<HashMap<(TenantId, EnforcerId), Closing>>);

impl PendingClosings {
    /// Adds to what is pending for an enforcer. Whether nothing was: then the caller starts the task.
    pub(crate) fn add(&self, key: &(TenantId, EnforcerId), closing: Closing) -> bool {
        let mut pending = self.0.lock();
        if let Some(entry) = pending.get_mut(key) {
            entry.numbers.extend(closing.numbers);
            entry.attempts.extend(closing.attempts);
            return false;
        }
        pending.insert(key.clone(), closing);
        true
    }

    pub(crate) fn get(&self, key: &(TenantId, EnforcerId)) -> Option<Closing> {
        self.0.lock().get(key).cloned()
    }

    /// Removes what [`PendingClosings::get`] has returned. Whether nothing is pending any more: then the task ends.
    pub(crate) fn remove(&self, key: &(TenantId, EnforcerId), done: &Closing) -> bool {
        let mut pending = self.0.lock();
        let Some(entry) = pending.get_mut(key) else { return true };
        entry.numbers.drain(..done.numbers.len());
        entry.attempts.drain(..done.attempts.len());
        let is_empty = entry.numbers.is_empty() && entry.attempts.is_empty();
        if is_empty {
            pending.remove(key);
        }
        is_empty
    }

    /// Whether too many openings of an enforcer have an unknown outcome.
    pub(crate) fn is_full(&self, key: &(TenantId, EnforcerId)) -> bool {
        self.0.lock().get(key).is_some_and(|closing| closing.attempts.len() >= MAX_UNKNOWN_OPENINGS)
    }
}
