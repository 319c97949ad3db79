//! Nodes that record what they receive.

use std::{mem, sync::Arc, time::Duration};

use bytes::Bytes;
use countersign_core::{
    model::{
        channels::NodeId,
        message::{Message, Party},
    },
    notify::{Announcement, Announcer, HandOver, Receiver, Ring},
    store::{Delivery, Key, Kind, Mailbox, MailboxKey, PayloadId},
};
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

use super::DoorbellHarness;

/// What a node has received since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) rings: Vec<(Ring, u64)>,
    pub(super) hand_overs: Vec<(u64, Arc<HandOver>)>,
}

#[derive(Default)]
struct Recorder {
    received: Mutex<Received>,
    delay: Mutex<Duration>,
    changed: Notify,
}

impl Receiver for Recorder {
    fn receive(&self, announcement: Announcement) {
        #[expect(clippy::disallowed_methods, reason = "it is the receiver that is slow, and not a task")]
        std::thread::sleep(*self.delay.lock());
        let mut received = self.received.lock();
        received.rings.extend(announcement.rings);
        let hand_overs = announcement.hand_overs.into_iter();
        received.hand_overs.extend(hand_overs.map(|(_, hand_over)| (announcement.timeline, hand_over)));
        drop(received);
        self.changed.notify_one();
    }
}

pub(super) struct Node {
    pub(super) id: NodeId,
    recorder: Arc<Recorder>,
    announcer: Option<Box<dyn Announcer>>,
}

impl Node {
    /// Attaches nodes and returns when each hears each.
    pub(super) async fn attach_all<const N: usize>(
        harness: &dyn DoorbellHarness,
        ids: [&str; N],
    ) -> [Self; N] {
        let nodes = ids.map(|id| {
            let (id, recorder) = (NodeId(id.to_owned()), Arc::new(Recorder::default()));
            let announcer = harness.doorbell().attach(&id, Arc::clone(&recorder) as Arc<dyn Receiver>);
            Self { id, recorder, announcer: Some(announcer) }
        });
        for speaker in &nodes {
            let hello = (ring(&format!("hello-of-{}", speaker.id.0)), 1);
            for listener in nodes.iter().filter(|node| node.id != speaker.id) {
                loop {
                    speaker.announce(announcement(vec![hello.clone()]));
                    let heard = listener.until(|got| got.rings.contains(&hello));
                    if timeout(Duration::from_millis(50), heard).await.is_ok() {
                        break;
                    }
                }
            }
        }
        // What is still on its way arrives before anything that is announced from now on.
        for speaker in &nodes {
            let end = (ring(&format!("end-of-{}", speaker.id.0)), 1);
            speaker.announce(announcement(vec![end.clone()]));
            for listener in nodes.iter().filter(|node| node.id != speaker.id) {
                listener.until_kept(|got| got.rings.contains(&end)).await;
            }
        }
        for node in &nodes {
            drop(node.take());
        }
        nodes
    }

    pub(super) fn announce(&self, announcement: Announcement) {
        self.announcer.as_ref().expect("it is attached").announce(announcement);
    }

    pub(super) fn detach(&mut self) {
        self.announcer = None;
    }

    /// Makes the receiver slow.
    pub(super) fn delay(&self, delay: Duration) {
        *self.recorder.delay.lock() = delay;
    }

    pub(super) fn take(&self) -> Received {
        mem::take(&mut self.recorder.received.lock())
    }

    pub(super) fn discard_hand_overs(&self) {
        self.recorder.received.lock().hand_overs.clear();
    }

    async fn until_kept(&self, is_enough: impl Fn(&Received) -> bool) {
        while !is_enough(&self.recorder.received.lock()) {
            self.recorder.changed.notified().await;
        }
    }

    /// Waits until it has received enough, and takes all of it.
    pub(super) async fn until(&self, is_enough: impl Fn(&Received) -> bool) -> Received {
        self.until_kept(is_enough).await;
        self.take()
    }

    /// The next rings, which may be of several announcements.
    pub(super) async fn next_rings(&self) -> Vec<(Ring, u64)> {
        self.until(|got| !got.rings.is_empty()).await.rings
    }
}

pub(super) fn ring(name: &str) -> Ring {
    Ring::Record("acme".parse().unwrap(), Key::new(Kind::Exchange, name))
}

pub(super) fn announcement(rings: Vec<(Ring, u64)>) -> Announcement {
    Announcement { timeline: 5, rings, hand_overs: Vec::new() }
}

/// A delivery with a body of this size.
pub(super) fn hand_over(number: u64, size: usize) -> HandOver {
    let at = Timestamp::from_unix_micros(1_700_000_000_000_000);
    let enforcer = Mailbox::Enforcer("robot".parse().unwrap());
    HandOver {
        mailbox: MailboxKey { tenant: "acme".parse().unwrap(), mailbox: enforcer },
        delivery: Delivery {
            number,
            msg_id: "message".parse().unwrap(),
            msg_type: MsgType::DecisionDeliver,
            subject: Key::new(Kind::Exchange, "request"),
            payload: Some(PayloadId(u128::MAX - 1)),
            at,
            until: at.plus(Duration::from_mins(1)),
        },
        message: Message {
            msg_id: "message".parse().unwrap(),
            msg_type: MsgType::DecisionDeliver,
            request_id: "request".parse().unwrap(),
            created_at: at,
            expires_at: Some(at.plus(Duration::from_hours(1))),
            from: Party::Approver("ada".parse().unwrap()),
            body: Bytes::from(vec![b'x'; size]),
            trace: Some(Bytes::from_static(b"{}")),
        },
    }
}
