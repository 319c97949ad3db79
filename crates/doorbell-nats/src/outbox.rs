//! What waits to be sent. Bounded: what is too much is dropped and counted.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, Announcer},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

use crate::{
    counters::{Counters, Dropped},
    format::{Answer, Challenge, MAX_ANSWERS, hand_over_size},
    peers::Allowance,
    subjects::is_node_id,
};

/// Announcements that wait at the same time.
const MAX_QUEUED: usize = 8 << 10;

/// Bytes of deliveries that wait at the same time; their bodies are shared with whoever has them too.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// Answers to challenges in a second. Old challenges can be sent again by anybody.
const MAX_ANSWERS_A_SECOND: u32 = 100;

/// What the connection's tasks and the announcer share.
pub(crate) struct Outbox {
    node: NodeId,
    counters: Arc<Counters>,
    queued_bytes: AtomicUsize,
    /// Whether rings were dropped since the last batch: its number says so to the others.
    missed: AtomicBool,
    detached: AtomicBool,
    replies: Mutex<Replies>,
    /// Notified when there are replies.
    pub(crate) wake: Notify,
}

/// What this node says without being asked by anybody here.
#[derive(Debug)]
struct Replies {
    answers: Vec<Answer>,
    challenges: Vec<(NodeId, Challenge)>,
    allowance: Allowance,
}

/// The end of the queue that the publisher reads.
pub(crate) type Queue = mpsc::Receiver<Announcement>;

impl Outbox {
    pub(crate) fn new(node: NodeId, counters: Arc<Counters>) -> (Arc<Self>, QueueingAnnouncer, Queue) {
        let allowance = Allowance::new(MAX_ANSWERS_A_SECOND);
        let outbox = Arc::new(Self {
            node,
            counters,
            queued_bytes: AtomicUsize::new(0),
            missed: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            replies: Mutex::new(Replies { answers: Vec::new(), challenges: Vec::new(), allowance }),
            wake: Notify::new(),
        });
        let (sender, queue) = mpsc::channel(MAX_QUEUED);
        (Arc::clone(&outbox), QueueingAnnouncer { outbox, sender }, queue)
    }

    /// Repeats to all what another node asked for. Its newest challenge counts.
    pub(crate) fn answer(&self, answer: Answer, now: Instant) {
        let mut replies = self.replies.lock();
        if !replies.allowance.take(now) {
            return;
        }
        replies.answers.retain(|earlier| earlier.to != answer.to);
        if replies.answers.len() < MAX_ANSWERS {
            replies.answers.push(answer);
        }
        drop(replies);
        self.wake.notify_one();
    }

    /// Asks another node to prove that it runs.
    pub(crate) fn challenge(&self, node: NodeId, challenge: Challenge) {
        self.replies.lock().challenges.push((node, challenge));
        self.wake.notify_one();
    }

    pub(crate) fn take_replies(&self) -> (Vec<Answer>, Vec<(NodeId, Challenge)>) {
        let mut replies = self.replies.lock();
        (mem::take(&mut replies.answers), mem::take(&mut replies.challenges))
    }

