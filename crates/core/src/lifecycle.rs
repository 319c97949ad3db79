//! What becomes of a record when its due time comes: expire, bury, purge. Used by the sweeper and by use cases.

mod pending;
mod weekly_tests;

use std::{collections::BTreeMap, time::Duration};

use countersign_wire::{
    failure::Failure,
    id::{ApproverId, EnforcerId, RequestId, TenantId},
    timestamp::Timestamp,
};

use tokio::{task::JoinSet, time::Instant};

use crate::{
    audit::{self, Actor},
    couple::Couple,
    error::Error,
    gateway::{Commit, Evaluation, Gateway},
    load::RawRecord,
    model::{
        channels::Lease,
        credential::Credential,
        exchange::{Decided, Exchange, State},
        idempotency::IdempotencyRecord,
        pairing::FailedCodeAttempts,
        pairs::PairId,
        presence::{PRESENCE_TOUCH_INTERVAL, Presence},
        prompt::Prompt,
        session::{RecordedEvent, Session},
    },
    notices::CLAIMS_AT_ONCE,
    notify::Ring,
    store::{
        Change, Due, Guard, Key, Kind, Loaded, PayloadId, Record, Removal, StoreError, Stored as _, Versioned,
    },
    transitions::{self, ExchangeRef, next_due_at},
};

/// Changes of due records that are committed at once: enough for the store to commit them in full batches, and far fewer
/// than a tenant may queue there.
const COMMITS_AT_ONCE: usize = 256;

/// How long what is to be sent waits until what sends has room; with it a claim is still long enough.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// Reads of due records at once. Few: others read too.
const LOADS_AT_ONCE: usize = 2;

/// Due records of one tenant that were not processed. They are due again when their claim lapses.
#[derive(Debug)]
pub(crate) struct NotProcessed {
    pub(crate) tenant: TenantId,
    pub(crate) records: Vec<Key>,
    pub(crate) error: Error,
}

/// What is due, with its record.
struct LoadedDue {
    due: Due,
    /// `None` if there is no such record.
    record: Option<Record>,
    /// The time of the read, by the clock of the tenant's shard.
    now: Timestamp,
}

/// What became of a due record at first.
enum Processed {
    Now(Result<(), NotProcessed>),
    /// It comes after all others.
    Notifies(LoadedDue),
}

impl LoadedDue {
    /// Whether somebody is to be notified again of a request, and nothing else is due of it.
    fn notifies(&self) -> bool {
        let exchange = self.record.as_ref().filter(|_| self.due.key.kind == Kind::Exchange);
        let known = exchange.and_then(|record| Exchange::read(Some(record)).ok().flatten());
        known.is_some_and(|Versioned { value, .. }| {
            value.state_at(self.now) == State::Pending
                && value.next_turn_at().is_none_or(|at| self.now < at)
                && value.notifying.is_some_and(|notifying| notifying.is_due(self.now))
        })
    }
}

impl NotProcessed {
    fn one(due: Due, error: Error) -> Self {
        Self { tenant: due.tenant, records: vec![due.key], error }
    }
}

