//! The store: opens the database, starts the writers, and implements the port.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, atomic::Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Cargo, CargoPosition, Change, Delivery, DeliveryPage, DeliveryQuery, Due, Epoch, Guard, InInboxes, Key,
    Kind, Loaded, Mailbox, MailboxKey, Membership, NotedPage, Outcome, PayloadId, Record, Relocation,
    Residence, ResidencePage, Shard, Store, StoreError, Unloading,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    audit::{self, AuditLog},
    cargo, claims,
    clock::Clock,
    connect::{Connector, Timeline, check_durability},
    connections::Connections,
    error::OpenError,
    large_payloads::LargePayloadWriter,
    migrations, noted,
    options::Options,
    queue::Queue,
    reads::{self, Reads},
    residences::{self, Sessions},
    tenants, writer,
};

/// A handle on the store. When it is dropped, its writers commit what is queued and end.
#[derive(Debug)]
pub struct PostgresStore {
    queues: Vec<Arc<Queue>>,
    large_payloads: LargePayloadWriter,
    reads: Reads,
    audit: AuditLog,
    sessions: Sessions,
    clock: Clock,
    timeline: Timeline,
}

impl PostgresStore {
    /// Connects and checks that the server is safe. Changes nothing.
    pub async fn probe(options: &Options) -> Result<(), OpenError> {
        let (client, _) = Connector::new(options)?.connect().await?;
        check_durability(&client).await
    }

    /// Reads one record and changes nothing. `None` also if the schema does not exist yet.
    pub async fn peek(options: &Options, tenant: &TenantId, key: &Key) -> Result<Option<Record>, OpenError> {
        let (client, _) = Connector::new(options)?.connect().await?;
        reads::peek(&client, tenant, key).await
    }

    /// Reads what the database is a shard of, and changes nothing. `None` also if the schema does not exist yet.
    pub async fn peek_membership(options: &Options) -> Result<Option<Membership>, OpenError> {
        let (client, _) = Connector::new(options)?.connect().await?;
        residences::peek(&client).await
    }

    /// Connects, checks that the server is safe, migrates the schema, and starts the writers.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let connector = Connector::new(&options)?;
        let (mut client, _) = connector.connect().await?;
        check_durability(&client).await?;
        migrations::migrate(&mut client).await?;
        audit::prepare(&mut client).await;
        drop(client);

        let writers = options.writers.max(1);
        let connections =
            Arc::new(Connections::new(&connector, options.connections.saturating_sub(writers))?);
        let queues: Vec<Arc<Queue>> = (0..writers)
            .map(|_| Arc::new(Queue::new(options.queued_changes, options.batching, options.metrics.clone())))
            .collect();
        for queue in &queues {
            tokio::spawn(writer::run(connector.clone(), Arc::clone(queue)));
        }
        Ok(Self {
            queues,
            large_payloads: LargePayloadWriter::new(Arc::clone(&connections)),
            audit: AuditLog::new(Arc::clone(&connections)),
            reads: Reads::new(connections),
            clock: Clock::new(options.max_clock_age),
            timeline: connector.timeline(),
            sessions: Sessions::new(connector),
        })
    }

    /// One exchange always meets the same writer, so that transactions of this handle do not compete for it.
    fn queue_for(&self, change: &Change) -> &Queue {
        let mut hasher = DefaultHasher::new();
        (&change.tenant, main_record(change)).hash(&mut hasher);
        let queues = self.queues.len() as u64;
        &self.queues[usize::try_from(hasher.finish() % queues).unwrap_or_default()]
    }
}

/// The record that decides which writer gets a change: the one with the lowest kind that it guards or writes; what it has
/// only seen does not count, because one policy would send all changes of a tenant to one writer. Kinds are
/// numbered so that what a change is about comes first (an exchange, a prompt, a session, a pairing), and what is only
/// written beside it (an idempotency key) comes later: two submissions of one exchange with different idempotency keys
/// meet the same writer. A change without records has what its deliveries and marks are about; `None` if it has
/// none.
fn main_record(change: &Change) -> Option<&Key> {
    let guarded = change.guards.iter().filter(|guard| !matches!(guard, Guard::Seen(..)));
    let guarded = guarded.filter_map(Guard::key);
    let written = change.puts.iter().map(|put| &put.key).chain(&change.deletes);
    let named = change.deliveries.iter().map(|delivery| &delivery.subject);
    let named = named.chain(change.marks.iter().map(|mark| &mark.subject));
    guarded.chain(written).min().or_else(|| named.chain(&change.no_longer_due).min())
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let loaded = self.reads.load(tenant, keys).await?;
        self.clock.reported(loaded.now);
        Ok(loaded)
    }

    /// As of a tenant that was never moved, which is all that a store of one database has.
    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        self.commit_in(Epoch(0), change).await
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.reads.payloads(tenant, ids).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        self.reads.deliveries(tenant, query).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        self.reads.deliveries_by_subject(tenant, subject).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        Ok(self.reads.heads(mailboxes).await?.into_iter().map(Some).collect())
    }

    async fn noted(&self, _shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        noted::read(&self.reads, since).await
    }

    async fn forget_noted(&self, _shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        noted::forget(&self.reads, before, limit).await
    }

    async fn tenants(
        &self,
        _shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        tenants::list(&self.reads, after, limit).await
    }

    async fn in_inboxes(&self, _shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        tenants::in_inboxes(&self.reads, limit).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        tenants::stored_bytes(&self.reads, tenant).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        tenants::erase(&self.reads, tenant, limit).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.reads.scan(tenant, kind, after, limit).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        claims::claim_due(&self.reads, limit).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.large_payloads.sweep(before, limit).await
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.audit.sweep(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.reads.now().await?;
        self.clock.reported(now);
        Ok(now)
    }

    fn estimated_now(&self, _tenant: &TenantId) -> Option<Timestamp> {
        self.clock.estimate()
    }

    fn timeline(&self) -> u64 {
        self.timeline.load(Ordering::Acquire)
    }

    fn shard_count(&self) -> u16 {
        1
    }

    fn shard_of(&self, _tenant: &TenantId) -> Shard {
        Shard(0)
    }
}

