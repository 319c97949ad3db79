//! Mailboxes and what lies in them.

use std::{fmt, str::FromStr};

use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::key::{Key, PayloadId};

// CONTRIBUTING: add a store, step 1
/// A queue of deliveries within a tenant. Deliveries are numbered per mailbox, without gaps, in commit order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Mailbox {
    /// Pending requests addressed to one approver: the inbox, and nothing else.
    Approver(ApproverId),
    /// Everything sent to an enforcer.
    Enforcer(EnforcerId),
    /// Pending requests that name no approver: every approver of the tenant reads it.
    Shared,
    /// Other messages to one approver: withdrawals, prompt acknowledgements, session events.
    News(ApproverId),
    /// Other messages to every approver of the tenant.
    SharedNews,
    /// Expired requests that were addressed to one approver.
    ExpiredOfApprover(ApproverId),
    /// Expired requests that named no approver.
    ExpiredShared,
}

impl Mailbox {
    /// Whether pending requests lie in it, and nothing else.
    #[must_use]
    pub fn is_inbox(&self) -> bool {
        matches!(self, Self::Approver(_) | Self::Shared)
    }

    /// Where the requests of this mailbox go when they expire; `None` for mailboxes without requests.
    #[must_use]
    pub fn expired(&self) -> Option<Self> {
        match self {
            Self::Approver(id) => Some(Self::ExpiredOfApprover(id.clone())),
            Self::Shared => Some(Self::ExpiredShared),
            Self::Enforcer(_)
            | Self::News(_)
            | Self::SharedNews
            | Self::ExpiredOfApprover(_)
            | Self::ExpiredShared => None,
        }
    }

    /// Where messages about the requests in this mailbox go. A mailbox of its own, so that an inbox page never
    /// has to skip them.
    #[must_use]
    pub fn news(&self) -> Option<Self> {
        match self {
            Self::Approver(id) => Some(Self::News(id.clone())),
            Self::Shared => Some(Self::SharedNews),
            Self::Enforcer(_)
            | Self::News(_)
            | Self::SharedNews
            | Self::ExpiredOfApprover(_)
            | Self::ExpiredShared => None,
        }
    }
}

impl fmt::Display for Mailbox {
    /// The name as it is stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approver(id) => write!(f, "a:{id}"),
            Self::Enforcer(id) => write!(f, "e:{id}"),
            Self::Shared => f.write_str("s"),
            Self::News(id) => write!(f, "n:{id}"),
            Self::SharedNews => f.write_str("sn"),
            Self::ExpiredOfApprover(id) => write!(f, "xa:{id}"),
            Self::ExpiredShared => f.write_str("xs"),
        }
    }
}

impl FromStr for Mailbox {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let id = |text: &str| text.parse().map_err(|_| format!("not a mailbox: {name}"));
        match name.split_once(':') {
            None if name == "s" => Ok(Self::Shared),
            None if name == "sn" => Ok(Self::SharedNews),
            None if name == "xs" => Ok(Self::ExpiredShared),
            Some(("n", approver)) => Ok(Self::News(id(approver)?)),
            Some(("a", approver)) => Ok(Self::Approver(id(approver)?)),
            Some(("xa", approver)) => Ok(Self::ExpiredOfApprover(id(approver)?)),
            Some(("e", enforcer)) => {
                Ok(Self::Enforcer(enforcer.parse().map_err(|_| format!("not a mailbox: {name}"))?))
            }
            _ => Err(format!("not a mailbox: {name}")),
        }
    }
}

impl From<Mailbox> for String {
    fn from(mailbox: Mailbox) -> Self {
        mailbox.to_string()
    }
}

impl TryFrom<String> for Mailbox {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

/// A mailbox of any tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxKey {
    pub tenant: TenantId,
    pub mailbox: Mailbox,
}

/// A delivery before its commit; the store numbers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub mailbox: Mailbox,
    pub msg_id: MsgId,
    pub msg_type: MsgType,
    /// The record that the message is about.
    pub subject: Key,
    /// The body; `None` where the message is made from the record alone.
    pub payload: Option<PayloadId>,
    /// The message is not sent from this time on.
    pub until: Timestamp,
}

/// A delivery in its mailbox: ids, never a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its position in the mailbox, from one.
    pub number: u64,
    pub msg_id: MsgId,
    pub msg_type: MsgType,
    /// The record that the message is about.
    pub subject: Key,
    /// The body; `None` where the message is made from the record alone.
    pub payload: Option<PayloadId>,
    /// The store's time of the commit.
    pub at: Timestamp,
    /// The message is not sent from this time on.
    pub until: Timestamp,
}

/// What one reader did with a delivery that others still see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkKind {
    /// Removed from this reader's inbox.
    Hidden,
    /// Acknowledged by this reader: not pushed again.
    Acknowledged,
}

/// Which deliveries of a mailbox to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    pub mailbox: Mailbox,
    /// Only numbers greater than this.
    pub after: u64,
    /// Only numbers up to this; `None` for all.
    pub up_to: Option<u64>,
    pub limit: u32,
    /// Skip deliveries on which this reader has this mark.
    pub unless_marked: Option<(ApproverId, MarkKind)>,
    /// Skip deliveries whose `until` has passed, by the store's time.
    pub only_relevant: bool,
}

/// Deliveries of one mailbox, as [`super::Store::deliveries`] reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPage {
    /// In ascending order of their numbers.
    pub deliveries: Vec<Delivery>,
    /// The store's time of the read.
    pub now: Timestamp,
    /// The newest number that the mailbox had assigned when it was read.
    pub head: u64,
    /// What is not in `deliveries` up to this number is gone, marked or irrelevant, and stays so. Less than `head` where
    /// the limit or [`MAX_SCANNED`] ended the read.
    pub read_to: u64,
}

/// Deliveries that one read looks at, at most, whether it returns them or not.
pub const MAX_SCANNED: u32 = 1_000;

impl DeliveryPage {
    /// The page of what a read has found. `last_scanned` is the number at which [`MAX_SCANNED`] ended the read, if it did.
    pub fn new(
        query: &DeliveryQuery,
        deliveries: Vec<Delivery>,
        last_scanned: Option<u64>,
        head: u64,
        now: Timestamp,
    ) -> Self {
        let last = deliveries.last().map_or(query.after, |last| last.number);
        let read_to = match last_scanned {
            _ if deliveries.len() >= query.limit as usize => last,
            Some(last_scanned) => last_scanned,
            None => query.up_to.unwrap_or(head).min(head).max(query.after),
        };
        Self { deliveries, now, head, read_to }
    }

    /// Whether there may be more after `read_to`.
    pub fn has_more(&self) -> bool {
        self.read_to < self.head
    }
}
