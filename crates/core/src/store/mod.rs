//! The port to whatever keeps the data.
//!
//! A store knows nothing of what it keeps: it has *records* (a key, a version, some bytes), *payloads*
//! (bytes by id, written once), *mailboxes* of numbered *deliveries*, and a list of what is *due*. All
//! meaning is in this crate, so that two stores can't come to mean two things.

mod change;
mod delivery;
mod error;
mod key;
mod metered;
mod noted;
mod port;
mod relocation;
mod shard;
mod stored;

pub mod migrations;

pub use change::{AuditRow, Change, Guard, Mark, Put, Removal};
pub use delivery::{
    Delivery, DeliveryPage, DeliveryQuery, MAX_SCANNED, Mailbox, MailboxKey, MarkKind, NewDelivery,
};
pub use error::{Cause, StoreError, error_chain};
pub use key::{Key, Kind, PayloadId};
pub use metered::MeteredStore;
pub use noted::{NOTED_CHUNK, Noted, NotedPage};
pub use port::{CLAIM, Due, InInboxes, Loaded, Outcome, PAYLOAD_OVERHEAD, Record, Store};
pub use relocation::{
    Cargo, CargoPosition, Epoch, Membership, Relocation, Residence, ResidencePage, ResidenceState, Unloading,
};
pub use shard::Shard;
pub(crate) use stored::{Stored, Versioned};
