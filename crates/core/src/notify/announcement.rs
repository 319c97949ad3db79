//! What one commit announces.

use std::sync::Arc;

use super::ring::Ring;
use crate::{
    model::{channels::NodeId, message::Message},
    store::{Delivery, MailboxKey},
};

/// What one commit announces to the other nodes. All of it was durable before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The history of the store that it was committed to ([`crate::store::Store::timeline`]).
    pub timeline: u64,
    /// What was written, each with the number of the mailbox's newest delivery, or the version of the record; zero for a
    /// record that was deleted, and where there is no number.
    pub rings: Vec<(Ring, u64)>,
    /// Deliveries themselves, each for the one node that will probably send it.
    pub hand_overs: Vec<(NodeId, Arc<HandOver>)>,
}

/// A delivery with its message, as its commit knew them, so that nobody has to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    pub mailbox: MailboxKey,
    pub delivery: Delivery,
    pub message: Message,
}
