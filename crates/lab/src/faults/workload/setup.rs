//! Who takes part, and where.

use crate::tls::TlsClient;

/// What the clients need to know.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Base URLs. Clients go to any of them, and to another one on failure.
    pub(crate) nodes: Vec<String>,
    /// What bare clients make TLS connections with; `None` for plain HTTP. Others trust the nodes by themselves.
    pub(crate) tls: Option<TlsClient>,
    pub(crate) tenants: Vec<TenantKeys>,
    /// How many enforcers there are in all tenants together.
    pub(crate) enforcers: usize,
    pub(crate) approvers: usize,
    /// The same seed makes the same choices; what happens also depends on the time that everything takes.
    pub(crate) seed: u64,
    /// Whether clients of the library are never stopped on purpose, have time to spare for everything, and never contradict each
    /// other. Then no exchange of theirs fails unless a gateway or the library fails.
    pub(crate) is_steady: bool,
}

/// The API keys of one tenant; those of enforcers and approvers are for any id.
#[derive(Debug, Clone)]
pub(crate) struct TenantKeys {
    pub(crate) tenant: String,
    pub(crate) operator_key: String,
    pub(crate) enforcer_key: String,
    pub(crate) approver_key: String,
}
