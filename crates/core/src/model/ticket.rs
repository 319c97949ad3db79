//! Tickets: what a browser trades its credential for, since it can't set headers on a WebSocket.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use super::credential::Role;
use crate::store::{Kind, Stored};

/// How long a ticket can be used.
pub const TICKET_LIFE: Duration = Duration::from_secs(30);

/// A ticket as it is stored, by the hash of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The role of the credential that it was traded for.
    pub role: Role,
    /// The key id of that credential.
    pub principal: String,
    /// It can be used only before this time.
    pub until: Timestamp,
}

// CONTRIBUTING: add a record kind, step 2
impl Stored for Ticket {
    const KIND: Kind = Kind::Ticket;
}
