//! Which channels an enforcer has open, on whatever node, and which of them is to be told. Pure.
//!
//! Channels are numbered by the store in the order in which they connected. A channel is live while its node's
//! lease is; a node that dies stops renewing, and after that its channels count for nothing.

use std::time::Duration;

use countersign_wire::presence::Transport;
use serde::{Deserialize, Serialize};

/// A node renews its lease this often.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// A node that has not renewed its lease for this long is taken for dead.
pub const LEASE: Duration = Duration::from_secs(15);

/// An enforcer has at most so many channels; when one more opens, the oldest is forgotten.
pub const MOST_OPEN: usize = 32;

/// One run of one gateway process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub String);

/// Names a channel among those of its enforcer. A higher one connected later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChannelNumber(pub u64);

/// One open channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// Its number.
    pub number: ChannelNumber,
    /// Where it is.
    pub node: NodeId,
    /// What it is.
    pub transport: Transport,
}

/// All open channels of one enforcer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// The last number that was given.
    pub last: u64,
    /// Those that are open, oldest first.
    pub open: Vec<Channel>,
}

impl Channels {
    /// Adds a channel, which becomes the newest, and forgets those of dead nodes and those that are too many.
    pub fn open(
        &mut self,
        node: &NodeId,
        transport: Transport,
        is_live: impl Fn(&NodeId) -> bool,
    ) -> ChannelNumber {
        self.open.retain(|channel| is_live(&channel.node) || channel.node == *node);
        self.last += 1;
        let number = ChannelNumber(self.last);
        self.open.push(Channel { number, node: node.clone(), transport });
        let too_many = self.open.len().saturating_sub(MOST_OPEN);
        self.open.drain(..too_many);
        number
    }

    /// Takes a channel out. Says whether it was there.
    pub fn close(&mut self, number: ChannelNumber) -> bool {
        let before = self.open.len();
        self.open.retain(|channel| channel.number != number);
        self.open.len() < before
    }

    /// The newest live channel that carries a message: decisions go over any, everything else over WebSockets.
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
    fn the_newest_live_channel_is_told_and_the_next_one_when_it_closes() {
        let mut channels = Channels::default();
        let (a, b) = (node("a"), node("b"));
        let first = channels.open(&a, Transport::Websocket, |_| true);
        let second = channels.open(&b, Transport::Websocket, |_| true);
        let third = channels.open(&a, Transport::Sse, |_| true);
        assert_eq!(channels.newest(true, |_| true), Some(third));
        assert_eq!(channels.newest(false, |_| true), Some(second), "a stream carries decisions only");
        assert_eq!(channels.newest(true, |node| *node == b), Some(second), "the other node is dead");
        assert!(channels.close(third) && !channels.close(third));
        assert_eq!(channels.newest(true, |_| true), Some(second));
        assert!(channels.close(second) && channels.close(first));
        assert_eq!(channels.newest(true, |_| true), None);
    }

    #[test]
    fn of_too_many_channels_the_oldest_are_forgotten() {
        let mut channels = Channels::default();
        let numbers: Vec<ChannelNumber> =
            (0..100).map(|_| channels.open(&node("a"), Transport::Sse, |_| true)).collect();
        let open: Vec<ChannelNumber> = channels.open.iter().map(|channel| channel.number).collect();
        assert_eq!(open, numbers[68..]);
    }

    #[test]
    fn numbers_are_never_given_twice_and_channels_of_dead_nodes_are_forgotten() {
        let mut channels = Channels::default();
        let first = channels.open(&node("dead"), Transport::Websocket, |_| true);
        let second = channels.open(&node("new"), Transport::Websocket, |_| false);
        assert!(second > first);
        assert_eq!(channels.open.len(), 1);
        channels.close(second);
        assert!(channels.open(&node("new"), Transport::Websocket, |_| true) > second);
    }
}
