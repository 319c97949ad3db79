//! What a tenant's policy restricts. The default restricts nothing.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::{Kind, Stored};

/// What a tenant's operator restricts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Policy {
    /// Reject artifacts in the clear.
    pub require_sealed: bool,
    /// Reject decisions of approvers without a registered signing key.
    pub require_registered_signer: bool,
    /// Reject submissions without an `Idempotency-Key`.
    pub require_idempotency_key: bool,
    /// The longest time from submission to expiry; `None` means [`MAX_LIFE`].
    pub max_life: Option<Duration>,
    /// Whether anybody of the tenant has ever had a channel for notifications. Not the operator's: it is here because a
    /// submission reads this record anyway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub notifies: bool,
}

/// The longest time from submission to expiry where no policy says another: a request without an end is never swept.
pub const MAX_LIFE: Duration = Duration::from_hours(366 * 24);

/// The id of the one policy record of a tenant.
pub(crate) const POLICY_ID: &str = "policy";

impl Stored for Policy {
    const KIND: Kind = Kind::Policy;
}

impl Policy {
    /// When a request that expires at this time may be submitted at the earliest.
    pub(crate) fn earliest_submission(&self, expires_at: Timestamp) -> Timestamp {
        expires_at.minus(self.max_life.unwrap_or(MAX_LIFE))
    }
}
