//! The operator reads and sets the tenant's policy.

use countersign_wire::id::TenantId;

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::policy::{POLICY_ID, Policy},
    store::{Change, Guard, Stored as _},
};

// CONTRIBUTING: add an endpoint, step 3
impl Gateway {
    /// The tenant's policy; the default where none was set.
    pub async fn policy(&self, tenant: &TenantId) -> Result<Policy, Error> {
        let (known, _) = self.load(tenant, &record_of::<Policy>(POLICY_ID)).await?;
        Ok(known.map(|known| known.value).unwrap_or_default())
    }

    /// Replaces the whole policy; the last writer wins.
    pub async fn set_policy(&self, tenant: &TenantId, policy: &Policy) -> Result<(), Error> {
        self.update(tenant, &record_of::<Policy>(POLICY_ID), |known, _| {
            let key = Policy::key(POLICY_ID);
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), known.as_ref()));
            let notifies = known.is_some_and(|known| known.value.notifies);
            change.puts.push(Policy { notifies, ..policy.clone() }.put(key.clone())?);
            change.audit.push(audit::action(key, Actor::Operator, "policy.set")?);
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }
}
