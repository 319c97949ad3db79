//! Rotation: the owner of a key replaces it, without the operator.

use std::time::Duration;

use countersign_wire::{
    api_key::{ApiKey, KeyId},
    failure::Failure,
    key_nonce::KeyNonce,
    mac::MacKey,
    timestamp::Timestamp,
};

use super::credentials::{KeySpec, NewKey};
use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::{
        credential::{Credential, Rotation},
        derived_key::{DerivedKey, REPEATABLE},
    },
    notify::Ring,
    retention::Retention,
    store::{Change, Guard, StoreError, Stored as _, Versioned},
};

/// How long both keys are valid, unless the owner says otherwise, and at most.
pub const DEFAULT_OVERLAP: Duration = Duration::from_hours(1);
pub const MAX_OVERLAP: Duration = Duration::from_hours(7 * 24);

/// A key that takes the place of another.
#[derive(Debug)]
pub struct RotatedKey {
    pub new: NewKey,
    /// When the other one expires.
    pub previous_expires_at: Timestamp,
}

impl Gateway {
    /// Makes the successor of `key`, which expires after `overlap`. The same nonce gets the same successor, for a minute;
    /// there is never another one. So whoever steals a key after its rotation can't make one that outlives it.
    pub async fn rotate_key(
        &self,
        key: &ApiKey,
        nonce: &KeyNonce,
        overlap: Duration,
        mac_key: &MacKey,
    ) -> Result<RotatedKey, Error> {
        if overlap > MAX_OVERLAP {
            return Err(Error::breaks("overlapSeconds", "must be at most 604800"));
        }
        let record = record_of::<Credential>(key.key_id());
        let secret = key.successor_secret(nonce, mac_key);
        let successor = |ulid: &str| {
            let made = ApiKey::with_mac(key.tenant().clone(), ulid, secret, mac_key);
            made.map_err(|_| Error::from(Failure::Internal))
        };
        self.update(key.tenant(), &record, |known, now| {
            // The caller may have been authenticated some seconds ago.
            let active = |known: &Credential| known.secret_hash == key.secret_hash() && known.is_active(now);
            let known = known.filter(|known| active(&known.value)).ok_or(Failure::Unauthenticated)?;
            let mut guards = Change::new(key.tenant().clone());
            guards.guards.push(Guard::unchanged(record.key(), Some(&known)));
            if let Some(rotation) = &known.value.rotation {
                let key_id = rotation.successor.key_id.parse::<KeyId>();
                let key_id = key_id.map_err(|rule| StoreError::corrupt(rule.to_string()))?;
                let made = successor(key_id.ulid())?;
                if !rotation.successor.is(&made) || !rotation.successor.is_repeatable(now) {
                    let fault =
                        countersign_wire::Error::breaks("nonce", "is not that of the key's one rotation");
                    let error = Error::Invalid { failure: Failure::State, fault };
                    return Ok(Evaluation::reject_if_unchanged(guards, error));
                }
                return Ok(Evaluation::commit(guards, rotated(made, &known.value, rotation)));
            }
            known.value.check_age(now).map_err(Error::RateLimited)?;
            let made = successor(&self.random.ulid(now).to_string())?;
            let rotation = Rotation {
                successor: DerivedKey::new(&made, now),
                previous_expires_at: known.value.expires_at.unwrap_or(Timestamp::MAX).min(now.plus(overlap)),
                expires_at: known.value.expires_at,
            };
            let mut change = rotation_change(&known, key, &made, &rotation, &self.retention)?;
            change.append(guards);
            let ring = Ring::Record(key.tenant().clone(), record.key());
            Ok(Evaluation::commit_and_ring(change, ring, rotated(made, &known.value, &rotation)))
        })
        .await
    }
}

impl Credential {
    /// A successor has to wait before it is replaced itself, or one client could make any number of keys. The error is
    /// how long.
    fn check_age(&self, now: Timestamp) -> Result<(), Duration> {
        let young = self.rotated_from.is_some() && now < self.created_at.plus(REPEATABLE);
        if young { Err(self.created_at.plus(REPEATABLE).since(now)) } else { Ok(()) }
    }
}

/// It never lives longer than the operator has let the first one live.
fn spec(previous: &Credential, rotation: &Rotation) -> KeySpec {
    KeySpec { role: previous.role.clone(), label: previous.label.clone(), expires_at: rotation.expires_at }
}

fn rotated(made: ApiKey, previous: &Credential, rotation: &Rotation) -> RotatedKey {
    let new = NewKey { key: made, spec: spec(previous, rotation) };
    RotatedKey { new, previous_expires_at: rotation.previous_expires_at }
}

fn rotation_change(
    known: &Versioned<Credential>,
    key: &ApiKey,
    made: &ApiKey,
    rotation: &Rotation,
    retention: &Retention,
) -> Result<Change, StoreError> {
    let (old, new) = (Credential::key(key.key_id()), Credential::key(made.key_id()));
    let previous = Credential {
        expires_at: Some(rotation.previous_expires_at),
        rotation: Some(rotation.clone()),
        ..known.value.clone()
    };
    let successor = Credential {
        rotated_from: Some(key.key_id().to_string()),
        ..spec(&known.value, rotation).credential(made, rotation.successor.at)
    };
    let mut change = Change::new(key.tenant().clone());
    change.guards.push(Guard::Absent(new.clone()));
    change.guards.extend(known.value.expires_at.map(Guard::Before));
    change.due.extend(retention.of_key(&previous).map(|at| (at, old.clone())));
    change.due.extend(retention.of_key(&successor).map(|at| (at, new.clone())));
    change.puts.push(previous.put(old.clone())?);
    change.puts.push(successor.put(new.clone())?);
    let actor = Actor::Key(key.key_id().as_str());
    change.audit.push(audit::action(old, actor, "key.rotated")?);
    change.audit.push(audit::action(new, actor, "key.created")?);
    Ok(change)
}
