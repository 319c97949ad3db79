//! The reads, on pooled connections that never wait for a writer.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use countersign_core::store::{
    Delivery, DeliveryPage, DeliveryQuery, Key, Kind, Loaded, MAX_SCANNED, Mailbox, MailboxKey, MarkKind,
    PayloadId, Record, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use tokio_postgres::{Client, Row, types::ToSql};

use crate::{
    connections::{Connection, Connections},
    error::OpenError,
    rows::{
        count, delivery, delivery_and_mailbox, get, payload_id, payload_id_column, record, timestamp, to_i64,
    },
};

const NOW: &str = "SELECT gateway_now() AS now";
/// Each record is looked up by its whole key. With a plain join, a plan that was cached while the table was empty used
/// the tenant alone and read all of its records for each key. The clock comes with the rows, in a row of its own if
/// there are none: a separate statement would double the cost.
pub(crate) const LOAD: &str = "SELECT c.now, r.kind, r.id, r.version, r.content \
    FROM (SELECT gateway_now() AS now) c LEFT JOIN ( \
        unnest($2::smallint[], $3::text[]) AS k (kind, id) CROSS JOIN LATERAL \
        (SELECT * FROM record r WHERE r.tenant = $1 AND r.kind = k.kind AND r.id = k.id LIMIT 1) r) ON true";
const PEEK: &str =
    "SELECT kind, id, version, content FROM record WHERE tenant = $1 AND kind = $2 AND id = $3";
/// A pending payload is invisible until the commit that confirms it.
pub(crate) const PAYLOADS: &str = "SELECT id, content FROM payload p WHERE tenant = $1 AND id = ANY($2) \
    AND NOT EXISTS (SELECT FROM payload_pending w WHERE w.id = p.id)";
/// The clock is read once and not for every row; as in [`LOAD`], it has a row of its own if there are none. The mark of
/// each row is looked up by its key: with a plain `NOT EXISTS` PostgreSQL hashes the marks of all readers. The head is of the
/// same snapshot, and so is the last row that is looked at.
pub(crate) const DELIVERIES: &str = "SELECT c.now, c.head, c.last_scanned, d.* FROM (SELECT gateway_now() AS now, \
        COALESCE((SELECT counter FROM mailbox WHERE tenant = $1 AND name = $2), 0) AS head, \
        (SELECT number FROM delivery WHERE tenant = $1 AND mailbox = $2 AND number > $3 AND number <= $8 \
            ORDER BY number OFFSET $9::bigint - 1 LIMIT 1) AS last_scanned) c LEFT JOIN LATERAL ( \
    SELECT d.* FROM (SELECT * FROM delivery WHERE tenant = $1 AND mailbox = $2 AND number > $3 AND number <= $8 \
        ORDER BY number LIMIT $9) d \
    LEFT JOIN LATERAL (SELECT CASE WHEN $6 THEN m.hidden ELSE m.acknowledged END AS marked FROM mark m \
        WHERE m.tenant = d.tenant AND m.mailbox = d.mailbox AND m.number = d.number AND m.reader = $5::text \
        LIMIT 1) m ON true \
    WHERE (NOT $4 OR d.until > c.now) AND NOT COALESCE(m.marked, false) \
    ORDER BY d.number LIMIT $7) d ON true ORDER BY d.number";
pub(crate) const DELIVERIES_BY_SUBJECT: &str =
    "SELECT * FROM delivery WHERE tenant = $1 AND subject_id = $2 ORDER BY mailbox, number";
pub(crate) const HEADS: &str = "SELECT COALESCE(m.counter, 0) AS counter \
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (tenant, name, position) \
    LEFT JOIN mailbox m ON m.tenant = k.tenant AND m.name = k.name ORDER BY k.position";
pub(crate) const SCAN: &str = "SELECT kind, id, version, content FROM record \
    WHERE tenant = $1 AND kind = $2 AND id > $3 ORDER BY id LIMIT $4";

/// One record, on a connection of its own. `None` also if there is no table yet.
pub(crate) async fn peek(client: &Client, tenant: &TenantId, key: &Key) -> Result<Option<Record>, OpenError> {
    let exists = client.query_one("SELECT to_regclass('record') IS NOT NULL AS exists", &[]).await?;
    if !exists.try_get::<_, bool>("exists")? {
        return Ok(None);
    }
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.as_str(), &key.kind.number(), &key.id];
    let row = client.query_opt(PEEK, &params).await?;
    Ok(row.as_ref().map(record).transpose()?)
}

async fn query(
    connection: &Connection,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    let statement = connection.prepare_cached(sql).await.map_err(StoreError::unavailable)?;
    connection.query(&statement, params).await.map_err(StoreError::unavailable)
}

/// The first row of a statement that returns the clock with each row, and in a row of its own if there are none.
pub(crate) fn clock_row(rows: &[Row]) -> Result<&Row, StoreError> {
    rows.first().ok_or_else(|| StoreError::corrupt("the clock returned no row"))
}

/// The clock's own row has NULL in the bigint column `not_null`.
pub(crate) fn drop_clock_row(rows: &mut Vec<Row>, not_null: &str) {
    let is_null = |row: &Row| get::<Option<i64>>(row, not_null).is_ok_and(|value| value.is_none());
    if rows.first().is_some_and(is_null) {
        rows.clear();
    }
}

