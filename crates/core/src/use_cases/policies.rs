//! The operator reads and sets the tenant's policy.

use countersign_wire::id::TenantId;

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::Gateway,
    load::record_of,
    model::policy::{POLICY_ID, Policy},
    store::{Change, Stored as _},
};

// CONTRIBUTING: add an endpoint, step 3
impl Gateway {
    /// The tenant's policy; the default where none was set.
    pub async fn policy(&self, tenant: &TenantId) -> Result<Policy, Error> {
        let (known, _) = self.load(tenant, &record_of::<Policy>(POLICY_ID)).await?;
        Ok(known.map(|known| known.value).unwrap_or_default())
    }

    /// Replaces the whole policy.
    pub async fn set_policy(&self, tenant: &TenantId, policy: &Policy) -> Result<(), Error> {
        let key = Policy::key(POLICY_ID);
        let mut change = Change::new(tenant.clone());
        // No guard: the last writer wins.
        change.puts.push(policy.put(key.clone())?);
        change.audit.push(audit::action(key, Actor::Operator, "policy.set")?);
        self.commit(change, None).await.map(drop)
    }
}
