//! Turns the rows of a batch into columns: each statement takes one array per column.

use bytes::Bytes;
use countersign_core::store::{AuditRow, Mailbox, PayloadId};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use tokio_postgres::{Statement, types::ToSql};

use crate::{
    plan::{INCARNATION_SHIFT, IfMissing, MarkKey, NamedRecords, RecordKey, RemovalBySubject, Writes},
    residences::TenantInEpoch,
    rows::{payload_id_bytes, payload_id_column, to_i64},
    statements::Statements,
};

/// The parameters of one statement.
pub(crate) type Columns = Vec<Box<dyn ToSql + Sync + Send>>;

/// The statements that `writes` needs, in the order in which they must run.
pub(crate) fn batch<'s>(
    statements: &'s Statements,
    writes: &Writes,
    now: Timestamp,
) -> Vec<(&'s Statement, Columns)> {
    let now = now.unix_micros();
    let marks: Vec<_> = writes.marks.iter().collect();
    let due: Vec<_> = writes.due.iter().filter_map(|(key, at)| Some((key, (*at)?))).collect();
    let no_longer_due: Vec<_> =
        writes.due.iter().filter(|(_, at)| at.is_none()).map(|(key, _)| key).collect();
    let mut batch = Batch(Vec::new());
    batch.add(&statements.update_records, &writes.changed_records, record_columns);
    batch.add(&statements.delete_records, &writes.deleted_records, key_columns);
    if writes.used_incarnations > 0 {
        batch.0.push((&statements.use_incarnations, vec![Box::new(to_i64(writes.used_incarnations))]));
    }
    batch.add(&statements.insert_payloads, &writes.payloads, payload_columns);
    batch.add(&statements.confirm_payloads, &writes.confirmed_payloads, |ids| {
        vec![Box::new(payload_id_column(ids))]
    });
    batch.add(&statements.delete_payloads, &writes.deleted_payloads, deleted_payload_columns);
    batch.add(&statements.delete_deliveries, &writes.removals_by_number, removal_by_number_columns);
    batch.add(&statements.delete_marks, &writes.removals_by_number, removal_by_number_columns);
    batch.add(
        &statements.delete_deliveries_by_subject,
        &writes.removals_by_subject,
        removal_by_subject_columns,
    );
    batch.add(&statements.upsert_marks, &marks, mark_columns);
    batch.add(&statements.delete_due, &no_longer_due, key_ref_columns);
    batch.add(&statements.upsert_due, &due, due_columns);
    batch.add(&statements.insert_audit, &writes.audit, |rows| audit_columns(rows, now));
    batch.add(&statements.insert_deliveries, &writes.deliveries, |_| delivery_columns(writes, now));
    batch.0
}

struct Batch<'s>(Vec<(&'s Statement, Columns)>);

impl<'s> Batch<'s> {
    /// Skips a statement without rows.
    fn add<R>(&mut self, statement: &'s Statement, rows: &[R], columns: impl Fn(&[R]) -> Columns) {
        if !rows.is_empty() {
            self.0.push((statement, columns(rows)));
        }
    }
}

fn column<'r, R: 'r, T>(
    rows: impl IntoIterator<Item = R>,
    value: impl Fn(R) -> T,
) -> Box<dyn ToSql + Sync + Send>
where
    Vec<T>: ToSql + Sync + Send + 'static,
{
    Box::new(rows.into_iter().map(value).collect::<Vec<T>>())
}

fn key_columns(keys: &[RecordKey]) -> Columns {
    let keys: Vec<&RecordKey> = keys.iter().collect();
    key_ref_columns(&keys)
}

/// In the order of their positions.
pub(crate) fn tenant_columns(tenants: &[TenantInEpoch]) -> Columns {
    vec![column(tenants, |(tenant, _)| tenant.to_string()), column(tenants, |(_, epoch)| to_i64(epoch.0))]
}

/// The keys in lock order, each with what to insert if there is no such record.
pub(crate) fn reserved_columns(named: &NamedRecords) -> Columns {
    let keys: Vec<&RecordKey> = named.keys().collect();
    let mut columns = key_ref_columns(&keys);
    columns.push(column(named.values(), |if_missing| match if_missing {
        IfMissing::Ignore | IfMissing::Reserve => Vec::new(),
        IfMissing::Draft(content) => content.to_vec(),
    }));
    columns.push(Box::new(INCARNATION_SHIFT.cast_signed()));
    columns
}

