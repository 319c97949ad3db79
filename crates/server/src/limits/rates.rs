//! Rate limits: per credential, per tenant and per address, in requests and for a tenant in bytes too.

use std::{net::IpAddr, num::NonZeroU32};

use countersign_wire::{failure::Failure, id::TenantId};
use governor::{
    DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock, QuantaInstant},
};

use super::client_address::ClientAddress;
use crate::{
    config::{Rate, RateLimits},
    error::ApiError,
    metrics::Rejection,
};

/// Counts requests. The default limits nothing.
#[derive(Debug, Default)]
pub struct RateLimiters {
    credential: Option<DefaultKeyedRateLimiter<(TenantId, String)>>,
    tenant: Option<DefaultKeyedRateLimiter<TenantId>>,
    /// In KiB, with the largest amount that can be counted at once.
    tenant_kib: Option<(DefaultKeyedRateLimiter<TenantId>, NonZeroU32)>,
    address: Option<DefaultKeyedRateLimiter<IpAddr>>,
    failed_authentication: Option<DefaultKeyedRateLimiter<IpAddr>>,
}

impl RateLimiters {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            credential: quota(limits.credential).map(RateLimiter::keyed),
            tenant: quota(limits.tenant).map(RateLimiter::keyed),
            tenant_kib: quota(limits.tenant_kib).map(|kib| (RateLimiter::keyed(kib), kib.burst_size())),
            address: quota(limits.address).map(RateLimiter::keyed),
            failed_authentication: quota(limits.failed_authentication).map(RateLimiter::keyed),
        }
    }

    pub(crate) fn admit_address(&self, client: Option<ClientAddress>) -> Result<(), ApiError> {
        match client {
            Some(client) => admit(self.address.as_ref(), &client.network(), Rejection::AddressRate),
            None => Ok(()),
        }
    }

    pub(crate) fn admit(&self, tenant: &TenantId, principal: &str) -> Result<(), ApiError> {
        let credential = (tenant.clone(), principal.to_owned());
        admit(self.credential.as_ref(), &credential, Rejection::CredentialRate)?;
        admit(self.tenant.as_ref(), tenant, Rejection::TenantRate)
    }

    /// Counts what a body costs to keep, before it is parsed. One that exceeds the burst counts as the whole burst.
    pub(crate) fn admit_bytes(&self, tenant: &TenantId, bytes: usize) -> Result<(), ApiError> {
        let Some((limiter, burst)) = &self.tenant_kib else { return Ok(()) };
        let kib = u32::try_from(bytes.div_ceil(1_024)).ok().and_then(NonZeroU32::new);
        let Some(kib) = kib.map(|kib| kib.min(*burst)) else { return Ok(()) };
        match limiter.check_key_n(tenant, kib) {
            Ok(Err(until)) => Err(rate_limited(&until, Rejection::TenantBytes)),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    /// Counts a failed authentication. A client that fails too often is told to wait, and not that it failed.
    pub(crate) fn count_failed_authentication(
        &self,
        client: Option<ClientAddress>,
        error: &ApiError,
    ) -> Result<(), ApiError> {
        match (client, error.failure()) {
            (Some(client), Failure::Unauthenticated) => {
                let limiter = self.failed_authentication.as_ref();
                admit(limiter, &client.network(), Rejection::FailedAuthentication)
            }
            _ => Ok(()),
        }
    }

    /// Counts an attempt to join without a valid invitation, as a failed authentication.
    pub(crate) fn count_failed_join(
        &self,
        client: Option<ClientAddress>,
        error: &ApiError,
    ) -> Result<(), ApiError> {
        match (client, error.failure()) {
            (Some(client), Failure::NotFound) => {
                let limiter = self.failed_authentication.as_ref();
                admit(limiter, &client.network(), Rejection::FailedAuthentication)
            }
            _ => Ok(()),
        }
    }

    /// Evicts the counters of clients that have not called for a while.
    pub fn evict_idle(&self) {
        self.credential.iter().for_each(RateLimiter::retain_recent);
        self.tenant.iter().for_each(RateLimiter::retain_recent);
        self.tenant_kib.iter().for_each(|(limiter, _)| limiter.retain_recent());
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
    rejection: Rejection,
) -> Result<(), ApiError> {
    let Some(limiter) = limiter else { return Ok(()) };
    limiter.check_key(key).map_err(|until| rate_limited(&until, rejection))
}

fn rate_limited(until: &NotUntil<QuantaInstant>, rejection: Rejection) -> ApiError {
    ApiError::rate_limited(until.wait_time_from(DefaultClock::default().now()), rejection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_may_send_so_many_bytes_and_others_are_not_held_up() {
        let tenant_kib = Rate { per_second: 1, burst: 100 };
        let limiters = RateLimiters::new(RateLimits { tenant_kib, ..RateLimits::off() });
        let [loud, quiet] = ["loud", "quiet"].map(|name| TenantId::new(name).unwrap());
        limiters.admit_bytes(&loud, 60 << 10).unwrap();
        let refused = limiters.admit_bytes(&loud, 60 << 10).unwrap_err();
        assert_eq!(refused.failure(), Failure::RateLimited);
        assert!((15..=21).contains(&refused.retry_after_seconds().unwrap()), "20 KiB are missing");
        limiters.admit_bytes(&loud, 30 << 10).unwrap();
        limiters.admit_bytes(&quiet, 1 << 30).unwrap();
        limiters.admit_bytes(&quiet, 1).unwrap_err();
    }
}
