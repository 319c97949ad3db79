//! Rows turned into columns: each statement takes one array per column.

use countersign_core::store::PayloadId;
use countersign_wire::timestamp::Timestamp;
use tokio_postgres::{Statement, types::ToSql};

use crate::{
    plan::{Place, Writes},
    rows::{payload_bytes, to_i64},
    write::Statements,
};

pub(crate) type Columns = Vec<Box<dyn ToSql + Sync + Send>>;

/// Collects one column.
fn column<'r, R: 'r, T>(
    rows: impl IntoIterator<Item = R>,
    value: impl Fn(R) -> T,
) -> Box<dyn ToSql + Sync + Send>
where
    Vec<T>: ToSql + Sync + Send + 'static,
{
    Box::new(rows.into_iter().map(value).collect::<Vec<T>>())
}

pub(crate) fn id_column(ids: &[PayloadId]) -> Vec<Vec<u8>> {
    ids.iter().map(|id| payload_bytes(*id).to_vec()).collect()
}

pub(crate) fn place_columns(places: &[Place]) -> Columns {
    vec![
        column(places, |(tenant, _)| tenant.to_string()),
        column(places, |(_, key)| key.kind.number()),
        column(places, |(_, key)| key.id.clone()),
    ]
}

/// Every statement that `writes` needs, in the order in which they must run.
pub(crate) fn batch<'s>(
    statements: &'s Statements,
    writes: &Writes,
    now: Timestamp,
) -> Vec<(&'s Statement, Columns)> {
    let now = now.unix_micros();
    let mut batch: Vec<(&Statement, Columns)> = Vec::new();
    let mut add = |statement: &'s Statement, rows: usize, columns: &dyn Fn() -> Columns| {
        if rows > 0 {
            batch.push((statement, columns()));
        }
    };
    for (statement, rows) in [
        (&statements.insert_records, &writes.new_records),
        (&statements.update_records, &writes.changed_records),
    ] {
        add(statement, rows.len(), &|| {
            let places: Vec<Place> = rows.iter().map(|(place, ..)| place.clone()).collect();
            let mut columns = place_columns(&places);
            columns.push(column(rows, |(_, version, _)| to_i64(*version)));
            columns.push(column(rows, |(_, _, content)| content.to_vec()));
            columns
        });
    }
    let absent = &writes.absent_records;
    add(&statements.insert_ghosts, absent.len(), &|| place_columns(absent));
    add(&statements.delete_records, absent.len(), &|| place_columns(absent));
    add(&statements.delete_records, writes.gone_records.len(), &|| place_columns(&writes.gone_records));
    let payloads = &writes.payloads;
    add(&statements.insert_payloads, payloads.len(), &|| {
        vec![
            column(payloads, |(tenant, ..)| tenant.to_string()),
            column(payloads, |(_, id, _)| payload_bytes(*id).to_vec()),
            column(payloads, |(_, _, content)| content.to_vec()),
        ]
    });
    add(&statements.settle_payloads, writes.settled_payloads.len(), &|| {
        vec![Box::new(id_column(&writes.settled_payloads))]
    });
    let gone = &writes.gone_payloads;
    add(&statements.delete_payloads, gone.len(), &|| {
        vec![
            column(gone, |(tenant, _)| tenant.to_string()),
            column(gone, |(_, id)| payload_bytes(*id).to_vec()),
        ]
    });
    let removals = &writes.removals;
    add(&statements.delete_deliveries, removals.len(), &|| {
        vec![
            column(removals, |(tenant, ..)| tenant.to_string()),
            column(removals, |(_, mailbox, _)| mailbox.to_string()),
            column(removals, |(_, _, number)| to_i64(*number)),
        ]
    });
    let about = &writes.removals_about;
    add(&statements.delete_deliveries_about, about.len(), &|| {
        vec![
            column(about, |(tenant, ..)| tenant.to_string()),
            column(about, |(_, subject, _)| subject.kind.number()),
            column(about, |(_, subject, _)| subject.id.clone()),
            column(about, |(_, _, msg_type)| msg_type.clone()),
        ]
    });
    let marks = &writes.marks;
    add(&statements.upsert_marks, marks.len(), &|| {
        vec![
            column(marks, |((tenant, ..), _)| tenant.to_string()),
            column(marks, |((_, mailbox, ..), _)| mailbox.clone()),
            column(marks, |((_, _, number, _), _)| to_i64(*number)),
            column(marks, |((.., reader), _)| reader.clone()),
            column(marks, |(_, (hidden, _))| *hidden),
            column(marks, |(_, (_, acknowledged))| *acknowledged),
        ]
    });
    for (statement, rows) in
        [(&statements.delete_due, &writes.no_longer_due), (&statements.insert_due, &writes.due)]
    {
        add(statement, rows.len(), &|| {
            let places: Vec<Place> = rows.iter().map(|(_, place)| place.clone()).collect();
            let mut columns: Columns = vec![column(rows, |(at, _)| at.unix_micros())];
            columns.extend(place_columns(&places));
            columns
        });
    }
    let audit = &writes.audit;
    add(&statements.insert_audit, audit.len(), &|| {
        vec![
            column(audit, |(tenant, _)| tenant.to_string()),
            column(audit, |(_, row)| row.subject.kind.number()),
            column(audit, |(_, row)| row.subject.id.clone()),
            column(audit, |(_, row)| row.event.to_vec()),
            Box::new(now),
        ]
    });
    add(&statements.insert_deliveries, writes.deliveries.len(), &|| delivery_columns(writes, now));
    batch
}

fn delivery_columns(writes: &Writes, now: i64) -> Columns {
    let counters = &writes.counters;
    let deliveries = &writes.deliveries;
    let name = |index: usize| deliveries[index].1.mailbox.to_string();
    // How many deliveries of the batch to the same mailbox come after this one.
    let from_last = |index: usize| {
        let (tenant, _, ordinal) = &deliveries[index];
        to_i64(counters.get(&(tenant.clone(), name(index))).copied().unwrap_or_default() - ordinal)
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
        column(deliveries, |(_, delivery, _)| delivery.payload.map(|id| payload_bytes(id).to_vec())),
        column(deliveries, |(_, delivery, _)| delivery.until.unix_micros()),
        Box::new(now),
    ]
}
