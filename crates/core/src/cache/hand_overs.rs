//! Deliveries with their messages as their commits knew them, for those who listen on this node. Dropping one costs a
//! read, nothing else.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    model::message::Message,
    notify::HandOver,
    store::{Delivery, MailboxKey},
};

/// What all of them may take together, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// An older one is not sent: what it is about may have been acknowledged or answered meanwhile.
const MAX_AGE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct HandOvers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// In ascending order of their numbers.
    by_mailbox: HashMap<MailboxKey, VecDeque<Arc<Kept>>>,
    /// The oldest first.
    by_age: VecDeque<Arc<Kept>>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    at: Instant,
    hand_over: Arc<HandOver>,
}

/// One that a feed has taken. It does not keep the message in memory: whoever sends too late reads it.
#[derive(Debug, Clone, Default)]
pub struct HandedOver(Weak<Kept>);

impl HandedOver {
    /// The message, unless it is too old by now or was dropped.
    pub fn message(&self) -> Option<Message> {
        let kept = self.0.upgrade()?;
        (kept.at.elapsed() < MAX_AGE).then(|| kept.hand_over.message.clone())
    }
}

impl HandOvers {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a delivery for a while. Returns false if it was dropped: it came late, or is too large.
    pub(crate) fn insert(&self, hand_over: Arc<HandOver>) -> bool {
        let bytes = size(&hand_over);
        let mut state = self.state();
        state.drop_old();
        while state.bytes + bytes > MAX_BYTES && state.drop_oldest() {}
        let mailbox = state.by_mailbox.entry(hand_over.mailbox.clone()).or_default();
        let number = hand_over.delivery.number;
        let is_late = mailbox.back().is_some_and(|last| last.hand_over.delivery.number >= number);
        if is_late || bytes > MAX_BYTES {
            return false;
        }
        let kept = Arc::new(Kept { at: Instant::now(), hand_over });
        mailbox.push_back(Arc::clone(&kept));
        state.by_age.push_back(kept);
        state.bytes += bytes;
        true
    }

    /// The delivery that comes right after this number, if it is here.
    pub(crate) fn next(&self, mailbox: &MailboxKey, after: u64) -> Option<(Delivery, HandedOver)> {
        let state = self.state();
        let kept = state.by_mailbox.get(mailbox)?;
        let found = kept.iter().find(|kept| kept.hand_over.delivery.number == after + 1)?;
        (found.at.elapsed() < MAX_AGE)
            .then(|| (found.hand_over.delivery.clone(), HandedOver(Arc::downgrade(found))))
    }

    pub(crate) fn clear(&self) {
        *self.state() = State::default();
    }
}

impl State {
    fn drop_old(&mut self) {
        while self.by_age.front().is_some_and(|oldest| oldest.at.elapsed() >= MAX_AGE) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.by_age.pop_front() else { return false };
        self.bytes = self.bytes.saturating_sub(size(&oldest.hand_over));
        let mailbox = &oldest.hand_over.mailbox;
        if let Some(kept) = self.by_mailbox.get_mut(mailbox) {
            kept.retain(|kept| !Arc::ptr_eq(kept, &oldest));
            if kept.is_empty() {
                self.by_mailbox.remove(mailbox);
            }
        }
        true
    }
}

fn size(hand_over: &HandOver) -> usize {
    size_of::<HandOver>() + hand_over.message.size()
}