#[async_trait]
impl Relocation for PostgresStore {
    async fn membership(&self) -> Result<Option<Membership>, StoreError> {
        residences::membership(&self.reads).await
    }

    async fn join(&self, membership: &Membership) -> Result<Membership, StoreError> {
        residences::join(&self.sessions, membership).await?;
        let joined = residences::membership(&self.reads).await?;
        joined.ok_or_else(|| StoreError::unavailable("what was just written is not there"))
    }

    async fn commit_in(&self, epoch: Epoch, mut change: Change) -> Result<Outcome, StoreError> {
        let pending_payloads = self.large_payloads.write_pending(&mut change).await?;
        let outcome = self.queue_for(&change).submit(change, epoch, pending_payloads.clone()).await;
        if let Ok(Outcome::Committed { now, .. } | Outcome::Conflict { now, .. }) = &outcome {
            self.clock.reported(*now);
        }
        match outcome {
            // Payloads that may have been committed must stay.
            Ok(Outcome::Committed { .. }) | Err(StoreError::OutcomeUnknown) => {}
            _ => self.large_payloads.discard(&pending_payloads).await,
        }
        outcome
    }

    async fn residences(&self, since: u64) -> Result<ResidencePage, StoreError> {
        residences::list(&self.reads, since).await
    }

    async fn residence(&self, tenant: &TenantId) -> Result<Option<Residence>, StoreError> {
        residences::one(&self.reads, tenant).await
    }

    async fn change_residence(
        &self,
        tenant: &TenantId,
        from: Option<Residence>,
        to: Residence,
    ) -> Result<Option<Residence>, StoreError> {
        residences::change(&self.sessions, tenant, from, to).await
    }

    async fn unload(&self, tenant: &TenantId, from: CargoPosition) -> Result<Box<dyn Unloading>, StoreError> {
        cargo::unload(self.sessions.connector(), tenant, &from).await
    }

    async fn arrived(&self, tenant: &TenantId, epoch: Epoch) -> Result<CargoPosition, StoreError> {
        cargo::arrived(&self.sessions, tenant, epoch).await
    }

    async fn load_cargo(
        &self,
        tenant: &TenantId,
        epoch: Epoch,
        after: &CargoPosition,
        cargo: &Cargo,
    ) -> Result<(), StoreError> {
        cargo::load(&self.sessions, tenant, epoch, after, cargo).await
    }

    async fn version_floor(&self) -> Result<u64, StoreError> {
        cargo::version_floor(&self.reads).await
    }

    async fn raise_version_floor(&self, floor: u64) -> Result<(), StoreError> {
        cargo::raise_version_floor(&self.sessions, floor).await
    }

    async fn clear(&self, tenant: &TenantId, residence: Residence, limit: u32) -> Result<u64, StoreError> {
        cargo::clear(&self.sessions, tenant, residence, limit).await
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::store::Put;

    use super::*;

    #[test]
    fn changes_of_one_exchange_have_the_same_main_record_whatever_else_they_guard() {
        let exchange = Key::new(Kind::Exchange, "r");
        let put = |key: &Key| Put { key: key.clone(), content: Bytes::new() };
        let change = |guards: Vec<Guard>, puts: Vec<Put>| Change {
            guards,
            puts,
            ..Change::new("acme".parse().unwrap())
        };
        let submit = |idempotency: &str| {
            let idempotency = Key::new(Kind::Idempotency, idempotency);
            let guards = vec![Guard::Absent(idempotency.clone()), Guard::Absent(exchange.clone())];
            change(guards, vec![put(&idempotency), put(&exchange)])
        };
        // An exchange has the lowest kind, but the id comes first.
        let seen = Guard::Seen(Key::new(Kind::Exchange, "a"), 1);
        let confirm = change(vec![seen, Guard::Version(exchange.clone(), 1)], Vec::new());
        let unguarded = change(Vec::new(), vec![put(&exchange)]);
        let purge = Change { deletes: vec![exchange.clone()], ..change(Vec::new(), Vec::new()) };
        for change in [submit("a"), submit("b"), confirm, unguarded, purge] {
            assert_eq!(main_record(&change), Some(&exchange), "{change:?}");
        }
    }
}
