//! API keys: made, checked, listed, revoked.

use std::fmt;

use countersign_wire::{
    Label,
    api_key::{ApiKey, KeyId},
    failure::Failure,
    hash::Sha256Hex,
    id::TenantId,
    mac::MacKey,
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    cache::{Known, MAX_KNOWN_AGE},
    error::Error,
    gateway::{Evaluation, Gateway, Page},
    load::{RecordOf, record_at, record_of},
    model::{
        credential::{ActiveKey, CertificateSpec, Credential, Role, Rotation},
        tenant::Suspension,
    },
    notify::{Listener, Ring},
    store::{Change, Guard, StoreError, Stored as _},
};

/// What a new key is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpec {
    pub role: Role,
    pub label: Option<Label>,
    /// `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl From<Role> for KeySpec {
    /// Without a label, and without an end.
    fn from(role: Role) -> Self {
        Self { role, label: None, expires_at: None }
    }
}

impl KeySpec {
    /// The record of the key, which has its secret only as a hash.
    pub(crate) fn credential(self, key: &ApiKey, now: Timestamp) -> Credential {
        Credential {
            role: self.role,
            secret_hash: key.secret_hash(),
            created_at: now,
            revoked_at: None,
            expires_at: self.expires_at,
            label: self.label,
            rotation: None,
            rotated_from: None,
            certificate: None,
        }
    }
}

/// A key that was just made. It is shown once and stored nowhere.
pub struct NewKey {
    pub key: ApiKey,
    pub spec: KeySpec,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// What a node remembers of a key. A change of the key, on any node, ends what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognized {
    /// The store said this a few seconds ago at most: what the key is for, or that it is not valid.
    Lately(Option<ActiveKey>),
    /// The key was valid a few seconds ago, and its tenant suspended.
    Suspended,
    /// The secret is right; the store has to be asked whether it is still valid.
    Before,
    /// Nothing is known of it.
    Unknown,
}

fn key_and_suspension(key_id: impl fmt::Display) -> (RecordOf<Credential>, RecordOf<Suspension>) {
    (record_of(key_id), record_at(Suspension::record()))
}

