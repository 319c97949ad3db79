//! Prompts: text from an approver to an agent, and what became of it. Pure.

use countersign_wire::{
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    prompt::AckStatus,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::PayloadId;

/// One prompt as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Who sent it.
    pub approver: ApproverId,
    /// Whose agent it is for.
    pub enforcer: EnforcerId,
    /// What it says.
    pub prompt_hash: Sha256Hex,
    /// Its body as it was sent.
    pub body: Option<PayloadId>,
    /// When the store took it in.
    pub created_at: Timestamp,
    /// What became of it.
    pub status: AckStatus,
    /// Since when.
    pub ack_at: Timestamp,
    /// The acknowledgement as it was sent.
    #[serde(default)]
    pub ack: Option<PayloadId>,
}

/// What is to be done about an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Store it and tell the approver.
    Advance,
    /// It says nothing new.
    Ignore,
}

impl Prompt {
    /// Acknowledgements only go forward: queued, then one of the others, then nothing more.
    pub fn acknowledge(&self, status: AckStatus) -> Verdict {
        match (self.status, status) {
            (AckStatus::Queued, AckStatus::Queued) => Verdict::Ignore,
            (AckStatus::Queued, _) => Verdict::Advance,
            _ => Verdict::Ignore,
        }
    }
}
