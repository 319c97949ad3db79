//! The operator sets what the tenant allows itself.

use countersign_wire::id::TenantId;

use crate::{
    Error, Gateway,
    edges::{Actor, note},
    policy::{POLICY_ID, Policy},
    store::Change,
    stored::Stored as _,
};

impl Gateway {
    /// The tenant's policy.
    pub async fn policy(&self, tenant: &TenantId) -> Result<Policy, Error> {
        let loaded = self.store.load(tenant, &[Policy::key(POLICY_ID)]).await?;
        let known = Policy::read(loaded.first())?;
        Ok(known.map(|known| known.value).unwrap_or_default())
    }

    /// Sets the whole policy.
    pub async fn set_policy(&self, tenant: &TenantId, policy: &Policy) -> Result<(), Error> {
        let key = Policy::key(POLICY_ID);
        let mut change = Change::new(tenant.clone());
        // No guard: whoever sets it last is right.
        change.puts.push(policy.put(key.clone())?);
        change.audit.push(note(key, Actor::Operator, "policy.set")?);
        self.commit(change, None).await.map(drop)
    }
}
