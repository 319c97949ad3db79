//! Which channels an enforcer has open, on any node, and which of them gets messages. Pure.
//!
//! Channels are numbered by the store in the order in which they connected. A channel is live while its node's
//! lease is; a node that dies stops renewing, and after that its channels count for nothing.

use std::time::Duration;

use countersign_wire::{presence::Transport, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::{Kind, Stored};

/// A node renews its lease this often.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// A node that has not renewed its lease for this long counts as dead.
pub const LEASE: Duration = Duration::from_secs(15);

/// When an enforcer opens one more channel than this, its oldest is dropped.
pub const MAX_OPEN_CHANNELS: usize = 32;

/// One run of one gateway process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub String);

/// Numbers the channels of an enforcer. A higher one connected later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChannelNumber(pub u64);

/// Names an open channel. The number alone does not: where a failover has undone an opening, it is assigned again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelId {
    pub number: ChannelNumber,
    pub attempt: String,
}

/// An SSE stream or a WebSocket of an enforcer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    pub number: ChannelNumber,
    pub node: NodeId,
    pub transport: Transport,
    /// Random, of the attempt that opened it: another attempt may have tried the same number.
    #[serde(default)]
    pub attempt: String,
}

/// All open channels of one enforcer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// The last number that was assigned.
    pub last: u64,
    /// Open channels, oldest first.
    pub open: Vec<Channel>,
}

impl Stored for Channels {
    const KIND: Kind = Kind::Channels;
}

/// A node counts as alive until this time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub until: Timestamp,
}

impl Stored for Lease {
    const KIND: Kind = Kind::Lease;
}

impl Channels {
    /// Adds a channel, which becomes the newest, and drops those of dead nodes and the oldest beyond the limit.
    pub fn open(
        &mut self,
        node: &NodeId,
        transport: Transport,
        attempt: &str,
        is_live: impl Fn(&NodeId) -> bool,
    ) -> ChannelId {
        self.open.retain(|channel| is_live(&channel.node) || channel.node == *node);
        self.last += 1;
        let number = ChannelNumber(self.last);
        self.open.push(Channel { number, node: node.clone(), transport, attempt: attempt.to_owned() });
        let excess = self.open.len().saturating_sub(MAX_OPEN_CHANNELS);
        self.open.drain(..excess);
        ChannelId { number, attempt: attempt.to_owned() }
    }

    /// Whether this channel is open.
    pub fn has(&self, attempt: &str) -> bool {
        self.open.iter().any(|channel| channel.attempt == attempt)
    }

    /// Removes the channel that this attempt has opened. Returns whether it was there.
    pub fn close(&mut self, attempt: &str) -> bool {
        let before = self.open.len();
        self.open.retain(|channel| channel.attempt != attempt);
        self.open.len() < before
    }

    /// The newest live channel for a message: decisions use any channel, other messages WebSockets only.
    pub fn newest(&self, is_decision: bool, is_live: impl Fn(&NodeId) -> bool) -> Option<ChannelNumber> {
        self.open
            .iter()
            .filter(|channel| is_decision || channel.transport == Transport::Websocket)
            .filter(|channel| is_live(&channel.node))
            .map(|channel| channel.number)
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId(name.to_owned())
    }

    #[test]
    fn the_newest_live_channel_gets_messages_and_the_next_one_when_it_closes() {
        let mut channels = Channels::default();
        let (a, b) = (node("a"), node("b"));
        let first = channels.open(&a, Transport::Websocket, "first", |_| true);
        let second = channels.open(&b, Transport::Websocket, "second", |_| true);
        let third = channels.open(&a, Transport::Sse, "third", |_| true);
        assert_eq!(channels.newest(true, |_| true), Some(third.number));
        assert_eq!(channels.newest(false, |_| true), Some(second.number), "a stream carries decisions only");
        assert_eq!(channels.newest(true, |node| *node == b), Some(second.number), "the other node is dead");
        assert!(channels.close(&third.attempt) && !channels.close(&third.attempt));
        assert_eq!(channels.newest(true, |_| true), Some(second.number));
        assert!(channels.close(&second.attempt) && channels.close(&first.attempt));
        assert_eq!(channels.newest(true, |_| true), None);
    }

    #[test]
    fn of_too_many_channels_the_oldest_are_dropped() {
        let mut channels = Channels::default();
        let numbers: Vec<ChannelNumber> =
            (0..100).map(|_| channels.open(&node("a"), Transport::Sse, "", |_| true).number).collect();
        let open: Vec<ChannelNumber> = channels.open.iter().map(|channel| channel.number).collect();
        assert_eq!(open, numbers[68..]);
    }

    #[test]
    fn numbers_are_never_assigned_twice_and_channels_of_dead_nodes_are_dropped() {
        let mut channels = Channels::default();
        let first = channels.open(&node("dead"), Transport::Websocket, "first", |_| true);
        let second = channels.open(&node("new"), Transport::Websocket, "second", |_| false);
        assert!(second.number > first.number);
        assert_eq!(channels.open.len(), 1);
        channels.close(&second.attempt);
        assert!(channels.open(&node("new"), Transport::Websocket, "third", |_| true).number > second.number);
    }
}
