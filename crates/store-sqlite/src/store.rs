//! The store: opens the file, starts the writer, and implements the port.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, InInboxes, Key, Kind, Loaded, Mailbox, MailboxKey,
    NotedPage, Outcome, PayloadId, Record, Shard, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    clock::Clock, connect, error::OpenError, migrations, noted, options::Options, pool::Pool, reads, tenants,
    writer::Writer,
};

/// A store in one file. Several stores, of several processes too, may have the same file open.
///
/// When it is dropped, its writer commits what is queued, in the background; [`SqliteStore::close`] waits for it.
#[derive(Debug)]
pub struct SqliteStore {
    clock: Clock,
    writer: Writer,
    readers: Pool,
}

impl SqliteStore {
    /// Opens the file at `path`, creates it if it does not exist, and migrates the schema.
    ///
    /// Blocks, for at most a few times [`Options::busy_timeout`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let mut conn = connect::for_writing(path, options.busy_timeout)?;
        migrations::migrate(&mut conn)?;
        let writer = Writer::start(conn, &options)?;
        let readers = Pool::new(path.to_owned(), options.busy_timeout, options.readers);
        Ok(Self { clock: options.clock, writer, readers })
    }

    /// Reads one record and changes nothing. `None` also if the file or its schema does not exist yet.
    ///
    /// Blocks, for at most [`Options::busy_timeout`].
    pub fn peek(
        path: impl AsRef<Path>,
        options: &Options,
        tenant: &TenantId,
        key: &Key,
    ) -> Result<Option<Record>, OpenError> {
        let path = path.as_ref();
        if !path.exists() {
            return Ok(None);
        }
        let conn = connect::for_reading(path, options.busy_timeout)?;
        match conn.table_exists(None, "record")? {
            true => Ok(reads::record(&conn, tenant, key)?),
            false => Ok(None),
        }
    }

    /// Commits everything that is queued, then ends the writer.
    pub async fn close(self) {
        self.writer.close().await;
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let is_authentication = keys.iter().all(|key| key.kind.authenticates());
        let (of, keys, clock) = (tenant.clone(), keys.to_vec(), self.clock.clone());
        let load = move |conn: &_| {
            let records = keys.iter().map(|key| reads::record(conn, &of, key)).collect::<Result<_, _>>()?;
            Ok(Loaded { records, now: clock.now() })
        };
        match is_authentication {
            true => self.readers.read_reserved(tenant, load).await,
            false => self.readers.read(tenant, load).await,
        }
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        self.writer.commit(change).await
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let (of, ids) = (tenant.clone(), ids.to_vec());
        let load = move |conn: &_| ids.iter().map(|id| reads::payload(conn, &of, *id)).collect();
        self.readers.read(tenant, load).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let (of, clock) = (tenant.clone(), self.clock.clone());
        let list = move |conn: &_| reads::deliveries(conn, &of, &query, clock.now());
        self.readers.read(tenant, list).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let (of, subject) = (tenant.clone(), subject.to_owned());
        self.readers.read(tenant, move |conn| reads::deliveries_by_subject(conn, &of, &subject)).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        let mailboxes = mailboxes.to_vec();
        let read =
            move |conn: &_| mailboxes.iter().map(|mailbox| reads::head(conn, mailbox).map(Some)).collect();
        self.readers.read_for_all(read).await
    }

    async fn noted(&self, _shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let clock = self.clock.clone();
        self.readers.read_for_all(move |conn| noted::read(conn, since, clock.now())).await
    }

    async fn forget_noted(&self, _shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.writer.forget_noted(before, limit).await
    }

    async fn tenants(
        &self,
        _shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let after = after.map(ToString::to_string);
        self.readers.read_for_all(move |conn| tenants::list(conn, after.as_deref(), limit)).await
    }

    async fn in_inboxes(&self, _shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.readers.read_for_all(move |conn| tenants::in_inboxes(conn, limit)).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let of = tenant.clone();
        self.readers.read(tenant, move |conn| tenants::stored_bytes(conn, &of)).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        self.writer.erase(tenant.clone(), limit).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let (of, after) = (tenant.clone(), after.map(str::to_owned));
        self.readers.read(tenant, move |conn| reads::scan(conn, &of, kind, after.as_deref(), limit)).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.writer.claim_due(limit).await
    }

    /// There are none: a payload is written in the transaction of its record.
    async fn sweep_orphans(&self, _before: Timestamp, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.writer.sweep_audit(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    /// Its clock is this machine's, so nothing is estimated.
    fn estimated_now(&self, _tenant: &TenantId) -> Option<Timestamp> {
        Some(self.clock.now())
    }

    /// A file has one history. One that is restored from a copy is opened again, and nobody remembers anything of it.
    fn timeline(&self) -> u64 {
        0
    }

    fn shard_count(&self) -> u16 {
        1
    }

    fn shard_of(&self, _tenant: &TenantId) -> Shard {
        Shard(0)
    }
}
