//! One message to a client, with everything that its envelope needs.

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, RequestId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

/// One message to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same each time it is sent.
    pub msg_id: MsgId,
    pub msg_type: MsgType,
    /// The exchange, prompt or session.
    pub request_id: RequestId,
    /// The store's time of what the message is about.
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Who caused it; named as the sender beside the gateway.
    pub from: Party,
    /// Byte for byte as it was submitted, where a client submitted one.
    pub body: Bytes,
    pub trace: Option<Bytes>,
}

impl Message {
    /// What it takes in memory, in bytes, about.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.body.len() + self.trace.as_ref().map_or(0, Bytes::len)
    }
}

/// One of the two sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    Enforcer(EnforcerId),
    Approver(ApproverId),
}
