//! What time does: expiry, retention, orphans. Any node may sweep; two at once only meet at the guards.

use std::time::Duration;

use countersign_wire::{
    failure::Failure,
    id::{RequestId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    Error, Gateway,
    edges::{self, Named, next_look},
    exchange::{Decided, Exchange, State},
    prompt::Prompt,
    session::Session,
    store::{Change, Due, Key, Kind, PayloadId, Record, Removal, StoreError},
    stored::{Stored as _, Versioned, unchanged},
    use_cases::{channels::Lease, idempotency::Remembered, pairing::WrongCodes, session::TakenEvent},
};

/// What is looked at in one go.
const BATCH: u32 = 200;

/// What could not be done is tried again after this.
const AGAIN: Duration = Duration::from_mins(1);

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Records that were looked at.
    pub looked_at: u64,
    /// Bodies whose commit never came.
    pub orphans: u64,
}

impl Gateway {
    /// Does all that is due, and removes orphans.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept { looked_at: self.sweep_due().await?, orphans: 0 };
        let before = self.store.now().await?.minus(self.retention.orphan);
        swept.orphans = self.store.sweep_orphans(before, BATCH).await?;
        Ok(swept)
    }

    /// Does all that is due now.
    async fn sweep_due(&self) -> Result<u64, Error> {
        let mut looked_at = 0;
        loop {
            let (due, now) = self.store.due(BATCH).await?;
            for due in &due {
                // One that can't be done must not keep the others from being done.
                if let Err(error) = self.look_at(due, now).await {
                    tracing::warn!(%error, kind = ?due.key.kind, "what is due was not done; it will be tried again");
                    let mut later = Change::new(due.tenant.clone());
                    later.no_longer_due.push((due.at, due.key.clone()));
                    later.due.push((now.plus(AGAIN), due.key.clone()));
                    self.commit(later, None).await?;
                }
            }
            looked_at += due.len() as u64;
            if due.len() < BATCH as usize {
                return Ok(looked_at);
            }
        }
    }

    pub(crate) async fn look_at(&self, due: &Due, now: Timestamp) -> Result<(), Error> {
        loop {
            let loaded = self.store.load(&due.tenant, std::slice::from_ref(&due.key)).await?;
            let record = loaded.records.into_iter().next().flatten();
            let mut change = match (&record, due.key.kind) {
                (None, _) => Change::new(due.tenant.clone()),
                (Some(record), Kind::Exchange) => self.exchange_due(due, record, now)?,
                (Some(record), _) => purge(due, record, now)?,
            };
            change.no_longer_due.push((due.at, due.key.clone()));
            let moved = match due.key.kind {
                Kind::Exchange => request_id(&due.key)
                    .ok()
                    .map(|request_id| Named { tenant: &due.tenant, request_id: &request_id }.ring()),
                _ => None,
            };
            if let crate::gateway::Attempt::Done = self.commit(change, moved).await? {
                return Ok(());
            }
        }
    }

    /// Expires, forgets the bodies, forgets the rest: whichever it is time for.
    fn exchange_due(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let nothing = || Ok(Change::new(due.tenant.clone()));
        let Some(known) = Exchange::read(Some(record))? else { return nothing() };
        let request_id = request_id(&due.key)?;
        let named = Named { tenant: &due.tenant, request_id: &request_id };
        if known.value.has_lapsed(now) {
            return Ok(edges::expire(&named, &known, &self.retention)?);
        }
        // It was looked at before, or has moved since: another entry says when to look again.
        if now < next_look(&known.value, &self.retention) {
            return nothing();
        }
        if known.value.is_tombstone() {
            let mut change = Change::new(due.tenant.clone());
            change.guards.push(unchanged(due.key.clone(), Some(&known)));
            change.deletes.push(due.key.clone());
            return Ok(change);
        }
        Ok(self.bury(&due.tenant, &due.key, &known)?)
    }

    /// Leaves only the tombstone: bodies and messages go.
    fn bury(&self, tenant: &TenantId, key: &Key, known: &Versioned<Exchange>) -> Result<Change, StoreError> {
        let exchange = &known.value;
        let mut change = Change::new(tenant.clone());
        change.guards.push(unchanged(key.clone(), Some(known)));
        change.drop_payloads.extend(exchange.artifact);
        change.drop_payloads.extend(exchange.trace);
        change.drop_payloads.extend(exchange.refresh);
        change.drop_payloads.extend(exchange.state.decided().and_then(|decided| decided.decision));
        let without_body = |decided: &Decided| Decided { decision: None, ..decided.clone() };
        let state = match &exchange.state {
            State::Decided(decided) => State::Decided(without_body(decided)),
            State::Delivered { decided, at } => State::Delivered { decided: without_body(decided), at: *at },
            other => other.clone(),
        };
        let tombstone = Exchange { artifact: None, trace: None, refresh: None, state, ..exchange.clone() };
        change.puts.push(tombstone.put(key.clone())?);
        change.removals.push(Removal::About { subject: key.clone(), msg_types: Vec::new() });
        change.due.push((next_look(&tombstone, &self.retention), key.clone()));
        Ok(change)
    }
}

/// Everything else simply goes when its time is up, with its body and its messages.
fn purge(due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
    let mut change = Change::new(due.tenant.clone());
    // Used again after its time was up: another entry says when to look again.
    let until = match due.key.kind {
        Kind::Idempotency => Remembered::read(Some(record))?.map(|known| known.value.until),
        Kind::Session => Session::read(Some(record))?.and_then(|known| known.value.kept_until),
        Kind::Lease => Lease::read(Some(record))?.map(|known| known.value.until),
        Kind::WrongCodes => WrongCodes::read(Some(record))?.map(|known| known.value.until),
        _ => None,
    };
    if until.is_some_and(|until| now < until) {
        return Ok(change);
    }
    change.guards.push(crate::store::Guard::Version(due.key.clone(), record.version));
    change.deletes.push(due.key.clone());
    change.removals.push(Removal::About { subject: due.key.clone(), msg_types: Vec::new() });
    let bodies: Vec<PayloadId> = match due.key.kind {
        Kind::Prompt => Prompt::read(Some(record))?
            .map(|prompt| prompt.value.body.into_iter().chain(prompt.value.ack).collect())
            .unwrap_or_default(),
        Kind::SessionEvent => {
            TakenEvent::read(Some(record))?.map(|taken| taken.value.event).into_iter().collect()
        }
        _ => Vec::new(),
    };
    change.drop_payloads.extend(bodies);
    Ok(change)
}

fn request_id(key: &Key) -> Result<RequestId, Error> {
    key.id.parse().map_err(|_| Error::Refused(Failure::Internal))
}