impl Gateway {
    /// Makes an API key, whose id carries a MAC by `mac_key`. One that would have expired already is not made.
    pub async fn create_key(
        &self,
        tenant: &TenantId,
        spec: impl Into<KeySpec>,
        mac_key: &MacKey,
    ) -> Result<NewKey, Error> {
        let spec = spec.into();
        // A conflict means that the key id is taken: draw another.
        self.update(tenant, &(), |(), now| {
            if spec.expires_at.is_some_and(|at| at <= now) {
                return Err(Error::breaks("expiresAt", "must be in the future"));
            }
            let mut secret = [0; 32];
            self.random.fill(&mut secret);
            let ulid = self.random.ulid(now).to_string();
            let key = ApiKey::with_mac(tenant.clone(), &ulid, secret, mac_key);
            let key = key.map_err(|_| Failure::Validation)?;
            let record = Credential::key(key.key_id());
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::Absent(record.clone()));
            let credential = spec.clone().credential(&key, now);
            change.due.extend(self.retention.of_key(&credential).map(|at| (at, record.clone())));
            change.puts.push(credential.put(record.clone())?);
            change.audit.push(audit::action(record, Actor::Operator, "key.created")?);
            Ok(Evaluation::commit(change, NewKey { key, spec: spec.clone() }))
        })
        .await
    }

    /// What a key is for; `None` if it is unknown, wrong or revoked, or has expired. That its tenant is suspended is only
    /// said to who has such a key.
    pub async fn authenticate(&self, key: &ApiKey) -> Result<Option<ActiveKey>, Error> {
        let ((known, suspension), now) = self.load(key.tenant(), &key_and_suspension(key.key_id())).await?;
        let credential = known.and_then(|known| known.value.opened_by(key));
        let active = credential.and_then(|known| known.active(now));
        match active.is_some() && suspension.is_some() {
            true => Err(Failure::Forbidden.into()),
            false => Ok(active),
        }
    }

    /// What a certificate is for; `None` if it is revoked or has expired. The first time its credential is made. The caller has
    /// made sure that an authority vouches for it, and that the client has its key.
    pub async fn authenticate_certificate(
        &self,
        certificate: &CertificateSpec,
    ) -> Result<Option<ActiveKey>, Error> {
        let (tenant, key_id) = (&certificate.tenant, certificate.key_id());
        self.update(tenant, &key_and_suspension(&key_id), |(known, suspension), now| {
            let is_new = known.is_none();
            // Nobody knows the secret, so that the id can't be used as a key.
            let mut secret = [0; 32];
            self.random.fill(&mut secret);
            let made = || certificate.credential(Sha256Hex::digest(&secret), now);
            let credential =
                known.map_or_else(|| Some(made()), |known| known.value.of_certificate(certificate));
            let active = credential.clone().and_then(|credential| credential.active(now));
            let (Some(active), Some(credential)) = (active, credential) else {
                return Ok(Evaluation::NothingToDo(None));
            };
            if suspension.is_some() {
                return Err(Failure::Forbidden.into());
            }
            if !is_new {
                return Ok(Evaluation::NothingToDo(Some(active)));
            }
            let record = Credential::key(&key_id);
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::Absent(record.clone()));
            change.due.extend(self.retention.of_key(&credential).map(|at| (at, record.clone())));
            change.puts.push(credential.put(record.clone())?);
            change.audit.push(audit::action(record, Actor::Key(key_id.as_str()), "certificate.first-used")?);
            Ok(Evaluation::commit(change, Some(active)))
        })
        .await
    }

    /// What this node knows of a key without asking the store.
    pub fn recognize(&self, key: &ApiKey) -> Recognized {
        self.recognize_with(key.tenant(), key.key_id(), |known| known.opened_by(key))
    }

    /// The same of a certificate.
    pub fn recognize_certificate(&self, certificate: &CertificateSpec) -> Recognized {
        let is_it = |known: Credential| known.of_certificate(certificate);
        self.recognize_with(&certificate.tenant, &certificate.key_id(), is_it)
    }

    fn recognize_with(
        &self,
        tenant_id: &TenantId,
        key_id: &KeyId,
        is_it: impl Fn(Credential) -> Option<Credential>,
    ) -> Recognized {
        let record = self.cache.known.get(tenant_id, &Credential::key(key_id), None);
        let Some(Known { record, at }) = record else { return Recognized::Unknown };
        let Ok(credential) = Credential::read(record.as_ref()) else { return Recognized::Unknown };
        let credential = credential.and_then(|known| is_it(known.value));
        let tenant = self.cache.known.get(tenant_id, &Suspension::record(), Some(MAX_KNOWN_AGE));
        match (self.store.estimated_now(tenant_id), tenant) {
            (Some(now), Some(tenant)) if at.elapsed() < MAX_KNOWN_AGE => {
                let active = credential.and_then(|known| known.active(now));
                match active.is_some() && tenant.record.is_some() {
                    true => Recognized::Suspended,
                    false => Recognized::Lately(active),
                }
            }
            _ if credential.is_some() => Recognized::Before,
            _ => Recognized::Unknown,
        }
    }

    /// What the key of this id is for; `None` if it does not exist, is revoked or has expired, or its tenant is suspended.
    pub async fn active_key(&self, tenant: &TenantId, key_id: &str) -> Result<Option<ActiveKey>, Error> {
        let ((known, suspension), now) = self.load(tenant, &key_and_suspension(key_id)).await?;
        Ok(known.filter(|_| suspension.is_none()).and_then(|known| known.value.active(now)))
    }

    /// Listens to changes of the key of this id. Listen before you check whether it is active.
    pub fn listen_to_key(&self, tenant: &TenantId, key_id: &str) -> Listener {
        self.listen(vec![Ring::Record(tenant.clone(), Credential::key(key_id))])
    }

    /// A page of the tenant's keys, after the id `after`.
    pub async fn keys(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<KeyId, Credential>, Error> {
        self.page_of(tenant, after, limit).await
    }

    /// Revokes a key with all that took its place and all whose place it took, and wakes everything that is held open with
    /// them. Idempotent.
    pub async fn revoke_key(&self, tenant: &TenantId, key_id: &KeyId) -> Result<Timestamp, Error> {
        let revoked = self.revoke_one(tenant, key_id).await?;
        // In this order: a key that is revoked makes no successor, so the last one is the end of the chain.
        let mut successor = revoked.rotation.map(|rotation| rotation.successor.key_id);
        while let Some(next) = successor {
            successor = match self.revoke_one(tenant, &key_id_of(&next)?).await {
                Ok(next) => next.rotation.map(|rotation| rotation.successor.key_id),
                Err(error) if error.failure() == Failure::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        // What is no longer there has ended long ago.
        let mut predecessor = revoked.rotated_from;
        while let Some(previous) = predecessor {
            predecessor = match self.revoke_one(tenant, &key_id_of(&previous)?).await {
                Ok(previous) => previous.rotated_from,
                Err(error) if error.failure() == Failure::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        Ok(revoked.at)
    }

    async fn revoke_one(&self, tenant: &TenantId, key_id: &KeyId) -> Result<Revoked, Error> {
        let record = record_of::<Credential>(key_id);
        self.update(tenant, &record, |known, now| {
            let known = known.ok_or(Failure::NotFound)?;
            let key = record.key();
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
            let revoked_at = known.value.revoked_at.unwrap_or(now);
            let Credential { rotation, rotated_from, .. } = known.value.clone();
            if known.value.revoked_at.is_none() {
                let revoked = Credential { revoked_at: Some(revoked_at), ..known.value };
                change.due.extend(self.retention.of_key(&revoked).map(|at| (at, key.clone())));
                change.puts.push(revoked.put(key.clone())?);
                change.audit.push(audit::action(key.clone(), Actor::Operator, "key.revoked")?);
            }
            let revoked = Revoked { at: revoked_at, rotation, rotated_from };
            Ok(Evaluation::commit_and_ring(change, Ring::Record(tenant.clone(), key), revoked))
        })
        .await
    }
}

/// A key that is revoked, and its neighbours in its chain.
#[derive(Debug, Clone)]
struct Revoked {
    at: Timestamp,
    rotation: Option<Rotation>,
    rotated_from: Option<String>,
}

fn key_id_of(text: &str) -> Result<KeyId, StoreError> {
    text.parse().map_err(|rule: countersign_wire::Rule| StoreError::corrupt(rule.to_string()))
}
