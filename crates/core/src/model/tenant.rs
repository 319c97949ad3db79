//! Whether a tenant may be used. Pure.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::{Key, Kind, Stored};

/// The id of the one such record of a tenant.
const ID: &str = "tenant";

/// From the suspension to the erasure: longer than any request takes that began before, and than a node remembers a key.
pub const ERASED_AFTER: Duration = Duration::from_mins(2);

/// A tenant that was suspended. Other tenants have no such record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    pub since: Timestamp,
    /// When everything of the tenant is deleted; `None` if it is only suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
}

impl Stored for Suspension {
    const KIND: Kind = Kind::Tenant;
}

impl Suspension {
    /// The one record of the tenant.
    pub(crate) fn record() -> Key {
        Self::key(ID)
    }
}
