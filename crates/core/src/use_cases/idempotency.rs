//! What an `Idempotency-Key` was used for.

use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::{RequestId, TenantId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Gateway,
    gateway::Attempt,
    store::{Change, Guard},
    stored::Stored as _,
};

/// What a key stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The request.
    pub request_id: RequestId,
    /// Its content.
    pub hash: Sha256Hex,
    /// Until when the key is remembered.
    pub until: Timestamp,
}

impl Gateway {
    /// Refuses a key that was used for another request. `scope` names the principal and the path.
    pub async fn check_idempotency_key(
        &self,
        tenant: &TenantId,
        scope: &str,
        key: &str,
        request_id: &RequestId,
        hash: Sha256Hex,
    ) -> Result<(), Error> {
        let loaded = self.store.load(tenant, &[record_key(scope, key)]).await?;
        let known = Remembered::read(loaded.records.first().and_then(Option::as_ref))?;
        match known {
            Some(known) if loaded.now >= known.value.until => Ok(()),
            Some(known) if known.value.request_id != *request_id || known.value.hash != hash => {
                Err(Failure::Idempotency.into())
            }
            _ => Ok(()),
        }
    }

    /// Remembers what a key was used for, once the request has succeeded.
    pub async fn remember_idempotency_key(
        &self,
        tenant: &TenantId,
        scope: &str,
        key: &str,
        request_id: &RequestId,
        hash: Sha256Hex,
    ) -> Result<(), Error> {
        let key = record_key(scope, key);
        let until = self.store.now().await?.plus(self.retention.idempotency);
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::Absent(key.clone()));
        change.puts.push(Remembered { request_id: request_id.clone(), hash, until }.put(key.clone())?);
        change.due.push((until, key));
        match self.commit(change, None).await? {
            // Lost: it was remembered before, for the same request, or it would have been refused.
            Attempt::Done | Attempt::Lost => Ok(()),
        }
    }
}

/// Keys are as long as clients like; their hash is not.
fn record_key(scope: &str, key: &str) -> crate::store::Key {
    Remembered::key(Sha256Hex::digest(format!("{scope}\n{key}").as_bytes()))
}
