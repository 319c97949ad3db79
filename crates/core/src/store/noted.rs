//! What the store has noted of commits, so that other processes learn of them in one read, however many tenants there are.

use countersign_wire::{id::TenantId, timestamp::Timestamp};

use super::{
    delivery::MailboxKey,
    key::{Key, Kind},
};

/// Changes that one read returns, at least; those of the last transaction come whole.
pub const NOTED_CHUNK: u32 = 2_000;

/// Something that a commit has changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Noted {
    /// A delivery was added to this mailbox.
    Mailbox(MailboxKey),
    /// This record was written or deleted.
    Record(TenantId, Key),
}

/// What was noted from a position on, as [`super::Store::noted`] reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedPage {
    /// Each with the number of the mailbox's newest delivery, or the version of the record; zero for one that was deleted.
    pub changes: Vec<(Noted, u64)>,
    /// Where the next read of the same round starts; `None` after the last.
    pub more_from: Option<u64>,
    /// Where the next round starts: whatever is before this was committed when the page was read, or never will be. What is
    /// after it may be read twice.
    pub settled: u64,
    /// The store's time of the read.
    pub now: Timestamp,
}

impl Kind {
    /// Whether a store notes each write of a record of this kind. Somebody waits for it, or every node remembers it.
    pub fn is_noted(self) -> bool {
        matches!(
            self,
            Self::Exchange | Self::Enforcer | Self::Approver | Self::Credential | Self::Policy | Self::Tenant
        )
    }
}
