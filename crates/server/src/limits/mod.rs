//! What limits clients: rates, and quotas of memory and connections.

mod client_address;
mod connections;
mod failure_budget;
mod quota;
mod rates;
mod turns;

pub(crate) use client_address::ClientAddress;
pub use connections::max_connections;
pub(crate) use failure_budget::FailureBudget;
pub(crate) use quota::{QuotaPermit, TenantQuota};
pub use rates::RateLimiters;
pub(crate) use turns::FairSemaphore;
