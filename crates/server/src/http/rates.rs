//! How often somebody may call: per credential, per tenant and per address.

use std::{net::IpAddr, num::NonZeroU32};

use countersign_wire::{failure::Failure, id::TenantId};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _, clock::DefaultClock};
use serde::Deserialize;

use super::{accept::Peer, error_response::Refusal};

/// Requests a second that are let through for good, and at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// In the long run; zero means no limit.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Of one credential.
    pub credential: Rate,
    /// Of one tenant.
    pub tenant: Rate,
    /// Of one address, or one /64 of IPv6.
    pub address: Rate,
    /// Of one address, requests whose credential does not stand.
    pub failed_authentication: Rate,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            credential: Rate { per_second: 50, burst: 200 },
            tenant: Rate { per_second: 1_000, burst: 4_000 },
            // Off: behind a proxy all clients have one address.
            address: Rate { per_second: 0, burst: 0 },
            failed_authentication: Rate { per_second: 1, burst: 20 },
        }
    }
}

/// Counts calls. The default lets everything through.
#[derive(Debug, Default)]
pub struct Rates {
    credential: Option<DefaultKeyedRateLimiter<(TenantId, String)>>,
    tenant: Option<DefaultKeyedRateLimiter<TenantId>>,
    address: Option<DefaultKeyedRateLimiter<IpAddr>>,
    failed_authentication: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

impl Rates {
    /// Counts against these limits.
    pub fn new(limits: Limits) -> Self {
        Self {
            credential: limits.credential.quota().map(RateLimiter::keyed),
            tenant: limits.tenant.quota().map(RateLimiter::keyed),
            address: limits.address.quota().map(RateLimiter::keyed),
            failed_authentication: limits.failed_authentication.quota().map(RateLimiter::keyed),
        }
    }

    pub(crate) fn admit_address(&self, peer: Option<Peer>) -> Result<(), Refusal> {
        match peer {
            Some(peer) => admit(self.address.as_ref(), &peer.network()),
            None => Ok(()),
        }
    }

    pub(crate) fn admit(&self, tenant: &TenantId, principal: &str) -> Result<(), Refusal> {
        admit(self.credential.as_ref(), &(tenant.clone(), principal.to_owned()))?;
        admit(self.tenant.as_ref(), tenant)
    }

    /// Who fails too often is told to wait instead of that they failed.
    pub(crate) fn note_failed_authentication(
        &self,
        peer: Option<Peer>,
        refusal: &Refusal,
    ) -> Result<(), Refusal> {
        match (peer, refusal.failure()) {
            (Some(peer), Failure::Unauthenticated) => {
                admit(self.failed_authentication.as_ref(), &peer.network())
            }
            _ => Ok(()),
        }
    }

    /// Forgets who has not called for a while.
    pub fn forget(&self) {
        self.credential.iter().for_each(RateLimiter::retain_recent);
        self.tenant.iter().for_each(RateLimiter::retain_recent);
        self.address.iter().for_each(RateLimiter::retain_recent);
        self.failed_authentication.iter().for_each(RateLimiter::retain_recent);
    }
}

impl Rate {
    fn quota(self) -> Option<Quota> {
        let per_second = NonZeroU32::new(self.per_second)?;
        Some(Quota::per_second(per_second).allow_burst(NonZeroU32::new(self.burst).unwrap_or(per_second)))
    }
}

fn admit<K: Clone + std::hash::Hash + Eq>(
    limiter: Option<&DefaultKeyedRateLimiter<K>>,
    key: &K,
) -> Result<(), Refusal> {
    let Some(limiter) = limiter else { return Ok(()) };
    limiter
        .check_key(key)
        .map_err(|until| Refusal::try_later(until.wait_time_from(DefaultClock::default().now())))
}
