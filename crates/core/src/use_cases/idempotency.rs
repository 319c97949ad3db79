//! What an `Idempotency-Key` was used for. It is written in the commit of what it was used for.

use countersign_wire::{hash::Sha256Hex, id::RequestId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    gateway::Retention,
    store::{Change, Key, Record},
    stored::{Stored as _, unchanged},
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

/// An `Idempotency-Key` of one principal on one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(Key);

impl IdempotencyKey {
    /// `scope` names the principal and the path. Keys are as long as clients like; their hash is not.
    pub fn new(scope: &str, key: &str) -> Self {
        Self(Remembered::key(Sha256Hex::digest(format!("{scope}\n{key}").as_bytes())))
    }

    pub(crate) fn record_key(&self) -> Key {
        self.0.clone()
    }
}

/// How a key is used by a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) key: Option<&'a IdempotencyKey>,
    pub(crate) request_id: &'a RequestId,
    pub(crate) hash: Sha256Hex,
}

impl Use<'_> {
    /// Whether the key may be used for this request; `change` will remember it then. Else the refusal rests on `change`.
    pub(crate) fn remember(
        &self,
        record: Option<&Record>,
        now: Timestamp,
        retention: &Retention,
        change: &mut Change,
    ) -> Result<bool, Error> {
        let Some(IdempotencyKey(key)) = self.key else { return Ok(true) };
        let known = Remembered::read(record)?;
        if let Some(known) = &known
            && now < known.value.until
        {
            let same = known.value.request_id == *self.request_id && known.value.hash == self.hash;
            if !same {
                change.guards.push(unchanged(key.clone(), Some(known)));
            }
            return Ok(same);
        }
        let until = now.plus(retention.idempotency);
        let remembered = Remembered { request_id: self.request_id.clone(), hash: self.hash, until };
        change.guards.push(unchanged(key.clone(), known.as_ref()));
        change.puts.push(remembered.put(key.clone())?);
        change.due.push((until, key.clone()));
        Ok(true)
    }
}
