//! Tickets: what a browser trades its credential for, since it can't set headers on a WebSocket.

use std::time::Duration;

use countersign_wire::{hash::Sha256Hex, id::TenantId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use super::credentials::Role;
use crate::{
    Error, Gateway,
    gateway::Attempt,
    store::Change,
    stored::{Stored as _, unchanged},
};

/// How long a ticket is good.
pub const TICKET_LIFE: Duration = Duration::from_secs(30);

/// A ticket as it is stored, by the hash of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Who may enter with it.
    pub role: Role,
    /// Whose credential it was traded for.
    pub principal: String,
    /// Until when.
    pub until: Timestamp,
}

impl Gateway {
    /// Makes a ticket: the tenant, a dot, and 256 random bits.
    pub async fn create_ticket(
        &self,
        tenant: &TenantId,
        role: Role,
        principal: String,
    ) -> Result<(String, Timestamp), Error> {
        let until = self.store.now().await?.plus(TICKET_LIFE);
        let text = format!("{tenant}.{}", self.chance.secret());
        let key = Ticket::key(Sha256Hex::digest(text.as_bytes()));
        let mut change = Change::new(tenant.clone());
        change.puts.push(Ticket { role, principal, until }.put(key.clone())?);
        change.due.push((until, key));
        self.commit(change, None).await?;
        Ok((text, until))
    }

    /// Takes a ticket. It is good once.
    pub async fn redeem_ticket(&self, text: &str) -> Result<Option<(TenantId, Ticket)>, Error> {
        let Some(tenant) = text.split_once('.').and_then(|(tenant, _)| TenantId::new(tenant).ok()) else {
            return Ok(None);
        };
        let key = Ticket::key(Sha256Hex::digest(text.as_bytes()));
        let loaded = self.store.load(&tenant, std::slice::from_ref(&key)).await?;
        let Some(known) = Ticket::read(loaded.first())? else {
            return Ok(None);
        };
        let mut change = Change::new(tenant.clone());
        change.guards.push(unchanged(key.clone(), Some(&known)));
        change.deletes.push(key);
        // Lost: somebody else was first, and the ticket is theirs.
        let first = matches!(self.commit(change, None).await?, Attempt::Done);
        Ok((first && loaded.now < known.value.until).then_some((tenant, known.value)))
    }
}