impl Gateway {
    /// Does what is due for all of these: one read for each tenant, then many commits at once, so that the store commits
    /// them together. Notifications come last, a few at once: a service that fails makes many of them. What fails, or the
    /// whole read of a tenant, does not stop the others.
    pub(crate) async fn process_all_due(&self, all: Vec<Due>) -> Vec<NotProcessed> {
        let mut by_tenant: BTreeMap<TenantId, Vec<Due>> = BTreeMap::new();
        for due in all {
            by_tenant.entry(due.tenant.clone()).or_default().push(due);
        }
        let load = |(tenant, due)| {
            let gateway = self.clone();
            async move { gateway.load_due(tenant, due).await }
        };
        let (mut loaded, mut failed) = (Vec::new(), Vec::new());
        for result in at_once(LOADS_AT_ONCE, by_tenant, load).await {
            match result {
                Ok(records) => loaded.extend(records),
                Err(error) => failed.push(error),
            }
        }
        let process = |loaded: LoadedDue| {
            let gateway = self.clone();
            async move {
                match loaded.notifies() {
                    true => Processed::Notifies(loaded),
                    false => Processed::Now(gateway.process_one(loaded).await),
                }
            }
        };
        let mut notify = Vec::new();
        for processed in at_once(COMMITS_AT_ONCE, loaded, process).await {
            match processed {
                Processed::Now(result) => failed.extend(result.err()),
                Processed::Notifies(loaded) => notify.push(loaded),
            }
        }
        let until = Instant::now() + ROOM_WAIT;
        let claim = |loaded| {
            let gateway = self.clone();
            async move {
                gateway.notices.wait_for_room(until).await;
                gateway.process_one(loaded).await
            }
        };
        failed.extend(at_once(CLAIMS_AT_ONCE, notify, claim).await.into_iter().filter_map(Result::err));
        failed
    }

    async fn process_one(&self, LoadedDue { due, record, now }: LoadedDue) -> Result<(), NotProcessed> {
        let result = self.process_loaded(&due, record.as_ref(), now).await;
        result.map_err(|error| NotProcessed::one(due, error))
    }

    /// The records behind what is due of one tenant.
    async fn load_due(&self, tenant: TenantId, due: Vec<Due>) -> Result<Vec<LoadedDue>, NotProcessed> {
        let records: Vec<Key> = due.iter().map(|due| due.key.clone()).collect();
        match self.store.load(&tenant, &records).await {
            Ok(Loaded { records, now }) => {
                let loaded = due.into_iter().zip(records);
                Ok(loaded.map(|(due, record)| LoadedDue { due, record, now }).collect())
            }
            Err(error) => Err(NotProcessed { tenant, records, error: error.into() }),
        }
    }

