//! A node compares its secrets with those that the store was used with before.

use countersign_wire::id::TenantId;

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_at,
    model::secret_checks::SecretChecks,
    store::{Change, Guard, Key, Shard, StoreError, Stored as _},
};

/// Where the check values are, for readers without a gateway. They are on one shard, whose answer a start waits for.
pub fn location() -> Result<(TenantId, Key), StoreError> {
    Ok((Shard(0).nodes_tenant()?, SecretChecks::key("nodes")))
}

impl Gateway {
    /// The check values that the store has; `None` before the first start.
    pub async fn secret_checks(&self) -> Result<Option<SecretChecks>, Error> {
        let (tenant, key) = location()?;
        let (known, _) = self.load(&tenant, &record_at::<SecretChecks>(key)).await?;
        Ok(known.map(|known| known.value))
    }

    /// Writes these check values if the store has none, and returns those that it has then: another node may be first.
    pub async fn record_secret_checks(&self, checks: &SecretChecks) -> Result<SecretChecks, Error> {
        let (tenant, key) = location()?;
        self.update(&tenant, &record_at::<SecretChecks>(key.clone()), |known, _| {
            if let Some(known) = known {
                return Ok(Evaluation::NothingToDo(known.value));
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::Absent(key.clone()));
            change.puts.push(checks.put(key.clone())?);
            change.audit.push(audit::action(key.clone(), Actor::Operator, "secrets.recorded")?);
            Ok(Evaluation::commit(change, checks.clone()))
        })
        .await
    }

    /// Replaces the check values: the operator says that the secrets of all nodes are these from now on.
    pub async fn accept_secret_checks(&self, checks: &SecretChecks) -> Result<(), Error> {
        let (tenant, key) = location()?;
        let mut change = Change::new(tenant);
        // No guard: the last writer wins.
        change.puts.push(checks.put(key.clone())?);
        change.audit.push(audit::action(key, Actor::Operator, "secrets.accepted")?);
        self.commit(change, None).await.map(drop)
    }
}
