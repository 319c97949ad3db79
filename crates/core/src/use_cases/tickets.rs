//! Tickets for WebSockets from browsers: made for a credential, redeemed once.

use countersign_wire::{
    hash::Sha256Hex,
    id::TenantId,
    mac::{MAC_LENGTH, MacKey},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::{Commit, Gateway},
    load::record_at,
    model::{
        credential::Role,
        ticket::{TICKET_LIFE, Ticket},
    },
    store::{Change, Guard, Stored as _},
};

const MAC_PURPOSE: &str = "ticket";

impl Gateway {
    /// Makes a ticket: the tenant, a dot, 256 random bits, and a MAC over both.
    pub async fn create_ticket(
        &self,
        tenant: &TenantId,
        role: Role,
        principal: String,
        mac_key: &MacKey,
    ) -> Result<(String, Timestamp), Error> {
        let until = self.store.now().await?.plus(TICKET_LIFE);
        let text = format!("{tenant}.{}", self.random.secret());
        let mac = mac_key.mac(MAC_PURPOSE, &[text.as_bytes()]);
        let text = text + &mac;
        let key = Ticket::key(Sha256Hex::digest(text.as_bytes()));
        let mut change = Change::new(tenant.clone());
        change.puts.push(Ticket { role, principal, until }.put(key.clone())?);
        change.due.push((until, key));
        self.commit(change, None).await?;
        Ok((text, until))
    }

    /// Redeems a ticket, once. `None` if it is unknown, used or expired. One that no gateway made is rejected without a
    /// read.
    pub async fn redeem_ticket(
        &self,
        text: &str,
        mac_key: &MacKey,
    ) -> Result<Option<(TenantId, Ticket)>, Error> {
        let parts = text.len().checked_sub(MAC_LENGTH).and_then(|end| text.split_at_checked(end));
        if !parts.is_some_and(|(made, mac)| mac_key.verifies(MAC_PURPOSE, &[made.as_bytes()], mac)) {
            return Ok(None);
        }
        let Some(tenant) = text.split_once('.').and_then(|(tenant, _)| TenantId::new(tenant).ok()) else {
            return Ok(None);
        };
        let key = Ticket::key(Sha256Hex::digest(text.as_bytes()));
        let (known, now) = self.load(&tenant, &record_at::<Ticket>(key.clone())).await?;
        let Some(known) = known else { return Ok(None) };
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
        change.deletes.push(key.clone());
        change.no_longer_due.push(key);
        // On a conflict somebody else has redeemed it.
        let first = self.commit(change, None).await? == Commit::Done;
        Ok((first && now < known.value.until).then_some((tenant, known.value)))
    }
}
