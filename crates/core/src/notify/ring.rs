//! What a ring names.

use countersign_wire::id::TenantId;

use crate::store::{Key, MailboxKey};

/// Names what to read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ring {
    /// A delivery was added to this mailbox.
    Mailbox(MailboxKey),
    /// This record was written.
    Record(TenantId, Key),
}