/// For statements that need nothing but keys.
pub(crate) fn key_ref_columns(keys: &[&RecordKey]) -> Columns {
    vec![
        column(keys, |(tenant, _)| tenant.to_string()),
        column(keys, |(_, key)| key.kind.number()),
        column(keys, |(_, key)| key.id.clone()),
    ]
}

fn record_columns(rows: &[(RecordKey, u64, Bytes)]) -> Columns {
    let keys: Vec<&RecordKey> = rows.iter().map(|(key, ..)| key).collect();
    let mut columns = key_ref_columns(&keys);
    columns.push(column(rows, |(_, version, _)| to_i64(*version)));
    columns.push(column(rows, |(_, _, content)| content.to_vec()));
    columns
}

fn payload_columns(rows: &[(TenantId, PayloadId, Bytes)]) -> Columns {
    vec![
        column(rows, |(tenant, ..)| tenant.to_string()),
        column(rows, |(_, id, _)| payload_id_bytes(*id).to_vec()),
        column(rows, |(_, _, content)| content.to_vec()),
    ]
}

fn deleted_payload_columns(rows: &[(TenantId, PayloadId)]) -> Columns {
    vec![
        column(rows, |(tenant, _)| tenant.to_string()),
        column(rows, |(_, id)| payload_id_bytes(*id).to_vec()),
    ]
}

fn removal_by_number_columns(rows: &[(TenantId, Mailbox, u64)]) -> Columns {
    vec![
        column(rows, |(tenant, ..)| tenant.to_string()),
        column(rows, |(_, mailbox, _)| mailbox.to_string()),
        column(rows, |(_, _, number)| to_i64(*number)),
    ]
}

fn removal_by_subject_columns(rows: &[RemovalBySubject]) -> Columns {
    vec![
        column(rows, |row| row.tenant.to_string()),
        column(rows, |row| row.subject.kind.number()),
        column(rows, |row| row.subject.id.clone()),
        column(rows, |row| row.msg_type.clone()),
        column(rows, |row| row.msg_id.clone()),
    ]
}

fn mark_columns(rows: &[(&MarkKey, &(bool, bool))]) -> Columns {
    vec![
        column(rows, |((tenant, ..), _)| tenant.to_string()),
        column(rows, |((_, mailbox, ..), _)| mailbox.clone()),
        column(rows, |((_, _, number, _), _)| to_i64(*number)),
        column(rows, |((.., reader), _)| reader.clone()),
        column(rows, |(_, (hidden, _))| *hidden),
        column(rows, |(_, (_, acknowledged))| *acknowledged),
    ]
}

fn due_columns(rows: &[(&RecordKey, Timestamp)]) -> Columns {
    let keys: Vec<&RecordKey> = rows.iter().map(|(key, _)| *key).collect();
    let mut columns = key_ref_columns(&keys);
    columns.push(column(rows, |(_, at)| at.unix_micros()));
    columns
}

fn audit_columns(rows: &[(TenantId, AuditRow)], now: i64) -> Columns {
    vec![
        column(rows, |(tenant, _)| tenant.to_string()),
        column(rows, |(_, row)| row.subject.kind.number()),
        column(rows, |(_, row)| row.subject.id.clone()),
        column(rows, |(_, row)| row.event.to_vec()),
        Box::new(now),
    ]
}

fn delivery_columns(writes: &Writes, now: i64) -> Columns {
    let counters = &writes.counters;
    let deliveries = &writes.deliveries;
    let name = |index: usize| deliveries[index].1.mailbox.to_string();
    // How many deliveries of the batch to the same mailbox follow this one.
    let from_last = |index: usize| {
        let (tenant, _, position) = &deliveries[index];
        to_i64(counters.get(&(tenant.clone(), name(index))).copied().unwrap_or_default() - position)
    };
    vec![
        column(counters, |((tenant, _), _)| tenant.to_string()),
        column(counters, |((_, name), _)| name.clone()),
        column(counters, |(_, count)| to_i64(*count)),
        column(deliveries, |(tenant, ..)| tenant.to_string()),
        column(0..deliveries.len(), name),
        column(0..deliveries.len(), from_last),
        column(deliveries, |(_, delivery, _)| delivery.msg_id.to_string()),
        column(deliveries, |(_, delivery, _)| delivery.msg_type.to_string()),
        column(deliveries, |(_, delivery, _)| delivery.subject.kind.number()),
        column(deliveries, |(_, delivery, _)| delivery.subject.id.clone()),
        column(deliveries, |(_, delivery, _)| delivery.payload.map(|id| payload_id_bytes(id).to_vec())),
        column(deliveries, |(_, delivery, _)| delivery.until.unix_micros()),
        Box::new(now),
    ]
}
