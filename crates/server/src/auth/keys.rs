//! What a key is for, remembered for a few seconds.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{Error, Gateway, model::credential::Role};
use countersign_wire::{api_key::ApiKey, hash::Sha256Hex};
use tokio::time::Instant;

/// A revoked key stops working everywhere within this.
const REMEMBERED_FOR: Duration = Duration::from_secs(5);

/// More keys than this are not remembered at once.
const MOST: usize = 10_000;

/// Asks the gateway what a key is for, and remembers the answer. Only good keys are remembered: a flood of
/// bad ones can't fill the memory, and a new key works at once.
#[derive(Debug)]
pub(crate) struct Keys {
    gateway: Gateway,
    known: Mutex<HashMap<Sha256Hex, (Role, Instant)>>,
}

impl Keys {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self { gateway, known: Mutex::default() }
    }

    pub(crate) async fn role_of(&self, key: &ApiKey) -> Result<Option<Role>, Error> {
        // By the whole key: tenant and key id belong to what was proved.
        let digest = Sha256Hex::digest(key.expose().as_bytes());
        if let Some((role, until)) = self.known().get(&digest)
            && Instant::now() < *until
        {
            return Ok(Some(role.clone()));
        }
        let role = self.gateway.authenticate(key).await?;
        let mut known = self.known();
        if let Some(role) = &role {
            if known.len() >= MOST {
                let now = Instant::now();
                known.retain(|_, (_, until)| now < *until);
            }
            if known.len() < MOST {
                known.insert(digest, (role.clone(), Instant::now() + REMEMBERED_FOR));
            }
        }
        Ok(role)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Sha256Hex, (Role, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
