//! Rate limits: per credential, per tenant and per address.

use std::{net::IpAddr, num::NonZeroU32};

use countersign_wire::{failure::Failure, id::TenantId};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _, clock::DefaultClock};

use super::client_address::ClientAddress;
use crate::{
    config::{Rate, RateLimits},
    error::ApiError,
};

/// Counts requests. The default limits nothing.
#[derive(Debug, Default)]
pub struct RateLimiters {
    credential: Option<DefaultKeyedRateLimiter<(TenantId, String)>>,
    tenant: Option<DefaultKeyedRateLimiter<TenantId>>,
    address: Option<DefaultKeyedRateLimiter<IpAddr>>,
    failed_authentication: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

impl RateLimiters {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            credential: quota(limits.credential).map(RateLimiter::keyed),
            tenant: quota(limits.tenant).map(RateLimiter::keyed),
            address: quota(limits.address).map(RateLimiter::keyed),
            failed_authentication: quota(limits.failed_authentication).map(RateLimiter::keyed),
        }
    }

    pub(crate) fn admit_address(&self, client: Option<ClientAddress>) -> Result<(), ApiError> {
        match client {
            Some(client) => admit(self.address.as_ref(), &client.network()),
            None => Ok(()),
        }
    }

    pub(crate) fn admit(&self, tenant: &TenantId, principal: &str) -> Result<(), ApiError> {
        admit(self.credential.as_ref(), &(tenant.clone(), principal.to_owned()))?;
        admit(self.tenant.as_ref(), tenant)
    }

    /// Counts a failed authentication. A client that fails too often is told to wait, and not that it failed.
    pub(crate) fn count_failed_authentication(
        &self,
        client: Option<ClientAddress>,
        error: &ApiError,
    ) -> Result<(), ApiError> {
        match (client, error.failure()) {
            (Some(client), Failure::Unauthenticated) => {
                admit(self.failed_authentication.as_ref(), &client.network())
            }
            _ => Ok(()),
        }
    }

    /// Evicts the counters of clients that have not called for a while.
    pub fn evict_idle(&self) {
        self.credential.iter().for_each(RateLimiter::retain_recent);
        self.tenant.iter().for_each(RateLimiter::retain_recent);
        self.address.iter().for_each(RateLimiter::retain_recent);
        self.failed_authentication.iter().for_each(RateLimiter::retain_recent);
    }
}

fn quota(rate: Rate) -> Option<Quota> {
    let per_second = NonZeroU32::new(rate.per_second)?;
    Some(Quota::per_second(per_second).allow_burst(NonZeroU32::new(rate.burst).unwrap_or(per_second)))
}

fn admit<K: Clone + std::hash::Hash + Eq>(
    limiter: Option<&DefaultKeyedRateLimiter<K>>,
    key: &K,
) -> Result<(), ApiError> {
    let Some(limiter) = limiter else { return Ok(()) };
    limiter
        .check_key(key)
        .map_err(|until| ApiError::rate_limited(until.wait_time_from(DefaultClock::default().now())))
}
