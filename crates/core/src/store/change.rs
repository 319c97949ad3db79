//! What is committed together.

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use super::{Key, Mailbox, MarkKind, NewDelivery, PayloadId};

/// Everything that one command writes, all or nothing.
///
/// A store checks the guards and writes the rest in one transaction with them. It may put changes that
/// arrive together into one transaction; each still succeeds or fails by itself, and sees what those
/// before it wrote.
///
/// Within a change, what goes goes first: `deletes` before `puts`, `removals` before `marks` before
/// `deliveries`, `no_longer_due` before `due`.
///
/// A change with guards and nothing else asks the store to confirm that what the caller read is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// All of it is in one tenant.
    pub tenant: TenantId,
    /// What must hold.
    pub guards: Vec<Guard>,
    /// Records to write. Their version becomes one more than it was, or one.
    pub puts: Vec<Put>,
    /// Records to forget. One that is not there is no fault.
    pub deletes: Vec<Key>,
    /// Payloads to keep.
    pub payloads: Vec<(PayloadId, Bytes)>,
    /// Payloads to forget.
    pub drop_payloads: Vec<PayloadId>,
    /// Deliveries to take out of mailboxes; done before new ones are put in.
    pub removals: Vec<Removal>,
    /// Deliveries to put into mailboxes.
    pub deliveries: Vec<NewDelivery>,
    /// What a reader has done with deliveries.
    pub marks: Vec<Mark>,
    /// When to look at records.
    pub due: Vec<(Timestamp, Key)>,
    /// What has been looked at.
    pub no_longer_due: Vec<(Timestamp, Key)>,
    /// What happened, for the record of the tenant.
    pub audit: Vec<AuditRow>,
}

impl Change {
    /// A change that does nothing yet.
    pub fn new(tenant: TenantId) -> Self {
        Self {
            tenant,
            guards: Vec::new(),
            puts: Vec::new(),
            deletes: Vec::new(),
            payloads: Vec::new(),
            drop_payloads: Vec::new(),
            removals: Vec::new(),
            deliveries: Vec::new(),
            marks: Vec::new(),
            due: Vec::new(),
            no_longer_due: Vec::new(),
            audit: Vec::new(),
        }
    }

    /// Adds all of another change of the same tenant.
    pub fn append(&mut self, other: Self) {
        debug_assert_eq!(self.tenant, other.tenant, "a change is of one tenant");
        self.guards.extend(other.guards);
        self.puts.extend(other.puts);
        self.deletes.extend(other.deletes);
        self.payloads.extend(other.payloads);
        self.drop_payloads.extend(other.drop_payloads);
        self.removals.extend(other.removals);
        self.deliveries.extend(other.deliveries);
        self.marks.extend(other.marks);
        self.due.extend(other.due);
        self.no_longer_due.extend(other.no_longer_due);
        self.audit.extend(other.audit);
    }

    /// Bytes of its payloads.
    pub fn payload_bytes(&self) -> usize {
        self.payloads.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// What must hold when a change is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// There is no such record.
    Absent(Key),
    /// The record has this version.
    Version(Key, u64),
    /// The store's time, at the commit, is before this.
    Before(Timestamp),
}

impl Guard {
    /// The record that it looks at.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Absent(key) | Self::Version(key, _) => Some(key),
            Self::Before(_) => None,
        }
    }
}

/// A record to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Its key.
    pub key: Key,
    /// Its new content.
    pub content: Bytes,
}

/// Deliveries to take out of mailboxes, with all marks on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// One delivery. One that is not there is no fault.
    One {
        /// Its mailbox.
        mailbox: Mailbox,
        /// Its number.
        number: u64,
    },
    /// All of these types that tell of this record, in every mailbox; all types where none is named.
    About {
        /// The record.
        subject: Key,
        /// The types.
        msg_types: Vec<MsgType>,
    },
}

/// A reader's mark on a delivery. One on a delivery that is gone is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The mailbox of the delivery.
    pub mailbox: Mailbox,
    /// Its number.
    pub number: u64,
    /// Whose mark.
    pub reader: ApproverId,
    /// What it says.
    pub kind: MarkKind,
}

/// One line of the tenant's record of what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// The record that it happened to.
    pub subject: Key,
    /// Who did it and what, as JSON. No body, no secret.
    pub event: Bytes,
}
