//! What a ring names.

use countersign_wire::id::{RequestId, TenantId};

use crate::store::{Key, MailboxKey};

/// Names what to read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ring {
    /// A delivery was added to this mailbox.
    Mailbox(MailboxKey),
    /// This record was written.
    Record(TenantId, Key),
    /// This request has left this mailbox: it was answered, or has ended otherwise.
    Ended(MailboxKey, RequestId),
}
