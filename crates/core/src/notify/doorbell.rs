//! The port that rings.

use super::{listener::Listener, ring::Ring};

/// Rings after commits, and lets others listen.
pub trait Doorbell: Send + Sync + 'static {
    /// Wakes all listeners to any of these, on this node and on others. Never blocks, never fails.
    fn ring(&self, rings: &[Ring]);

    /// Listens to these, at most eight, from now on. Listen first, then read: a commit between the two rings.
    fn listen(&self, rings: Vec<Ring>) -> Listener;

    /// Everything that somebody on this node listens to.
    fn listened_to(&self) -> Vec<Ring>;
}
