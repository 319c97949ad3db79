//! Tenants as a whole: which there are, what they take, and their end.

use countersign_core::store::{InInboxes, Kind, StoreError};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    reads::Reads,
    rows::{count, get},
};

/// Goes from one tenant to the next by the key of the records, however many each has.
pub(crate) const LIST: &str = "WITH RECURSIVE next AS ( \
        (SELECT tenant, 1 AS place FROM record WHERE tenant > $1 ORDER BY tenant LIMIT 1) \
        UNION ALL \
        SELECT (SELECT r.tenant FROM record r WHERE r.tenant > next.tenant ORDER BY r.tenant LIMIT 1), place + 1 \
        FROM next WHERE next.tenant IS NOT NULL AND place < $2) \
    SELECT tenant FROM next WHERE tenant IS NOT NULL ORDER BY tenant";

pub(crate) const STORED_BYTES: &str =
    "SELECT COALESCE(sum(bytes), 0)::bigint AS bytes FROM stored WHERE tenant = $1";

/// Reads the names of all mailboxes, and then only what lies in the inboxes among them.
const IN_INBOXES: &str = "SELECT count(*) AS records, min(oldest)::bigint AS oldest FROM ( \
    SELECT min(d.at) AS oldest FROM ( \
        SELECT d.* FROM mailbox m CROSS JOIN LATERAL ( \
            SELECT tenant, subject_kind, subject_id, at FROM delivery \
            WHERE tenant = m.tenant AND mailbox = m.name ORDER BY number LIMIT $1) d \
        WHERE m.name = 's' OR (m.name >= 'a:' AND m.name < 'a;') LIMIT $1) d \
    GROUP BY tenant, subject_kind, subject_id) r";

/// From every table; `noted` forgets by itself, and the record of the tenant is deleted last, by a commit.
pub(crate) const ERASE: &[&str] = &[
    "DELETE FROM record WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM record WHERE tenant = $1 AND kind <> $3 LIMIT $2))",
    "DELETE FROM due WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM due WHERE tenant = $1 AND kind <> $3 LIMIT $2))",
    "WITH pending AS (DELETE FROM payload_pending w USING payload p WHERE w.id = p.id AND p.tenant = $1) \
        DELETE FROM payload WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM payload WHERE tenant = $1 AND $3::smallint > 0 LIMIT $2))",
    "DELETE FROM mark WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM mark WHERE tenant = $1 AND $3::smallint > 0 LIMIT $2))",
    "DELETE FROM delivery WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM delivery WHERE tenant = $1 AND $3::smallint > 0 LIMIT $2))",
    "DELETE FROM mailbox WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM mailbox WHERE tenant = $1 AND $3::smallint > 0 LIMIT $2))",
    "DELETE FROM audit WHERE tenant = $1 AND seq = ANY(ARRAY( \
        SELECT seq FROM audit WHERE tenant = $1 AND $3::smallint > 0 ORDER BY at LIMIT $2))",
    // What is left of a tenant without payloads are sums that make up for each other.
    "DELETE FROM stored WHERE tenant = $1 AND $3::smallint > 0 AND $2::bigint > 0 \
        AND NOT EXISTS (SELECT FROM payload WHERE tenant = $1)",
];

pub(crate) async fn list(
    reads: &Reads,
    after: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<TenantId>, StoreError> {
    let after = after.map_or("", TenantId::as_str);
    let rows = reads.query_for_all(LIST, &[&after, &i32::try_from(limit).unwrap_or(i32::MAX)]).await?;
    let tenant = |tenant: &str| tenant.parse().map_err(StoreError::corrupt);
    rows.iter().map(|row| tenant(get(row, "tenant")?)).collect()
}

pub(crate) async fn in_inboxes(reads: &Reads, limit: u32) -> Result<InInboxes, StoreError> {
    let rows = reads.query_for_all(IN_INBOXES, &[&i64::from(limit)]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("a count returned no row"))?;
    let oldest: Option<i64> = get(row, "oldest")?;
    Ok(InInboxes { records: count(row, "records")?, oldest: oldest.map(Timestamp::from_unix_micros) })
}

pub(crate) async fn stored_bytes(reads: &Reads, tenant: &TenantId) -> Result<u64, StoreError> {
    let rows = reads.query(tenant, STORED_BYTES, &[&tenant.as_str()]).await?;
    let bytes: i64 = rows.first().map_or(Ok(0), |row| get(row, "bytes"))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Deletes up to `limit` rows of the tenant from each table; says how many.
pub(crate) async fn erase(reads: &Reads, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
    let (limit, kind) = (i64::from(limit), Kind::Tenant.number());
    let mut erased = 0;
    for sql in ERASE {
        erased += reads.execute_for_all(sql, &[&tenant.as_str(), &limit, &kind]).await?;
    }
    Ok(erased)
}
