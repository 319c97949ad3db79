//! Who may call: credentials of a tenant, kept as the hash of their secret.

use std::fmt;

use countersign_wire::{
    api_key::{ApiKey, KeyId},
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, TenantId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Gateway,
    doorbell::{Listener, Ring},
    edges::{Actor, note},
    gateway::Attempt,
    store::{Change, Guard, Kind},
    stored::{Stored as _, unchanged},
};

/// What a credential is for. `None` as the id means any id of that role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "role", content = "id", rename_all = "camelCase")]
pub enum Role {
    /// Submits, waits, withdraws.
    Enforcer(Option<EnforcerId>),
    /// Reviews and decides.
    Approver(Option<ApproverId>),
    /// Runs the tenant: keys, policy, cancelling. Neither submits nor decides.
    Operator,
}

/// A credential as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// What it is for.
    pub role: Role,
    /// SHA-256 of its secret.
    pub secret_hash: Sha256Hex,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it is void.
    pub revoked_at: Option<Timestamp>,
}

/// A credential that was just made. Its key is shown once and kept nowhere.
pub struct NewKey {
    /// The whole key.
    pub key: ApiKey,
    /// What it is for.
    pub role: Role,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Read at once when keys are listed.
const CHUNK: u32 = 1_000;

impl Gateway {
    /// Makes a credential.
    pub async fn create_key(&self, tenant: &TenantId, role: Role) -> Result<NewKey, Error> {
        loop {
            let now = self.store.now().await?;
            let mut secret = [0; 32];
            self.chance.fill(&mut secret);
            let key_id = KeyId::from_ulid_text(&self.chance.ulid(now).to_string());
            let key = ApiKey::new(tenant.clone(), key_id, secret).map_err(|_| Failure::Validation)?;
            let credential = Credential {
                role: role.clone(),
                secret_hash: key.secret_hash(),
                created_at: now,
                revoked_at: None,
            };
            let record = Credential::key(key.key_id());
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::Absent(record.clone()));
            change.puts.push(credential.put(record.clone())?);
            change.audit.push(note(record, Actor::Operator, "key.created")?);
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(NewKey { key, role });
            }
        }
    }

    /// What a key is for, if it is known, right and not revoked.
    pub async fn authenticate(&self, key: &ApiKey) -> Result<Option<Role>, Error> {
        let loaded = self.store.load(key.tenant(), &[Credential::key(key.key_id())]).await?;
        let known = Credential::read(loaded.first())?;
        // Both are hashes of secrets with 256 random bits: how long their comparison takes says nothing of use.
        let stands = |known: &Credential| {
            known.secret_hash == key.secret_hash() && known.revoked_at.is_none_or(|at| loaded.now < at)
        };
        Ok(known.map(|known| known.value).filter(stands).map(|known| known.role))
    }

    /// Whether the key of this id is there and not revoked.
    pub async fn key_stands(&self, tenant: &TenantId, key_id: &str) -> Result<bool, Error> {
        let loaded = self.store.load(tenant, &[Credential::key(key_id)]).await?;
        let known = Credential::read(loaded.first())?;
        Ok(known.is_some_and(|known| known.value.revoked_at.is_none_or(|at| loaded.now < at)))
    }

    /// Hears when the key of this id changes. Listen before you look whether it stands.
    pub fn listen_to_key(&self, tenant: &TenantId, key_id: &str) -> Listener {
        self.doorbell.listen(vec![Ring::Record(tenant.clone(), Credential::key(key_id))])
    }

    /// All keys of the tenant, with their ids.
    pub async fn keys(&self, tenant: &TenantId) -> Result<Vec<(KeyId, Credential)>, Error> {
        let mut keys = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let records = self.store.scan(tenant, Kind::Credential, after.as_deref(), CHUNK).await?;
            for record in &records {
                if let Some(known) = Credential::read(Some(record))? {
                    keys.push((KeyId::from_ulid_text(&record.key.id), known.value));
                }
            }
            match records.last() {
                Some(last) if records.len() == CHUNK as usize => after = Some(last.key.id.clone()),
                _ => return Ok(keys),
            }
        }
    }

    /// Voids a key; again is as good as once.
    pub async fn revoke_key(&self, tenant: &TenantId, key_id: &KeyId) -> Result<Timestamp, Error> {
        let key = Credential::key(key_id);
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&key)).await?;
            let known = Credential::read(loaded.first())?;
            let known = known.ok_or(Failure::NotFound)?;
            let revoked_at = known.value.revoked_at.unwrap_or(loaded.now);
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(key.clone(), Some(&known)));
            if known.value.revoked_at.is_none() {
                let revoked = Credential { revoked_at: Some(revoked_at), ..known.value };
                change.puts.push(revoked.put(key.clone())?);
                change.audit.push(note(key.clone(), Actor::Operator, "key.revoked")?);
            }
            let revoked = Ring::Record(tenant.clone(), key.clone());
            if let Attempt::Done = self.commit(change, Some(revoked)).await? {
                return Ok(revoked_at);
            }
        }
    }
}
