//! The port between nodes: announces commits after they are durable.

use std::sync::Arc;

use super::announcement::Announcement;
use crate::model::channels::NodeId;

/// Connects nodes. It may lose, repeat or reorder what it carries; whoever misses something finds it with the change
/// poller.
pub trait Doorbell: Send + Sync + 'static {
    /// Connects a node: `receiver` gets what other nodes announce, until the announcer is dropped.
    fn attach(&self, node: &NodeId, receiver: Arc<dyn Receiver>) -> Box<dyn Announcer>;
}

/// One node's way to all others.
pub trait Announcer: Send + Sync + 'static {
    /// Announces to all other nodes. Never blocks, never fails.
    fn announce(&self, announcement: Announcement);

    /// Whether there may be others. If not, nothing is announced.
    fn has_others(&self) -> bool {
        true
    }
}

/// Receives what other nodes announce.
pub trait Receiver: Send + Sync + 'static {
    /// Takes what another node announced. Does not block.
    fn receive(&self, announcement: Announcement);
}
