//! Rate limits as an operator sets them.

use serde::Deserialize;

/// Requests, or KiB, that are let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// In the long run; zero means no limit.
    pub per_second: u32,
    /// At once, after a pause.
    pub burst: u32,
}

/// What is limited, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// Requests of one credential.
    pub credential: Rate,
    /// Requests of one tenant.
    pub tenant: Rate,
    /// KiB that one tenant sends. With the retention it bounds what a tenant can make the store keep.
    pub tenant_kib: Rate,
    /// MiB that one tenant may have stored; zero means no limit.
    pub tenant_stored_mib: u32,
    /// Requests from one address, or one /64 of IPv6.
    pub address: Rate,
    /// Requests from one address whose credential is not valid.
    pub failed_authentication: Rate,
}

impl RateLimits {
    /// Limits nothing: for `dev` and measurements.
    pub fn off() -> Self {
        let off = Rate { per_second: 0, burst: 0 };
        Self {
            credential: off,
            tenant: off,
            tenant_kib: off,
            tenant_stored_mib: 0,
            address: off,
            failed_authentication: off,
        }
    }

    /// What one tenant may have stored, in bytes; `None` for no limit.
    pub fn max_stored_bytes(&self) -> Option<u64> {
        (self.tenant_stored_mib > 0).then(|| u64::from(self.tenant_stored_mib) << 20)
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            credential: Rate { per_second: 50, burst: 200 },
            tenant: Rate { per_second: 1_000, burst: 4_000 },
            tenant_kib: Rate { per_second: 2_048, burst: 262_144 },
            tenant_stored_mib: 0,
            // Off: behind a proxy all clients have one address.
            address: Rate { per_second: 0, burst: 0 },
            failed_authentication: Rate { per_second: 1, burst: 20 },
        }
    }
}
