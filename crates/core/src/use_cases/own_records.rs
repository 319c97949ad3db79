//! Nodes read and write what the gateway keeps for itself. One of them at a time, by a claim that ends by itself.

use std::time::Duration;

use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_at,
    model::own_record::{Claim, OwnRecord},
    store::{Change, Guard, Key, Shard, StoreError, Stored as _},
};

fn location(name: &str) -> Result<(TenantId, Key), StoreError> {
    Ok((Shard(0).nodes_tenant()?, OwnRecord::key(name)))
}

impl Gateway {
    /// The record, and the store's time.
    pub async fn own_record(&self, name: &str) -> Result<(OwnRecord, Timestamp), Error> {
        let (tenant, key) = location(name)?;
        let (known, now) = self.load(&tenant, &record_at::<OwnRecord>(key)).await?;
        Ok((known.map(|known| known.value).unwrap_or_default(), now))
    }

    /// Claims the record for this node, if nobody else has and it is time; `None` if not. A claim that this node has is
    /// prolonged.
    pub async fn claim_own_record(&self, name: &str, life: Duration) -> Result<Option<OwnRecord>, Error> {
        let (tenant, key) = location(name)?;
        self.update(&tenant, &record_at::<OwnRecord>(key.clone()), |known, now| {
            let guard = Guard::unchanged(key.clone(), known.as_ref());
            let mut record = known.map(|known| known.value).unwrap_or_default();
            if !record.is_free(self.node(), now) {
                return Ok(Evaluation::NothingToDo(None));
            }
            record.claim = Some(Claim { node: self.node().clone(), until: now.plus(life) });
            let mut change = Change::new(tenant.clone());
            change.guards.push(guard);
            change.puts.push(record.put(key.clone())?);
            Ok(Evaluation::commit(change, Some(record)))
        })
        .await
    }

    /// Changes a record that this node has claimed. Whether it still had: another may have taken over since.
    pub async fn write_own_record(
        &self,
        name: &str,
        action: &'static str,
        write: impl Fn(&mut OwnRecord, Timestamp),
    ) -> Result<bool, Error> {
        let (tenant, key) = location(name)?;
        self.update(&tenant, &record_at::<OwnRecord>(key.clone()), |known, now| {
            let Some(known) = known.filter(|known| known.value.is_claimed_by(self.node(), now)) else {
                return Ok(Evaluation::NothingToDo(false));
            };
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
            let mut record = known.value;
            write(&mut record, now);
            change.puts.push(record.put(key.clone())?);
            change.audit.push(audit::action(key.clone(), Actor::Clock, action)?);
            Ok(Evaluation::commit(change, true))
        })
        .await
    }
}
