//! What limits clients: rates, quotas of memory and connections, and turns at what is scarce.

mod client_address;
mod connections;
mod cpu_pool;
mod failure_budget;
mod quota;
mod rates;
mod stored;

pub use client_address::TrustedProxies;
pub(crate) use client_address::{ClientAddress, ClientName, Peer};
pub use connections::max_connections;
pub(crate) use countersign_core::fair::{FairPermit, FairSemaphore};
pub(crate) use cpu_pool::{CpuPool, LARGE_BODY};
pub(crate) use failure_budget::{FailureBudget, FailureBudgets};
pub(crate) use quota::{QuotaPermit, TenantQuota};
pub use rates::RateLimiters;
pub(crate) use stored::StoredQuota;
