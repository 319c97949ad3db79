//! What a tenant allows itself. Everything is allowed unless said otherwise.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A tenant's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Refuse artifacts in the clear.
    pub require_sealed: bool,
    /// Refuse decisions of approvers that have registered no signing key.
    pub require_registered_signer: bool,
    /// Refuse submissions without an `Idempotency-Key`.
    pub require_idempotency_key: bool,
    /// The longest life of an exchange.
    pub max_life: Option<Duration>,
}

/// The id of the one policy record of a tenant.
pub(crate) const POLICY_ID: &str = "policy";
