//! The roles of API keys, cached for a few seconds.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{Error, Gateway, model::credential::Role};
use countersign_wire::{api_key::ApiKey, hash::Sha256Hex};
use tokio::time::Instant;

/// A revoked key stops working everywhere within this time.
const CACHE_TTL: Duration = Duration::from_secs(5);

const MAX_CACHED_KEYS: usize = 10_000;

/// Caches the roles of valid keys only: a flood of invalid ones can't fill the memory, and a new key works at once.
#[derive(Debug)]
pub(crate) struct KeyCache {
    gateway: Gateway,
    cached: Mutex<HashMap<Sha256Hex, (Role, Instant)>>,
}

impl KeyCache {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { gateway, cached: Mutex::default() }
    }

    /// The role of a key; `None` if it is unknown, wrong or revoked.
    pub(crate) async fn role_of(&self, key: &ApiKey) -> Result<Option<Role>, Error> {
        // By the whole key: tenant and key id are part of what was proved.
        let digest = Sha256Hex::digest(key.expose().as_bytes());
        if let Some((role, until)) = self.cached().get(&digest)
            && Instant::now() < *until
        {
            return Ok(Some(role.clone()));
        }
        let role = self.gateway.authenticate(key).await?;
        let mut cached = self.cached();
        if let Some(role) = &role {
            if cached.len() >= MAX_CACHED_KEYS {
                let now = Instant::now();
                cached.retain(|_, (_, until)| now < *until);
            }
            if cached.len() < MAX_CACHED_KEYS {
                cached.insert(digest, (role.clone(), Instant::now() + CACHE_TTL));
            }
        }
        Ok(role)
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<Sha256Hex, (Role, Instant)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
