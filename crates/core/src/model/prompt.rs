//! Prompts: text from an approver to an agent, and what became of it. Pure.

use countersign_wire::{
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    prompt::AckStatus,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Kind, PayloadId, Stored};

/// One prompt as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub approver: ApproverId,
    pub enforcer: EnforcerId,
    pub prompt_hash: Sha256Hex,
    /// The body as it was sent.
    pub body: Option<PayloadId>,
    /// The store's time of the submission.
    pub created_at: Timestamp,
    pub status: AckStatus,
    /// When `status` was reached, by the enforcer's clock once it has acknowledged.
    pub ack_at: Timestamp,
    /// The last acknowledgement as it was sent; `None` while queued.
    #[serde(default)]
    pub ack: Option<PayloadId>,
}

impl Stored for Prompt {
    const KIND: Kind = Kind::Prompt;
}

/// What an acknowledgement comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckResult {
    /// Store it and forward it to the approver.
    Advance,
    /// Nothing new: change nothing.
    Ignore,
}

impl Prompt {
    /// The status only moves forward: queued, then one of the others, then it stays.
    pub fn acknowledge(&self, status: AckStatus) -> AckResult {
        match (self.status, status) {
            (AckStatus::Queued, AckStatus::Queued) => AckResult::Ignore,
            (AckStatus::Queued, _) => AckResult::Advance,
            _ => AckResult::Ignore,
        }
    }
}
