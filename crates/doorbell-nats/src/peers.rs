//! Whose messages count, and which of them. Pure: the time is an argument.
//!
//! A counter that only rises keeps out what is sent again, but a node that has just started has seen no counter yet, and
//! anybody could send it what other nodes said long ago. So a sender counts from its answer to a challenge on: this node
//! makes up 128 random bits for each sender that it does not know, and takes the sender's messages from the one that
//! repeats them. Only a node that runs now, and has the secret, can do that. Until then its rings are missed, which costs
//! one comparison when it has answered.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_core::{model::channels::NodeId, random::RandomSource};
use tokio::time::Instant;

use crate::{
    counters::Dropped,
    format::{Challenge, RingBatch, Session},
    seal::{Class, ClusterKey, Header, Sealed, SenderKeys},
};

/// Senders that are remembered: a cluster's nodes, and those before their last restarts.
const MAX_PEERS: usize = 256;

/// A sender that does not answer is asked again after this.
const CHALLENGE_INTERVAL: Duration = Duration::from_secs(1);

/// Challenges to all senders together, in a second: old messages of many senders must not make this node talk.
const MAX_CHALLENGES: u32 = 100;

/// How often something may happen in each second.
#[derive(Debug)]
pub(crate) struct Allowance {
    max: u32,
    used: u32,
    since: Option<Instant>,
}

impl Allowance {
    pub(crate) fn new(max: u32) -> Self {
        Self { max, used: 0, since: None }
    }

    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.used, self.since) = (0, Some(now));
        }
        let allowed = self.used < self.max;
        self.used += u32::from(allowed);
        allowed
    }
}

/// The other nodes, as far as this one knows them.
pub(crate) struct Peers {
    node: NodeId,
    session: Session,
    key: ClusterKey,
    random: Arc<dyn RandomSource>,
    table: HashMap<Session, Peer>,
    challenges: Allowance,
}

struct Peer {
    node: NodeId,
    keys: SenderKeys,
    state: State,
    heard: Instant,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// It has not answered yet.
    Unverified { challenge: Challenge, sent: Option<Instant> },
    /// The highest counter of each class, and the number of the last batch.
    Verified { rings: u64, node: u64, batch: u64 },
}

/// A message that was sealed with the cluster's secret. That alone does not say when.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) session: Session,
    counter: u64,
    pub(crate) message: Vec<u8>,
}

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Take,
    /// Take it; so many batches before it did not arrive.
    TakeAfterGap(u64),
    /// Take it: its sender has just proved that it runs, and whatever it said before was missed.
    TakeAsFirst,
    /// A newer one came before.
    Late,
    /// Its sender has not proved that it runs.
    Unverified,
}

impl Peers {
    pub(crate) fn new(
        node: NodeId,
        session: Session,
        key: ClusterKey,
        random: Arc<dyn RandomSource>,
    ) -> Self {
        let challenges = Allowance::new(MAX_CHALLENGES);
        Self { node, session, key, random, table: HashMap::new(), challenges }
    }

    /// Decrypts a message. `None` for one that this node has sent itself.
    pub(crate) fn open(
        &mut self,
        bytes: &[u8],
        class: Class,
        subject: &str,
        now: Instant,
    ) -> Result<Option<Opened>, Dropped> {
        let sealed = Sealed::parse(bytes, class)?;
        let Header { node, session, counter } = &sealed.header;
        if *node == self.node || *session == self.session {
            return Ok(None);
        }
        let opened = |message| Some(Opened { session: *session, counter: *counter, message });
        if let Some(peer) = self.table.get_mut(session).filter(|peer| peer.node == *node) {
            let message = sealed.open(&peer.keys, subject)?;
            peer.heard = now;
            return Ok(opened(message));
        }
        let keys = self.key.sender(node, session);
        let message = sealed.open(&keys, subject)?;
        self.insert(node.clone(), *session, keys, now);
        Ok(opened(message))
    }

    fn insert(&mut self, node: NodeId, session: Session, keys: SenderKeys, now: Instant) {
        if self.table.len() >= MAX_PEERS {
            // Those that have not answered first: old messages of nodes that are gone must not displace one that runs.
            let is_verified = |peer: &Peer| matches!(peer.state, State::Verified { .. });
            let oldest = self.table.iter().min_by_key(|(_, peer)| (is_verified(peer), peer.heard));
            if let Some(session) = oldest.map(|(session, _)| *session) {
                self.table.remove(&session);
            }
        }
        let mut challenge = [0; 16];
        self.random.fill(&mut challenge);
        let state = State::Unverified { challenge, sent: None };
        self.table.insert(session, Peer { node, keys, state, heard: now });
    }

