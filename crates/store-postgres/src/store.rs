//! The store: opens the database, starts the writers, and implements the port.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, Guard, Key, Kind, Loaded, Mailbox, MailboxKey,
    Outcome, PayloadId, Record, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use deadpool_postgres::{Pool, Runtime};

use crate::{
    connect::{Connector, check_durability},
    error::OpenError,
    large_payloads::LargePayloadWriter,
    migrations,
    options::Options,
    queue::Queue,
    reads::Reads,
    writer,
};

/// A handle on the store. When it is dropped, its writers commit what is queued and end.
#[derive(Debug)]
pub struct PostgresStore {
    queues: Vec<Arc<Queue>>,
    large_payloads: LargePayloadWriter,
    reads: Reads,
}

impl PostgresStore {
    /// Connects and checks that the server is safe. Changes nothing.
    pub async fn probe(options: &Options) -> Result<(), OpenError> {
        let (client, _) = Connector::new(options)?.connect().await?;
        check_durability(&client).await
    }

    /// Connects, checks that the server is safe, migrates the schema, and starts the writers.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let connector = Connector::new(&options)?;
        let (mut client, _) = connector.connect().await?;
        check_durability(&client).await?;
        migrations::migrate(&mut client).await?;
        drop(client);

        let pool = Pool::builder(connector.manager())
            .max_size(options.readers)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(Duration::from_secs(10)))
            .create_timeout(Some(Duration::from_secs(5)))
            .build()?;

        let queues: Vec<Arc<Queue>> = (0..options.writers.max(1))
            .map(|_| Arc::new(Queue::new(options.queued_changes, options.batching)))
            .collect();
        for queue in &queues {
            tokio::spawn(writer::run(connector.clone(), Arc::clone(queue)));
        }
        Ok(Self { queues, large_payloads: LargePayloadWriter::new(pool.clone()), reads: Reads::new(pool) })
    }

    /// The same key always goes to the same writer, so that transactions of this handle do not compete for it.
    fn queue_for(&self, change: &Change) -> &Queue {
        let mut hasher = DefaultHasher::new();
        change.tenant.hash(&mut hasher);
        let first_key = change.guards.iter().find_map(Guard::key);
        first_key.or(change.puts.first().map(|put| &put.key)).hash(&mut hasher);
        let queues = self.queues.len() as u64;
        &self.queues[usize::try_from(hasher.finish() % queues).unwrap_or_default()]
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        self.reads.load(tenant, keys).await
    }

    async fn commit(&self, mut change: Change) -> Result<Outcome, StoreError> {
        let pending_payloads = self.large_payloads.write_pending(&mut change).await?;
        let outcome = self.queue_for(&change).submit(change, pending_payloads.clone()).await;
        match outcome {
            // Payloads that may have been committed must stay.
            Ok(Outcome::Committed { .. }) | Err(StoreError::OutcomeUnknown) => {}
            _ => self.large_payloads.discard(&pending_payloads).await,
        }
        outcome
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

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<u64>, StoreError> {
        self.reads.heads(mailboxes).await
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

    async fn due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.reads.due(limit).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.large_payloads.sweep(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.reads.now().await
    }
}