/// The rows without that of the clock, and the time.
fn split_off_now(mut rows: Vec<Row>, not_null: &str) -> Result<(Vec<Row>, Timestamp), StoreError> {
    let now = timestamp(clock_row(&rows)?, "now")?;
    drop_clock_row(&mut rows, not_null);
    Ok((rows, now))
}

#[derive(Debug)]
pub(crate) struct Reads {
    connections: Arc<Connections>,
}

impl Reads {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    pub(crate) async fn query(
        &self,
        of: &TenantId,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        query(&self.connections.get(of).await?, sql, params).await
    }

    pub(crate) async fn query_for_all(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        query(&self.connections.get_for_all().await?, sql, params).await
    }

    /// Runs a statement that returns nothing; says how many rows it has changed.
    pub(crate) async fn execute_for_all(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, StoreError> {
        let connection = self.connections.get_for_all().await?;
        let statement = connection.prepare_cached(sql).await.map_err(StoreError::unavailable)?;
        connection.execute(&statement, params).await.map_err(StoreError::unavailable)
    }

    /// Runs a statement that returns the clock with each row, and in a row of its own if there are none; that row has
    /// NULL in the bigint column `not_null`.
    pub(crate) async fn query_and_now(
        &self,
        sql: &str,
        not_null: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(Vec<Row>, Timestamp), StoreError> {
        split_off_now(self.query_for_all(sql, params).await?, not_null)
    }

    pub(crate) async fn now(&self) -> Result<Timestamp, StoreError> {
        timestamp(clock_row(&self.query_for_all(NOW, &[]).await?)?, "now")
    }

    pub(crate) async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let kinds: Vec<i16> = keys.iter().map(|key| key.kind.number()).collect();
        let ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
        let connection = match keys.iter().all(|key| key.kind.authenticates()) {
            true => self.connections.get_reserved().await?,
            false => self.connections.get(tenant).await?,
        };
        let rows = query(&connection, LOAD, &[&tenant.as_str(), &kinds, &ids]).await?;
        drop(connection);
        let (rows, now) = split_off_now(rows, "version")?;
        let found: Vec<Record> = rows.iter().map(record).collect::<Result<_, _>>()?;
        let by_key: HashMap<&Key, &Record> = found.iter().map(|record| (&record.key, record)).collect();
        Ok(Loaded { records: keys.iter().map(|key| by_key.get(key).copied().cloned()).collect(), now })
    }

    pub(crate) async fn payloads(
        &self,
        tenant: &TenantId,
        ids: &[PayloadId],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let rows = self.query(tenant, PAYLOADS, &[&tenant.as_str(), &payload_id_column(ids)]).await?;
        let mut found = HashMap::new();
        for row in &rows {
            let content: Vec<u8> = get(row, "content")?;
            found.insert(payload_id(get(row, "id")?)?, Bytes::from(content));
        }
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    pub(crate) async fn deliveries(
        &self,
        tenant: &TenantId,
        query: DeliveryQuery,
    ) -> Result<DeliveryPage, StoreError> {
        let (reader, hidden) = match &query.unless_marked {
            Some((reader, kind)) => (Some(reader.to_string()), *kind == MarkKind::Hidden),
            None => (None, false),
        };
        let (mailbox, after, limit) =
            (query.mailbox.to_string(), to_i64(query.after), i64::from(query.limit));
        let (up_to, max_scanned) = (query.up_to.map_or(i64::MAX, to_i64), i64::from(MAX_SCANNED));
        let params: [&(dyn ToSql + Sync); 9] = [
            &tenant.as_str(),
            &mailbox,
            &after,
            &query.only_relevant,
            &reader,
            &hidden,
            &limit,
            &up_to,
            &max_scanned,
        ];
        let mut rows = self.query(tenant, DELIVERIES, &params).await?;
        let first = clock_row(&rows)?;
        let (now, head) = (timestamp(first, "now")?, count(first, "head")?);
        let last_scanned = get::<Option<i64>>(first, "last_scanned")?.map(i64::cast_unsigned);
        drop_clock_row(&mut rows, "number");
        let deliveries = rows.iter().map(delivery).collect::<Result<_, _>>()?;
        Ok(DeliveryPage::new(&query, deliveries, last_scanned, head, now))
    }

    pub(crate) async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let rows = self.query(tenant, DELIVERIES_BY_SUBJECT, &[&tenant.as_str(), &subject]).await?;
        rows.iter().map(delivery_and_mailbox).collect()
    }

    pub(crate) async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<u64>, StoreError> {
        let tenants: Vec<&str> = mailboxes.iter().map(|mailbox| mailbox.tenant.as_str()).collect();
        let names: Vec<String> = mailboxes.iter().map(|mailbox| mailbox.mailbox.to_string()).collect();
        let rows = self.query_for_all(HEADS, &[&tenants, &names]).await?;
        rows.iter().map(|row| count(row, "counter")).collect()
    }

    pub(crate) async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        // No id is empty, so all ids sort after the empty string.
        let (after, limit) = (after.unwrap_or(""), i64::from(limit));
        let rows = self.query(tenant, SCAN, &[&tenant.as_str(), &kind.number(), &after, &limit]).await?;
        rows.iter().map(record).collect()
    }
}