    /// Whether to take a message to all nodes.
    pub(crate) fn admit_rings(&mut self, opened: &Opened, batch: &RingBatch) -> Admission {
        let own = self.session;
        let Some(peer) = self.table.get_mut(&opened.session) else { return Admission::Unverified };
        match &mut peer.state {
            State::Unverified { challenge, .. } => {
                let answers =
                    |answer: &&crate::format::Answer| answer.to == own && answer.challenge == *challenge;
                if batch.answers.iter().find(answers).is_none() {
                    return Admission::Unverified;
                }
                let counter = opened.counter;
                peer.state = State::Verified { rings: counter, node: counter, batch: batch.number };
                Admission::TakeAsFirst
            }
            State::Verified { rings, .. } if opened.counter <= *rings => Admission::Late,
            State::Verified { rings, batch: last, .. } => {
                let missing = batch.number.saturating_sub(last.saturating_add(1));
                (*rings, *last) = (opened.counter, batch.number);
                if missing == 0 { Admission::Take } else { Admission::TakeAfterGap(missing) }
            }
        }
    }

    /// Whether to take a message to this node.
    pub(crate) fn admit_node(&mut self, opened: &Opened) -> Admission {
        match self.table.get_mut(&opened.session).map(|peer| &mut peer.state) {
            None | Some(State::Unverified { .. }) => Admission::Unverified,
            Some(State::Verified { node, .. }) if opened.counter <= *node => Admission::Late,
            Some(State::Verified { node, .. }) => {
                *node = opened.counter;
                Admission::Take
            }
        }
    }