    async fn process_loaded(&self, due: &Due, record: Option<&Record>, now: Timestamp) -> Result<(), Error> {
        if due.key.kind == Kind::Presence {
            // Whether it goes depends on the enforcer's channels too.
            return self.process_due(due).await;
        }
        if due.key.kind == Kind::Pairs {
            // What ends with a pair is in other records too.
            return self.end_pairs(due).await;
        }
        if due.key.kind == Kind::Tenant {
            return self.erase_due(due, record, now).await;
        }
        if due.key.kind == Kind::Notifications {
            return self.weekly_test_due(due, record, now).await;
        }
        if let Some(step) = self.pending_due(due, record, now)? {
            return self.take_pending_step(due, step).await;
        }
        let (change, ring) = self.due_step(due, record, false, now)?;
        match self.commit(change, ring).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => self.process_due(due).await,
        }
    }

    /// Does what is due for one record, if it still is.
    async fn process_due(&self, due: &Due) -> Result<(), Error> {
        let is_online = due.key.kind == Kind::Presence && self.has_live_channel(due).await?;
        self.update(&due.tenant, &RawRecord(due.key.clone()), |record, now| {
            let (change, ring) = self.due_step(due, record.as_ref(), is_online, now)?;
            Ok(Evaluation::Answer { change, ring, answer: Ok(()) })
        })
        .await
    }

    /// What to commit for a due record, and whom to wake. It ends the due time, or replaces it, and holds only while the
    /// record is the one that was read: a due time that another commit has set since must stay.
    fn due_step(
        &self,
        due: &Due,
        record: Option<&Record>,
        is_online: bool,
        now: Timestamp,
    ) -> Result<(Change, Option<Ring>), Error> {
        let mut change = match record {
            Some(record) if is_online => still_online(due, record, now)?,
            Some(record) => self.due_change(due, record, now)?,
            None => gone(due),
        };
        change.no_longer_due.push(due.key.clone());
        let ring =
            (due.key.kind == Kind::Exchange).then(|| Ring::Record(due.tenant.clone(), due.key.clone()));
        Ok((change, ring))
    }

    fn due_change(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let purge = |keep_until: Option<Timestamp>, payloads: Vec<PayloadId>| {
            Ok(purge(due, record, now, keep_until, payloads))
        };
        // A new kind must say here how long it is kept and which payloads go with it, or it does not compile.
        // CONTRIBUTING: add a record kind, step 3
        match due.key.kind {
            Kind::Exchange => self.exchange_due(due, record, now),
            Kind::Idempotency => {
                purge(IdempotencyRecord::read(Some(record))?.map(|known| known.value.until), Vec::new())
            }
            Kind::Credential => {
                let known = Credential::read(Some(record))?;
                purge(known.map(|known| self.retention.of_key(&known.value).unwrap_or(Timestamp::MAX)), Vec::new())
            }
            Kind::Session => {
                purge(Session::read(Some(record))?.and_then(|known| known.value.kept_until), Vec::new())
            }
            Kind::Lease => purge(Lease::read(Some(record))?.map(|known| known.value.until), Vec::new()),
            Kind::FailedCodeAttempts => {
                purge(FailedCodeAttempts::read(Some(record))?.map(|known| known.value.until), Vec::new())
            }
            Kind::Presence => self.presence_due(due, record, now),
            Kind::Prompt => {
                if let Some(expired) = self.expire_prompt(&due.tenant, record, now)? {
                    return Ok(expired);
                }
                let prompt = Prompt::read(Some(record))?.map(|known| known.value);
                purge(None, prompt.into_iter().flat_map(|it| it.body.into_iter().chain(it.ack)).collect())
            }
            Kind::SessionEvent => {
                let event = RecordedEvent::read(Some(record))?.map(|known| known.value.event);
                purge(None, event.into_iter().collect())
            }
            Kind::Notifications => Ok(Self::keep_weekly_test(due, record, now)?),
            Kind::Pairing | Kind::PairingCode | Kind::Ticket | Kind::Invitation => purge(None, Vec::new()),
            // These are never due; a due time of one is only removed.
            Kind::Enforcer
            | Kind::Approver
            | Kind::Route
            | Kind::Policy
            | Kind::Channels
            | Kind::SecretChecks
            | Kind::Own
            // In `end_pairs`.
            | Kind::Pairs
            // In `erase_due`.
            | Kind::Tenant => Ok(Change::new(due.tenant.clone())),
        }
    }

    /// Takes out the pairs of a couple whose time is over, with their keys, and what else has ended.
    async fn end_pairs(&self, due: &Due) -> Result<(), Error> {
        let ids = due.key.id.split_once('\n').and_then(|(enforcer, approver)| {
            Some((enforcer.parse::<EnforcerId>().ok()?, approver.parse::<ApproverId>().ok()?))
        });
        let (enforcer, approver) = ids.ok_or(Failure::Internal)?;
        let couple = Couple { enforcer: &enforcer, approver: &approver };
        self.update(&due.tenant, &couple.records(), |values, now| {
            if values.0.is_none() {
                let mut change = gone(due);
                change.no_longer_due.push(due.key.clone());
                return Ok(Evaluation::commit(change, ()));
            }
            let mut change = Change::new(due.tenant.clone());
            let opened = couple.open(&mut change, &values, now);
            for pair in &opened.ended {
                let id =
                    PairId { enforcer: enforcer.clone(), approver: approver.clone(), device: pair.device };
                let ended = audit::pair_ended(due.key.clone(), &id, pair.signing_key)?;
                change.audit.push(ended);
            }
            if opened.ended.is_empty() {
                change.audit.push(audit::action(due.key.clone(), Actor::Clock, "voucher.ended")?);
            }
            opened.close(&mut change)?;
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    /// Deletes the presence of an enforcer that has been offline for long enough, or puts it off until then. A record is
    /// written too often to make an entry each time, so there is only this one.
    fn presence_due(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let known = Presence::read(Some(record))?;
        let keep_until = known.map(|known| known.value.last_seen_at.plus(self.retention.presence));
        Ok(purge(due, record, now, keep_until, Vec::new()))
    }

    /// Expires it, buries it, or deletes the tombstone: whichever is due.
    fn exchange_due(&self, due: &Due, record: &Record, now: Timestamp) -> Result<Change, Error> {
        let Some(known) = Exchange::read(Some(record))? else { return Ok(Change::new(due.tenant.clone())) };
        let request_id: RequestId = due.key.id.parse().map_err(|_| Error::Rejected(Failure::Internal))?;
        if known.value.is_overdue(now) {
            let exchange = ExchangeRef::new(&due.tenant, &request_id);
            return Ok(transitions::expire(&exchange, &known, &self.retention)?);
        }
        let due_at = next_due_at(&known.value, &self.retention);
        if now < due_at {
            return Ok(keep(due, record, due_at));
        }
        if known.value.state == State::Pending {
            // Somebody is to be asked or notified, and another commit was faster than this node's.
            return Ok(keep(due, record, now.plus(pending::PUT_OFF).min(known.value.expires_at)));
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
            turns: Vec::new(),
            notifying: None,
            state,
            ..exchange.clone()
        };
        change.puts.push(tombstone.put(key.clone())?);
        change.removals.push(Removal::BySubject { subject: key.clone(), msg_types: Vec::new() });
        change.due.push((next_due_at(&tombstone, &self.retention), key.clone()));
        Ok(change)
    }
}

/// The presence of an enforcer with an open channel, on which it may have been silent for as long as records are kept.
fn still_online(due: &Due, record: &Record, now: Timestamp) -> Result<Change, StoreError> {
    let mut change = Change::new(due.tenant.clone());
    if let Some(known) = Presence::read(Some(record))? {
        change.guards.push(Guard::Version(due.key.clone(), record.version));
        change.puts.push(Presence { last_seen_at: now, ..known.value }.put(due.key.clone())?);
        change.due.push((now.plus(PRESENCE_TOUCH_INTERVAL), due.key.clone()));
    }
    Ok(change)
}

/// Runs `run` for each of `all`, up to `limit` at once. One that panics has no result; it is due again.
async fn at_once<T, F>(limit: usize, all: impl IntoIterator<Item = T>, run: impl Fn(T) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut all = all.into_iter();
    let (mut running, mut results) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < limit
            && let Some(next) = all.next()
        {
            running.spawn(run(next));
        }
        match running.join_next().await {
            Some(ended) => results.extend(ended.ok()),
            None => return results,
        }
    }
}

/// Nothing is left to do: there is no such record.
fn gone(due: &Due) -> Change {
    let mut change = Change::new(due.tenant.clone());
    change.guards.push(Guard::Absent(due.key.clone()));
    change
}

/// Leaves a record as it is: it has been used since it was claimed, or is kept longer than when the due time was set.
fn keep(due: &Due, record: &Record, until: Timestamp) -> Change {
    let mut change = Change::new(due.tenant.clone());
    change.guards.push(Guard::Version(due.key.clone(), record.version));
    change.due.push((until, due.key.clone()));
    change
}

/// Deletes a record with its payloads and messages, unless it is to be kept longer.
fn purge(
    due: &Due,
    record: &Record,
    now: Timestamp,
    keep_until: Option<Timestamp>,
    payloads: Vec<PayloadId>,
) -> Change {
    if let Some(until) = keep_until.filter(|until| now < *until) {
        return keep(due, record, until);
    }
    let mut change = Change::new(due.tenant.clone());
    change.guards.push(Guard::Version(due.key.clone(), record.version));
    change.deletes.push(due.key.clone());
    change.removals.push(Removal::BySubject { subject: due.key.clone(), msg_types: Vec::new() });
    change.drop_payloads = payloads;
    change
}
