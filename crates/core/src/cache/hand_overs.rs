//! Deliveries with their messages as their commits knew them, for those who listen on this node. Dropping one costs a
//! read, nothing else.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    metrics::{HandOverDrop, HandOverMetrics},
    model::message::Message,
    notify::HandOver,
    store::{Delivery, MailboxKey},
};

/// What all of them may take together, in bytes.
const MAX_BYTES: usize = 32 << 20;

/// An older one is not sent: what it is about may have been acknowledged or answered meanwhile.
const MAX_AGE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct HandOvers {
    state: Mutex<State>,
    metrics: HandOverMetrics,
}

#[derive(Debug, Default)]
struct State {
    /// In ascending order of their numbers.
    by_mailbox: HashMap<MailboxKey, VecDeque<Arc<Kept>>>,
    /// All of them, the oldest first.
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
    pub(crate) fn new(metrics: HandOverMetrics) -> Self {
        Self { state: Mutex::default(), metrics }
    }

    /// Keeps a delivery for a while. Returns false if it was dropped: it came late, or is too large.
    pub(crate) fn insert(&self, hand_over: Arc<HandOver>) -> bool {
        let bytes = size(&hand_over);
        let mut state = self.state.lock();
        state.drop_old();
        while state.bytes + bytes > MAX_BYTES && state.drop_oldest() {
            self.metrics.dropped.at(HandOverDrop::Memory).inc();
        }
        let mailbox = state.by_mailbox.entry(hand_over.mailbox.clone()).or_default();
        let number = hand_over.delivery.number;
        let is_late = mailbox.back().is_some_and(|last| last.hand_over.delivery.number >= number);
        if is_late || bytes > MAX_BYTES {
            let reason = if is_late { HandOverDrop::Late } else { HandOverDrop::Memory };
            self.metrics.dropped.at(reason).inc();
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
        let state = self.state.lock();
        let kept = state.by_mailbox.get(mailbox)?;
        let Some(found) = kept.iter().find(|kept| kept.hand_over.delivery.number == after + 1) else {
            if kept.iter().any(|kept| kept.hand_over.delivery.number > after) {
                self.metrics.dropped.at(HandOverDrop::Behind).inc();
            }
            return None;
        };
        if found.at.elapsed() >= MAX_AGE {
            self.metrics.dropped.at(HandOverDrop::Late).inc();
            return None;
        }
        self.metrics.taken.inc();
        Some((found.hand_over.delivery.clone(), HandedOver(Arc::downgrade(found))))
    }

    /// Nobody on this node waits for a delivery that another node has sent.
    pub(crate) fn not_wanted(&self) {
        self.metrics.dropped.at(HandOverDrop::Unknown).inc();
    }

    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
    use tokio::time::advance;

    use super::*;
    use crate::{
        model::message::Party,
        store::{Key, Kind, Mailbox},
    };

    fn mailbox() -> MailboxKey {
        MailboxKey { tenant: "acme".parse().unwrap(), mailbox: Mailbox::Shared }
    }

    fn hand_over(number: u64, bytes: usize) -> Arc<HandOver> {
        let (at, until) = (Timestamp::from_unix_micros(0), Timestamp::from_unix_micros(1));
        let msg_id: countersign_wire::id::MsgId = format!("m-{number}").parse().unwrap();
        let delivery = Delivery {
            number,
            msg_id: msg_id.clone(),
            msg_type: MsgType::ApprovalRequest,
            subject: Key::new(Kind::Exchange, number),
            payload: None,
            at,
            until,
        };
        let message = Message {
            msg_id,
            msg_type: MsgType::ApprovalRequest,
            request_id: "r".parse().unwrap(),
            created_at: at,
            expires_at: None,
            from: Party::Enforcer("robot".parse().unwrap()),
            body: Bytes::from(vec![0; bytes]),
            trace: None,
        };
        Arc::new(HandOver { mailbox: mailbox(), delivery, message })
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_next_number_is_taken_and_by_everybody_who_waits_for_it() {
        let kept = HandOvers::default();
        assert!(kept.insert(hand_over(5, 1)) && kept.insert(hand_over(6, 1)));
        assert!(!kept.insert(hand_over(6, 1)) && !kept.insert(hand_over(4, 1)), "repeated, and late");
        assert!(kept.next(&mailbox(), 3).is_none() && kept.next(&mailbox(), 6).is_none());
        for _ in 0..2 {
            let (delivery, handed_over) = kept.next(&mailbox(), 4).unwrap();
            assert_eq!(delivery.number, 5);
            assert!(handed_over.message().is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_older_than_two_seconds_is_not_sent() {
        let kept = HandOvers::default();
        kept.insert(hand_over(1, 1));
        let (_, taken) = kept.next(&mailbox(), 0).unwrap();
        advance(Duration::from_millis(1_999)).await;
        assert!(kept.next(&mailbox(), 0).is_some() && taken.message().is_some());
        advance(Duration::from_millis(1)).await;
        assert!(kept.next(&mailbox(), 0).is_none() && taken.message().is_none());
        kept.insert(hand_over(2, 1));
        assert_eq!(kept.state.lock().by_age.len(), 1, "it is dropped when the next one comes");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_also_where_a_slow_reader_has_taken_much() {
        let kept = HandOvers::default();
        let mut taken = Vec::new();
        for number in 1..=100 {
            assert!(kept.insert(hand_over(number, 1 << 20)));
            taken.extend(kept.next(&mailbox(), number - 1).map(|(_, handed_over)| handed_over));
            assert!(kept.state.lock().bytes <= MAX_BYTES);
        }
        let in_memory = taken.iter().filter(|taken| taken.message().is_some()).count();
        assert!(in_memory < 32, "{in_memory} messages of 1 MB");
        assert!(taken[99].message().is_some(), "the newest stay");
        assert!(!kept.insert(hand_over(101, MAX_BYTES)), "too large for all of it");
    }
}
