//! The check of an `Idempotency-Key`. It is recorded in the commit of what it was used for.

use countersign_wire::{failure::Failure, hash::Sha256Hex, id::RequestId, timestamp::Timestamp};

use crate::{
    error::Error,
    load::{RecordOf, record_at},
    model::idempotency::{IdempotencyKey, IdempotencyRecord},
    retention::Retention,
    store::{Change, Guard, Stored as _, Versioned},
};

/// How a request uses a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdempotencyUse<'a> {
    pub(super) key: Option<&'a IdempotencyKey>,
    pub(super) request_id: &'a RequestId,
    pub(super) hash: Sha256Hex,
}

impl IdempotencyUse<'_> {
    /// The record of the key, for a load; `None` where the request has no key.
    pub(super) fn record(&self) -> Option<RecordOf<IdempotencyRecord>> {
        self.key.map(|key| record_at(key.record_key()))
    }

    /// Whether the key may be used for this request; `change` records the use then. Otherwise `change` gets the guard
    /// that the rejection rests on.
    pub(super) fn check(
        &self,
        known: Option<&Versioned<IdempotencyRecord>>,
        now: Timestamp,
        retention: &Retention,
        change: &mut Change,
    ) -> Result<bool, Error> {
        let Some(key) = self.key.map(IdempotencyKey::record_key) else { return Ok(true) };
        if let Some(known) = known
            && now < known.value.until
        {
            let same = known.value.request_id == *self.request_id && known.value.hash == self.hash;
            if !same {
                change.guards.push(Guard::unchanged(key, Some(known)));
            }
            return Ok(same);
        }
        let until = now.plus(retention.idempotency);
        let record = IdempotencyRecord { request_id: self.request_id.clone(), hash: self.hash, until };
        change.guards.push(Guard::unchanged(key.clone(), known));
        change.puts.push(record.put(key.clone())?);
        change.due.push((until, key));
        Ok(true)
    }
}

/// The tenant's policy requires the header (docs/protocol.md#idempotency).
pub(super) fn missing_idempotency_key() -> Error {
    Error::Invalid {
        failure: Failure::Validation,
        fault: countersign_wire::Error::missing("Idempotency-Key"),
    }
}