    /// The challenge to send to a sender that has not answered yet, if it is time to.
    pub(crate) fn challenge(&mut self, session: &Session, now: Instant) -> Option<(NodeId, Challenge)> {
        let peer = self.table.get_mut(session)?;
        let State::Unverified { challenge, sent } = &mut peer.state else { return None };
        let is_time = sent.is_none_or(|sent| now.duration_since(sent) >= CHALLENGE_INTERVAL);
        (is_time && self.challenges.take(now)).then_some(())?;
        *sent = Some(now);
        Some((peer.node.clone(), *challenge))
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::random::TestRandom;
    use countersign_wire::mac::MacKey;

    use super::*;
    use crate::{format::Answer, seal::Sealer, subjects::Cell};

    const OWN: Session = [1; 16];

    fn key() -> ClusterKey {
        ClusterKey::new(MacKey::new([7; 32]), Cell::new("main").unwrap())
    }

    fn peers() -> Peers {
        Peers::new(NodeId("own".to_owned()), OWN, key(), Arc::new(TestRandom))
    }

    /// Another node, as far as its messages go.
    struct Other(Sealer);

    impl Other {
        fn new(name: &str, session: u32) -> Self {
            let mut bytes = [9; 16];
            bytes[..4].copy_from_slice(&session.to_be_bytes());
            Self(Sealer::new(&key(), NodeId(name.to_owned()), bytes))
        }

        fn rings(&mut self, number: u64, answers: Vec<Answer>) -> Vec<u8> {
            let batch = RingBatch { number, answers, ..RingBatch::default() };
            self.0.seal(Class::Rings, "rings", &batch.encode().unwrap()).unwrap()
        }

        fn direct(&mut self) -> Vec<u8> {
            self.0.seal(Class::Node, "own", b"").unwrap()
        }
    }

    impl Peers {
        fn opened(&mut self, bytes: &[u8], class: Class) -> Opened {
            let subject = if class == Class::Rings { "rings" } else { "own" };
            self.open(bytes, class, subject, Instant::now()).unwrap().unwrap()
        }

        fn take_rings(&mut self, bytes: &[u8]) -> Admission {
            let opened = self.opened(bytes, Class::Rings);
            self.admit_rings(&opened, &RingBatch::decode(&opened.message).unwrap())
        }

        fn take_node(&mut self, bytes: &[u8]) -> Admission {
            let opened = self.opened(bytes, Class::Node);
            self.admit_node(&opened)
        }

        fn challenge_to(&mut self, bytes: &[u8]) -> Option<Challenge> {
            let session = self.opened(bytes, Class::Rings).session;
            self.challenge(&session, Instant::now()).map(|(_, challenge)| challenge)
        }

        /// Makes this node known.
        fn meet(&mut self, other: &mut Other) {
            let hello = other.rings(1, Vec::new());
            let challenge = self.challenge_to(&hello).unwrap();
            let answer = other.rings(2, vec![Answer { to: OWN, challenge }]);
            assert_eq!(self.take_rings(&answer), Admission::TakeAsFirst);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_counts_from_its_answer_on() {
        let (mut peers, mut other) = (peers(), Other::new("other", 1));
        let (before, to_node_before) = (other.rings(1, Vec::new()), other.direct());
        assert_eq!(peers.take_rings(&before), Admission::Unverified);
        assert_eq!(peers.take_node(&to_node_before), Admission::Unverified);
        let challenge = peers.challenge_to(&before).unwrap();
        let wrong = [Answer { to: OWN, challenge: [0; 16] }, Answer { to: [2; 16], challenge }];
        assert_eq!(peers.take_rings(&other.rings(2, wrong.to_vec())), Admission::Unverified);
        let answer = other.rings(3, vec![Answer { to: OWN, challenge }]);
        assert_eq!(peers.take_rings(&answer), Admission::TakeAsFirst);
        // What it said before is not taken afterwards either, on neither subject.
        assert_eq!(peers.take_rings(&before), Admission::Late);
        assert_eq!(peers.take_node(&to_node_before), Admission::Late);
        assert_eq!(peers.take_node(&other.direct()), Admission::Take);
        assert_eq!(peers.take_rings(&other.rings(4, Vec::new())), Admission::Take);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_again_or_out_of_order_is_late_and_a_gap_is_counted() {
        let (mut peers, mut other) = (peers(), Other::new("other", 1));
        peers.meet(&mut other);
        let (third, fourth, ninth) =
            (other.rings(3, Vec::new()), other.rings(4, Vec::new()), other.rings(9, Vec::new()));
        assert_eq!(peers.take_rings(&fourth), Admission::TakeAfterGap(1));
        assert_eq!(peers.take_rings(&third), Admission::Late);
        assert_eq!(peers.take_rings(&fourth), Admission::Late);
        assert_eq!(peers.take_rings(&ninth), Admission::TakeAfterGap(4));
        let (first, second) = (other.direct(), other.direct());
        assert_eq!(peers.take_node(&second), Admission::Take);
        assert_eq!(peers.take_node(&first), Admission::Late);
        assert_eq!(peers.take_node(&second), Admission::Late);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_answer_is_no_answer_to_a_node_that_was_forgotten_or_restarted() {
        let mut other = Other::new("other", 1);
        let mut before_restart = peers();
        let hello = other.rings(1, Vec::new());
        let challenge = before_restart.challenge_to(&hello).unwrap();
        let answer = other.rings(2, vec![Answer { to: OWN, challenge }]);
        assert_eq!(before_restart.take_rings(&answer), Admission::TakeAsFirst);
        // Even with the same session, the challenge is another one.
        assert_eq!(peers().take_rings(&answer), Admission::Unverified);
    }

    #[tokio::test(start_paused = true)]
    async fn own_messages_are_ignored() {
        let mut peers = peers();
        for (name, session) in [("own", [3; 16]), ("other", OWN)] {
            let mut sealer = Sealer::new(&key(), NodeId(name.to_owned()), session);
            let own = sealer.seal(Class::Rings, "rings", b"").unwrap();
            assert!(peers.open(&own, Class::Rings, "rings", Instant::now()).unwrap().is_none(), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn old_messages_of_many_senders_displace_nobody_who_answered_and_cause_few_challenges() {
        let (mut peers, mut known) = (peers(), Other::new("known", 0));
        peers.meet(&mut known);
        tokio::time::advance(Duration::from_secs(1)).await;
        let mut challenges = 0;
        for session in 1..2_000 {
            let old = Other::new("gone", session).rings(7, Vec::new());
            assert_eq!(peers.take_rings(&old), Admission::Unverified);
            challenges += u32::from(peers.challenge_to(&old).is_some());
        }
        assert!(peers.table.len() <= MAX_PEERS, "{}", peers.table.len());
        assert_eq!(challenges, MAX_CHALLENGES, "in this second");
        assert_eq!(peers.take_rings(&known.rings(3, Vec::new())), Admission::Take);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_does_not_answer_is_asked_once_a_second() {
        let (mut peers, mut other) = (peers(), Other::new("other", 1));
        let hello = other.rings(1, Vec::new());
        let first = peers.challenge_to(&hello).unwrap();
        assert_eq!(peers.challenge_to(&hello), None);
        tokio::time::advance(CHALLENGE_INTERVAL).await;
        assert_eq!(peers.challenge_to(&hello), Some(first), "an answer that is on its way still counts");
    }
}
