//! Sends what waits: a batch is what is in the queue when the last one is sent. No timer delays anything.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};

use async_nats::{Client, connection::State};
use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, HandOver, Ring},
};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::{
    counters::{Counters, Dropped},
    format::{
        Answer, MAX_ANSWERS, MAX_HAND_OVERS, MAX_MESSAGE, MAX_RINGS, NodeMessage, RingBatch, hand_over_size,
        ring_size,
    },
    outbox::{Outbox, Queue},
    seal::{Class, Sealer},
    subjects::Cell,
};

/// Announcements of one batch.
const MAX_BATCH: usize = 1 << 10;

/// A node that has nothing to say says so this often: others notice what did not arrive before it.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A message that the connection does not take for this long is dropped.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a message that are left for its numbers and for answers.
const RESERVE: usize = 64 + MAX_ANSWERS * 32;

pub(crate) struct Publisher {
    pub(crate) client: Client,
    pub(crate) sealer: Sealer,
    pub(crate) cell: Cell,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) counters: Arc<Counters>,
    /// Of the last batch.
    pub(crate) number: u64,
}

impl Publisher {
    /// Runs until the announcer is dropped and what it left is sent.
    pub(crate) async fn run(mut self, mut queue: Queue) {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting = Vec::with_capacity(MAX_BATCH);
        loop {
            let must_speak = tokio::select! {
                count = queue.recv_many(&mut waiting, MAX_BATCH) => match count {
                    0 => break,
                    _ => false,
                },
                () = self.outbox.wake.notified() => false,
                _ = heartbeat.tick() => true,
            };
            self.outbox.taken(&waiting);
            let batch = mem::replace(&mut waiting, Vec::with_capacity(MAX_BATCH));
            self.publish(batch, must_speak, &mut heartbeat).await;
        }
        drop(timeout(PUBLISH_TIMEOUT, self.client.flush()).await);
    }

    async fn publish(&mut self, batch: Vec<Announcement>, must_speak: bool, heartbeat: &mut Interval) {
        let (mut answers, challenges) = self.outbox.take_replies();
        // What was dropped is a number that nobody sees.
        self.number += u64::from(self.outbox.take_missed());
        if self.client.connection_state() != State::Connected {
            if !batch.is_empty() {
                self.counters.drop_for(Dropped::Away);
                self.number += 1;
            }
            return;
        }
        for (node, challenge) in challenges {
            self.send_to_node(&node, &NodeMessage::Challenge(challenge)).await;
        }
        let mut has_spoken = false;
        for same_timeline in batch.chunk_by(|one, next| one.timeline == next.timeline) {
            self.send_hand_overs(same_timeline).await;
            let timeline = same_timeline[0].timeline;
            for rings in self.ring_chunks(same_timeline) {
                self.send_rings(timeline, mem::take(&mut answers), rings).await;
                has_spoken = true;
            }
        }
        if !has_spoken && (must_speak || !answers.is_empty()) {
            self.send_rings(0, answers, Vec::new()).await;
            has_spoken = true;
        }
        if has_spoken {
            heartbeat.reset();
        }
    }

    /// The rings of a batch, each once with its last number, in messages that are not too long.
    fn ring_chunks(&mut self, batch: &[Announcement]) -> Vec<Vec<(Ring, u64)>> {
        let mut places: HashMap<&Ring, usize> = HashMap::new();
        let mut distinct: Vec<(&Ring, u64)> = Vec::new();
        for (ring, number) in batch.iter().flat_map(|announcement| &announcement.rings) {
            let place = *places.entry(ring).or_insert(distinct.len());
            match distinct.get_mut(place) {
                Some(known) => known.1 = *number,
                None => distinct.push((ring, *number)),
            }
        }
        let sized = distinct.into_iter().filter_map(|(ring, number)| {
            let size = ring_size(ring);
            if size.is_none() {
                self.counters.drop_for(Dropped::TooLarge);
                self.number += 1;
            }
            Some((size?, (ring.clone(), number)))
        });
        chunks(sized.collect(), MAX_RINGS)
    }

    async fn send_hand_overs(&mut self, batch: &[Announcement]) {
        let mut by_node: BTreeMap<&NodeId, Vec<(usize, Arc<HandOver>)>> = BTreeMap::new();
        for (node, hand_over) in batch.iter().flat_map(|announcement| &announcement.hand_overs) {
            // What does not fit was removed before it was queued.
            if let Some(size) = hand_over_size(hand_over) {
                by_node.entry(node).or_default().push((size, Arc::clone(hand_over)));
            }
        }
        let timeline = batch[0].timeline;
        for (node, hand_overs) in by_node {
            for hand_overs in chunks(hand_overs, MAX_HAND_OVERS) {
                self.send_to_node(node, &NodeMessage::HandOvers { timeline, hand_overs }).await;
            }
        }
    }

    async fn send_to_node(&mut self, node: &NodeId, message: &NodeMessage) {
        let subject = self.cell.node(node);
        if let Some(message) = message.encode() {
            self.send(Class::Node, subject, &message).await;
        }
    }

    async fn send_rings(&mut self, timeline: u64, answers: Vec<Answer>, rings: Vec<(Ring, u64)>) {
        self.number += 1;
        let batch = RingBatch { number: self.number, answers, timeline, rings };
        if let Some(message) = batch.encode() {
            self.send(Class::Rings, self.cell.rings(), &message).await;
        }
    }

    async fn send(&mut self, class: Class, subject: String, message: &[u8]) {
        let sealed = self.sealer.seal(class, &subject, message);
        let Some(sealed) = sealed else { return self.counters.drop_for(Dropped::TooLarge) };
        match timeout(PUBLISH_TIMEOUT, self.client.publish(subject, sealed.into())).await {
            Ok(Ok(())) => drop(self.counters.sent.inc()),
            _ => self.counters.drop_for(Dropped::Away),
        }
    }
}

/// Splits what has these sizes so that each part is a message of at most `max` items.
fn chunks<T>(sized: Vec<(usize, T)>, max: usize) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for (size, item) in sized {
        match parts.last_mut() {
            Some(part) if size <= room && part.len() < max => {
                part.push(item);
                room -= size;
            }
            _ => {
                parts.push(vec![item]);
                room = (MAX_MESSAGE - RESERVE).saturating_sub(size);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_order_the_size_and_the_count() {
        let parts = chunks((0..10).map(|item| (MAX_MESSAGE / 3, item)).collect(), 100);
        assert_eq!(parts, [vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7], vec![8, 9]]);
        assert_eq!(chunks((0..5).map(|item| (1, item)).collect(), 2), [vec![0, 1], vec![2, 3], vec![4]]);
        assert!(chunks::<u8>(Vec::new(), 2).is_empty());
    }
}
