//! What is committed together.

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use super::{
    delivery::{Mailbox, MarkKind, NewDelivery},
    key::{Key, Kind, PayloadId},
};

// CONTRIBUTING: add a store, step 1
/// Everything that one command writes, all or nothing.
///
/// A store checks the guards and writes the rest in one transaction with them. It may put changes that
/// arrive together into one transaction; each still succeeds or fails by itself, and sees what those
/// before it wrote.
///
/// Within a change, what goes goes first: `deletes` before `puts`, `removals` before `marks` before
/// `deliveries`, `no_longer_due` before `due`.
///
/// A change with guards and nothing else asks the store to confirm that what the caller read is durable. One that is carried by
/// a lease ([`Change::is_carried_by_a_lease`]) need not be durable when it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub tenant: TenantId,
    /// Checked first; if one does not hold, nothing is written.
    pub guards: Vec<Guard>,
    /// Records to write. Their version becomes one more than it was; a new record gets one that it never had.
    pub puts: Vec<Put>,
    /// Records to delete. One that does not exist is no error.
    pub deletes: Vec<Key>,
    pub payloads: Vec<(PayloadId, Bytes)>,
    pub drop_payloads: Vec<PayloadId>,
    /// Deliveries to remove from mailboxes; done before new ones are added.
    pub removals: Vec<Removal>,
    pub deliveries: Vec<NewDelivery>,
    /// What one reader did with deliveries that others still see.
    pub marks: Vec<Mark>,
    /// When the sweeper has to process a record next. A record has one due time: a new one replaces it, and ends a claim.
    pub due: Vec<(Timestamp, Key)>,
    /// Records that the sweeper need not process any more.
    pub no_longer_due: Vec<Key>,
    /// Rows for the tenant's audit log.
    pub audit: Vec<AuditRow>,
}

impl Change {
    /// An empty change of this tenant.
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

    /// Adds everything of another change of the same tenant.
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

    /// Whether a failover may undo it, so that its commit need not wait for a disk: it writes nothing but channels and
    /// presence. Whoever writes these makes sure of them when the lease of its node, a commit like any other, is renewed.
    pub fn is_carried_by_a_lease(&self) -> bool {
        let Self {
            tenant: _,
            guards: _,
            puts,
            deletes,
            payloads,
            drop_payloads,
            removals,
            deliveries,
            marks,
            due,
            no_longer_due,
            audit,
        } = self;
        let is_nothing_else = deletes.is_empty()
            && payloads.is_empty()
            && drop_payloads.is_empty()
            && removals.is_empty()
            && deliveries.is_empty()
            && marks.is_empty()
            && no_longer_due.is_empty()
            && audit.is_empty();
        let is_fleeting = |key: &Key| matches!(key.kind, Kind::Channels | Kind::Presence);
        let all_fleeting =
            puts.iter().all(|put| is_fleeting(&put.key)) && due.iter().all(|(_, key)| is_fleeting(key));
        is_nothing_else && !puts.is_empty() && all_fleeting
    }

    /// The size of all payloads together, in bytes.
    pub fn payload_bytes(&self) -> usize {
        self.payloads.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// A condition that the store checks when it commits a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// There is no such record.
    Absent(Key),
    /// The record has this version.
    Version(Key, u64),
    /// The record has this version, or does not exist if it is zero. For a slow record that was only used: it is compared
    /// without a lock, so that one policy does not make a tenant's commits wait for each other. It holds at a moment of the
    /// transaction and not until its end, and says nothing of whether the version is durable.
    Seen(Key, u64),
    /// The store's time, at the commit, is before this.
    Before(Timestamp),
    /// The store's time, at the commit, is this or later.
    NotBefore(Timestamp),
}

impl Guard {
    /// The record that the guard is about; `None` for a time.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Absent(key) | Self::Version(key, _) | Self::Seen(key, _) => Some(key),
            Self::Before(_) | Self::NotBefore(_) => None,
        }
    }
}

/// A record to write, whatever its version was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    pub key: Key,
    pub content: Bytes,
}

/// Deliveries to remove, with all marks on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// One delivery. One that does not exist is no error.
    ByNumber { mailbox: Mailbox, number: u64 },
    /// All deliveries about this record, in every mailbox.
    BySubject {
        subject: Key,
        /// Only messages of these types; empty means all.
        msg_types: Vec<MsgType>,
    },
    /// One message about this record, in every mailbox.
    ByMessage { subject: Key, msg_id: MsgId },
}

impl Removal {
    /// The record that the deliveries are about; `None` where they are named by number.
    pub fn subject(&self) -> Option<&Key> {
        match self {
            Self::BySubject { subject, .. } | Self::ByMessage { subject, .. } => Some(subject),
            Self::ByNumber { .. } => None,
        }
    }
}

/// A reader's mark on a delivery. A mark on a delivery that no longer exists is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub mailbox: Mailbox,
    pub number: u64,
    /// What the delivery is about: the record where a store of several writers makes a mark and a removal wait for each
    /// other.
    pub subject: Key,
    pub reader: ApproverId,
    pub kind: MarkKind,
}

/// One row of the tenant's audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// The record that changed.
    pub subject: Key,
    /// Actor and action as JSON. Contains no body and no secret.
    pub event: Bytes,
}
