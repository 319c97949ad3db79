//! What arrives: opened, checked, and given to the node.

use std::sync::Arc;

use async_nats::{Message, Subscriber};
use countersign_core::notify::{Announcement, Receiver};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use crate::{
    comparison::Comparison,
    counters::{Counters, Dropped},
    format::{Answer, NodeMessage, RingBatch, Session},
    outbox::Outbox,
    peers::{Admission, Peers},
    seal::Class,
};

/// Deliveries are sent before the ring that belongs to them; so many are taken before a ring is.
const TAKEN_BEFORE_RINGS: usize = 64;

pub(crate) struct Intake {
    pub(crate) peers: Peers,
    pub(crate) receiver: Arc<dyn Receiver>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) comparison: Arc<Comparison>,
    pub(crate) rings_subject: String,
    pub(crate) node_subject: String,
    /// The own node, for the announcements that deliveries are given to the node in.
    pub(crate) node: countersign_core::model::channels::NodeId,
}

impl Intake {
    /// Runs until the subscriptions end.
    pub(crate) async fn run(mut self, mut rings: Subscriber, mut own: Subscriber) {
        loop {
            tokio::select! {
                message = own.next() => match message {
                    Some(message) => self.take_node(&message),
                    None => return,
                },
                message = rings.next() => match message {
                    Some(message) => {
                        for _ in 0..TAKEN_BEFORE_RINGS {
                            let Some(Some(earlier)) = own.next().now_or_never() else { break };
                            self.take_node(&earlier);
                        }
                        self.take_rings(&message);
                    }
                    None => return,
                },
            }
        }
    }

    fn take_rings(&mut self, message: &Message) {
        if let Err(reason) = self.try_rings(&message.payload, Instant::now()) {
            self.counters.drop_for(reason);
        }
    }

    fn take_node(&mut self, message: &Message) {
        if let Err(reason) = self.try_node(&message.payload, Instant::now()) {
            self.counters.drop_for(reason);
        }
    }

    fn try_rings(&mut self, bytes: &[u8], now: Instant) -> Result<(), Dropped> {
        // An empty message asks for nothing: `probe` sends it to see whether it may.
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(opened) = self.peers.open(bytes, Class::Rings, &self.rings_subject, now)? else {
            return Ok(());
        };
        let batch = RingBatch::decode(&opened.message).map_err(|_| Dropped::Malformed)?;
        match self.peers.admit_rings(&opened, &batch) {
            Admission::Take => {}
            Admission::TakeAsFirst => self.comparison.ask(),
            Admission::TakeAfterGap(missing) => {
                self.counters.lost.inc_by(missing);
                self.comparison.ask();
            }
            Admission::Late => {
                self.counters.out_of_order.inc_by(1);
                return Ok(());
            }
            Admission::Unverified => {
                self.challenge(&opened.session, now);
                return Err(Dropped::Unverified);
            }
        }
        let RingBatch { timeline, rings, .. } = batch;
        self.counters.received.inc_by(1);
        if !rings.is_empty() {
            self.pass_on(Announcement { timeline, rings, hand_overs: Vec::new() });
        }
        Ok(())
    }

    fn try_node(&mut self, bytes: &[u8], now: Instant) -> Result<(), Dropped> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(opened) = self.peers.open(bytes, Class::Node, &self.node_subject, now)? else {
            return Ok(());
        };
        let message = NodeMessage::decode(&opened.message).map_err(|_| Dropped::Malformed)?;
        match (self.peers.admit_node(&opened), message) {
            (Admission::Late, _) => drop(self.counters.out_of_order.inc()),
            // Also of a sender that has not answered itself: each of two nodes that meet is the first to ask.
            (admission, NodeMessage::Challenge(challenge)) => {
                self.outbox.answer(Answer { to: opened.session, challenge }, now);
                if admission == Admission::Unverified {
                    self.challenge(&opened.session, now);
                }
            }
            (Admission::Unverified, NodeMessage::HandOvers { .. }) => {
                self.challenge(&opened.session, now);
                return Err(Dropped::Unverified);
            }
            (_, NodeMessage::HandOvers { timeline, hand_overs }) => {
                self.counters.received.inc_by(1);
                let hand_overs = hand_overs.into_iter().map(|it| (self.node.clone(), it)).collect();
                self.pass_on(Announcement { timeline, rings: Vec::new(), hand_overs });
            }
        }
        Ok(())
    }

    fn pass_on(&self, announcement: Announcement) {
        if !self.outbox.is_detached() {
            self.receiver.receive(announcement);
        }
    }

    fn challenge(&mut self, session: &Session, now: Instant) {
        if let Some((node, challenge)) = self.peers.challenge(session, now) {
            self.outbox.challenge(node, challenge);
        }
    }
}
