//! What becomes of a record when its due time comes: expire, bury, purge. Used by the sweeper and by use cases.

use countersign_wire::{
    failure::Failure,
    id::{RequestId, TenantId},
    timestamp::Timestamp,
};

use tokio::task::JoinSet;

use crate::{
    error::Error,
    gateway::{Evaluation, Gateway},
    load::RawRecord,
    model::{
        channels::Lease,
        exchange::{Decided, Exchange, State},
        idempotency::IdempotencyRecord,
        pairing::FailedCodeAttempts,
        prompt::Prompt,
        session::{RecordedEvent, Session},
    },
    notify::Ring,
    store::{Change, Due, Guard, Key, Kind, PayloadId, Record, Removal, StoreError, Stored as _, Versioned},
    transitions::{self, ExchangeRef, next_due_at},
};

/// Due entries that are processed at once. Fewer than a tenant may queue at a store.
const CONCURRENCY: usize = 64;

impl Gateway {
    /// Does what is due for all of these, many at once, so that the store commits them together. Returns what failed.
    pub(crate) async fn process_all_due(&self, all: Vec<Due>, now: Timestamp) -> Vec<(Due, Error)> {
        let mut failed = Vec::new();
        let mut running: JoinSet<Option<(Due, Error)>> = JoinSet::new();
        let mut all = all.into_iter();
        loop {
            while running.len() < CONCURRENCY
                && let Some(due) = all.next()
            {
                let gateway = self.clone();
                running.spawn(async move {
                    let result = gateway.process_due(&due, now).await;
                    result.err().map(|error| (due, error))
                });
            }
            match running.join_next().await {
                // A task that panicked is due again.
                Some(ended) => failed.extend(ended.ok().flatten()),
                None => return failed,
            }
        }
    }

    /// Does what is due for one record at `now`, and removes the due entry.
    pub(crate) async fn process_due(&self, due: &Due, now: Timestamp) -> Result<(), Error> {
        self.update(&due.tenant, &RawRecord(due.key.clone()), |record, _| {
            let mut change = match &record {
                Some(record) => self.due_change(due, record, now)?,
                None => Change::new(due.tenant.clone()),
            };
            change.no_longer_due.push((due.at, due.key.clone()));
            let ring =
                (due.key.kind == Kind::Exchange).then(|| Ring::Record(due.tenant.clone(), due.key.clone()));
            Ok(Evaluation::Answer { change, ring, answer: Ok(()) })
        })
        .await
    }

    fn due_change(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let purge = |keep_until: Option<Timestamp>, payloads: Vec<PayloadId>| {
            Ok(purge(due, record, now, keep_until, payloads))
        };
        // A new kind must say here how long it is kept and which payloads go with it, or it does not compile.
        match due.key.kind {
            Kind::Exchange => self.exchange_due(due, record, now),
            Kind::Idempotency => {
                purge(IdempotencyRecord::read(Some(record))?.map(|known| known.value.until), Vec::new())
            }
            Kind::Session => {
                purge(Session::read(Some(record))?.and_then(|known| known.value.kept_until), Vec::new())
            }
            Kind::Lease => purge(Lease::read(Some(record))?.map(|known| known.value.until), Vec::new()),
            Kind::FailedCodeAttempts => {
                purge(FailedCodeAttempts::read(Some(record))?.map(|known| known.value.until), Vec::new())
            }
            Kind::Prompt => {
                let prompt = Prompt::read(Some(record))?.map(|known| known.value);
                purge(None, prompt.into_iter().flat_map(|it| it.body.into_iter().chain(it.ack)).collect())
            }
            Kind::SessionEvent => {
                let event = RecordedEvent::read(Some(record))?.map(|known| known.value.event);
                purge(None, event.into_iter().collect())
            }
            Kind::Pairing | Kind::PairingCode | Kind::Ticket | Kind::Invitation => purge(None, Vec::new()),
            // These are never put on the due list; an entry for one is only removed.
            Kind::Enforcer
            | Kind::Approver
            | Kind::Route
            | Kind::Presence
            | Kind::Credential
            | Kind::Policy
            | Kind::Channels
            | Kind::SecretChecks => Ok(Change::new(due.tenant.clone())),
        }
    }

    /// Expires it, buries it, or deletes the tombstone: whichever is due.
    fn exchange_due(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let nothing = || Ok(Change::new(due.tenant.clone()));
        let Some(known) = Exchange::read(Some(record))? else { return nothing() };
        let request_id: RequestId = due.key.id.parse().map_err(|_| Error::Rejected(Failure::Internal))?;
        if known.value.is_overdue(now) {
            let exchange = ExchangeRef::new(&due.tenant, &request_id);
            return Ok(transitions::expire(&exchange, &known, &self.retention)?);
        }
        // It was processed before, or has changed since: another entry says when it is due again.
        if now < next_due_at(&known.value, &self.retention) {
            return nothing();
        }
        if known.value.is_tombstone() {
            let mut change = Change::new(due.tenant.clone());
            change.guards.push(Guard::unchanged(due.key.clone(), Some(&known)));
            change.deletes.push(due.key.clone());
            return Ok(change);
        }
        Ok(self.bury(&due.tenant, &due.key, &known)?)
    }

    /// Leaves only the tombstone: bodies and messages are deleted.
    fn bury(&self, tenant: &TenantId, key: &Key, known: &Versioned<Exchange>) -> Result<Change, StoreError> {
        let exchange = &known.value;
        let mut change = Change::new(tenant.clone());
        change.guards.push(Guard::unchanged(key.clone(), Some(known)));
        change.drop_payloads.extend(exchange.artifact);
        change.drop_payloads.extend(exchange.trace);
        change.drop_payloads.extend(exchange.refresh);
        change.drop_payloads.extend(exchange.state.decided().and_then(|decided| decided.decision));
        let without_body = |decided: &Decided| Decided { decision: None, ..decided.clone() };
        let state = match &exchange.state {
            State::Decided(decided) => State::Decided(without_body(decided)),
            State::Delivered { decided, at } => State::Delivered { decided: without_body(decided), at: *at },
            State::Pending | State::Expired { .. } | State::Withdrawn { .. } | State::Cancelled { .. } => {
                exchange.state.clone()
            }
        };
        let tombstone = Exchange {
            artifact: None,
            trace: None,
            refresh: None,
            hidden_by: Vec::new(),
            seen: Vec::new(),
            state,
            ..exchange.clone()
        };
        change.puts.push(tombstone.put(key.clone())?);
        change.removals.push(Removal::BySubject { subject: key.clone(), msg_types: Vec::new() });
        change.due.push((next_due_at(&tombstone, &self.retention), key.clone()));
        Ok(change)
    }
}

/// Deletes a record with its payloads and messages, unless it is to be kept longer: it was used again after the due
/// entry was made, and another entry says when it is due.
fn purge(
    due: &Due,
    record: &Record,
    now: Timestamp,
    keep_until: Option<Timestamp>,
    payloads: Vec<PayloadId>,
) -> Change {
    let mut change = Change::new(due.tenant.clone());
    if keep_until.is_some_and(|until| now < until) {
        return change;
    }
    change.guards.push(Guard::Version(due.key.clone(), record.version));
    change.deletes.push(due.key.clone());
    change.removals.push(Removal::BySubject { subject: due.key.clone(), msg_types: Vec::new() });
    change.drop_payloads = payloads;
    change
}
