//! Mailboxes and what lies in them.

use std::{fmt, str::FromStr};

use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{Key, PayloadId};

/// A queue of deliveries within a tenant. Each counts its own, without gaps, in the order of commits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Mailbox {
    /// Requests to one approver that can be decided: their inbox, and nothing else.
    Approver(ApproverId),
    /// What an enforcer is to get.
    Enforcer(EnforcerId),
    /// Requests for nobody in particular: every approver of the tenant reads it.
    Shared,
    /// Whatever else an approver is to be told: withdrawals, acknowledgements of prompts, session events.
    News(ApproverId),
    /// What every approver is to be told.
    SharedNews,
    /// Requests to one approver that expired.
    ExpiredOfApprover(ApproverId),
    /// Requests for nobody in particular that expired.
    ExpiredShared,
}

impl Mailbox {
    /// Where the requests of this mailbox go when they expire.
    #[must_use]
    pub fn expired(&self) -> Option<Self> {
        match self {
            Self::Approver(id) => Some(Self::ExpiredOfApprover(id.clone())),
            Self::Shared => Some(Self::ExpiredShared),
            _ => None,
        }
    }

    /// Where news of the requests in this mailbox goes. Apart from them, so that a page of an inbox never
    /// wades through it.
    #[must_use]
    pub fn news(&self) -> Option<Self> {
        match self {
            Self::Approver(id) => Some(Self::News(id.clone())),
            Self::Shared => Some(Self::SharedNews),
            _ => None,
        }
    }
}

impl fmt::Display for Mailbox {
    /// The name that stores keep.
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
    /// Whose tenant.
    pub tenant: TenantId,
    /// Which one.
    pub mailbox: Mailbox,
}

/// A delivery to be numbered by the store when it commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Where it goes.
    pub mailbox: Mailbox,
    /// The message.
    pub msg_id: MsgId,
    /// What it says.
    pub msg_type: MsgType,
    /// The record that it tells of.
    pub subject: Key,
    /// The body, where there is one apart from the record.
    pub payload: Option<PayloadId>,
    /// From when on nobody needs it any more.
    pub until: Timestamp,
}

/// A delivery in its mailbox: ids, never a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the mailbox.
    pub number: u64,
    /// The message.
    pub msg_id: MsgId,
    /// What it says.
    pub msg_type: MsgType,
    /// The record that it tells of.
    pub subject: Key,
    /// The body, where there is one apart from the record.
    pub payload: Option<PayloadId>,
    /// When it was committed.
    pub at: Timestamp,
    /// From when on nobody needs it any more.
    pub until: Timestamp,
}

/// What a reader has done with a delivery that it can't remove for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// Taken out of the reader's inbox.
    Hidden,
    /// Acknowledged by the reader.
    Acknowledged,
}

/// Which deliveries of a mailbox to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// The mailbox.
    pub mailbox: Mailbox,
    /// Only numbers above this.
    pub after: u64,
    /// At most so many.
    pub limit: u32,
    /// Leave out what this reader has marked so.
    pub unless_marked: Option<(ApproverId, MarkKind)>,
    /// Leave out what nobody needs any more, by the store's time.
    pub only_relevant: bool,
}

/// What [`super::Store::deliveries`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Ascending by number.
    pub deliveries: Vec<Delivery>,
    /// The store's time when it looked.
    pub now: Timestamp,
}