    /// Whether something was dropped since the last call.
    pub(crate) fn take_missed(&self) -> bool {
        self.missed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    /// Counts what the publisher took from the queue.
    pub(crate) fn taken(&self, announcements: &[Announcement]) {
        self.counters.queued.dec_by(announcements.len().try_into().unwrap_or(i64::MAX));
        let bytes = announcements.iter().map(bytes_of).sum();
        self.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Removes deliveries that are not sent: too large, for this node, or for nobody.
    fn keep_what_fits(&self, announcement: &mut Announcement) {
        announcement.hand_overs.retain(|(to, hand_over)| {
            let fits = hand_over_size(hand_over).is_some();
            if !fits {
                self.counters.drop_for(Dropped::TooLarge);
            }
            fits && *to != self.node && is_node_id(&to.0)
        });
        if self.queued_bytes.load(Ordering::Acquire) + bytes_of(announcement) > MAX_QUEUED_BYTES {
            announcement.hand_overs.iter().for_each(|_| self.counters.drop_for(Dropped::QueueFull));
            announcement.hand_overs.clear();
        }
    }
}

fn bytes_of(announcement: &Announcement) -> usize {
    announcement.hand_overs.iter().filter_map(|(_, hand_over)| hand_over_size(hand_over)).sum()
}

/// Puts announcements into the queue. When it is dropped, what is queued is still sent, and nothing is received any more.
pub(crate) struct QueueingAnnouncer {
    outbox: Arc<Outbox>,
    sender: mpsc::Sender<Announcement>,
}

impl Announcer for QueueingAnnouncer {
    fn announce(&self, mut announcement: Announcement) {
        let outbox = &self.outbox;
        outbox.keep_what_fits(&mut announcement);
        if announcement.rings.is_empty() && announcement.hand_overs.is_empty() {
            return;
        }
        let bytes = bytes_of(&announcement);
        // Counted before it can be taken.
        outbox.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        outbox.counters.queued.inc();
        if self.sender.try_send(announcement).is_err() {
            outbox.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
            outbox.counters.queued.dec();
            outbox.counters.drop_for(Dropped::QueueFull);
            outbox.missed.store(true, Ordering::Release);
        }
    }
}

impl Drop for QueueingAnnouncer {
    fn drop(&mut self) {
        self.outbox.detached.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use countersign_core::{
        model::message::{Message, Party},
        notify::{HandOver, Ring},
        store::{Delivery, Key, Kind, Mailbox, MailboxKey},
    };
    use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};

    use super::*;

    fn outbox() -> (Arc<Outbox>, QueueingAnnouncer, Queue, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        let (outbox, announcer, queue) = Outbox::new(NodeId("own".to_owned()), Arc::clone(&counters));
        (outbox, announcer, queue, counters)
    }

    fn announcement(to: &str, size: usize) -> Announcement {
        let hand_over = HandOver {
            mailbox: MailboxKey { tenant: "t".parse().unwrap(), mailbox: Mailbox::Shared },
            delivery: Delivery {
                number: 1,
                msg_id: "m".parse().unwrap(),
                msg_type: MsgType::DecisionDeliver,
                subject: Key::new(Kind::Exchange, "r"),
                payload: None,
                at: Timestamp::MIN,
                until: Timestamp::MAX,
            },
            message: Message {
                msg_id: "m".parse().unwrap(),
                msg_type: MsgType::DecisionDeliver,
                request_id: "r".parse().unwrap(),
                created_at: Timestamp::MIN,
                expires_at: None,
                from: Party::Approver("a".parse().unwrap()),
                body: Bytes::from(vec![0; size]),
                trace: None,
            },
        };
        let ring = Ring::Record("t".parse().unwrap(), Key::new(Kind::Exchange, "r"));
        Announcement {
            timeline: 1,
            rings: vec![(ring, 1)],
            hand_overs: vec![(NodeId(to.to_owned()), Arc::new(hand_over))],
        }
    }

    #[tokio::test]
    async fn only_small_deliveries_to_others_are_sent() {
        let (_, announcer, mut queue, counters) = outbox();
        let cases = [("other", 16 << 10, 1), ("other", (16 << 10) + 1, 0), ("own", 1, 0), ("o.t>her", 1, 0)];
        for (to, size, sent) in cases {
            announcer.announce(announcement(to, size));
            assert_eq!(queue.try_recv().unwrap().hand_overs.len(), sent, "{to} {size}");
        }
        assert_eq!(counters.dropped(Dropped::TooLarge), 1);
    }

    #[tokio::test]
    async fn a_full_queue_drops_counts_and_says_that_something_is_missing() {
        let (outbox, announcer, mut queue, counters) = outbox();
        let rings_only = || Announcement { hand_overs: Vec::new(), ..announcement("other", 1) };
        for _ in 0..MAX_QUEUED + 100 {
            announcer.announce(rings_only());
        }
        assert_eq!(counters.dropped(Dropped::QueueFull), 100);
        assert_eq!(counters.queue_depth(), MAX_QUEUED as u64);
        assert!(outbox.take_missed() && !outbox.take_missed());
        let mut taken = Vec::new();
        queue.recv_many(&mut taken, usize::MAX).await;
        outbox.taken(&taken);
        assert_eq!((taken.len(), counters.queue_depth()), (MAX_QUEUED, 0));
    }

    #[tokio::test]
    async fn deliveries_that_wait_are_bounded_by_their_bytes_and_their_rings_are_kept() {
        let (outbox, announcer, mut queue, counters) = outbox();
        for _ in 0..2_000 {
            announcer.announce(announcement("other", 16 << 10));
        }
        let mut taken = Vec::new();
        queue.recv_many(&mut taken, usize::MAX).await;
        assert_eq!(taken.len(), 2_000, "every ring is there");
        let bytes: usize = taken.iter().map(bytes_of).sum();
        assert!(bytes <= MAX_QUEUED_BYTES && bytes > MAX_QUEUED_BYTES / 2, "{bytes}");
        let kept = taken.iter().filter(|it| !it.hand_overs.is_empty()).count() as u64;
        assert_eq!(counters.dropped(Dropped::QueueFull), 2_000 - kept);
        outbox.taken(&taken);
        announcer.announce(announcement("other", 16 << 10));
        assert_eq!(queue.recv().await.unwrap().hand_overs.len(), 1, "there is room again");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_bounded_and_the_newest_challenge_of_a_node_counts() {
        let (outbox, ..) = outbox();
        for challenge in 0..10 {
            outbox.answer(Answer { to: [1; 16], challenge: [challenge; 16] }, Instant::now());
        }
        assert_eq!(outbox.take_replies().0, [Answer { to: [1; 16], challenge: [9; 16] }]);
        for to in 0..200 {
            outbox.answer(Answer { to: [to; 16], challenge: [0; 16] }, Instant::now());
        }
        assert_eq!(outbox.take_replies().0.len(), MAX_ANSWERS, "in one message");
        outbox.answer(Answer { to: [7; 16], challenge: [0; 16] }, Instant::now());
        assert!(outbox.take_replies().0.is_empty(), "this second's are used up");
    }
}
