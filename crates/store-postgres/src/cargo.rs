//! A tenant on its way to another database: read row by row as JSON, and written as such. The same program reads and writes, and
//! both databases have its schema.

use std::fmt::Write as _;

use async_trait::async_trait;
use countersign_core::store::{
    Cargo, CargoPosition, Epoch, Residence, ResidenceState, StoreError, Unloading,
};
use countersign_wire::id::TenantId;
use tokio_postgres::Client;

use crate::{
    connect::Connector,
    plan::INCARNATION_SHIFT,
    reads::Reads,
    residences::{Sessions, locked},
    rows::{count, get, to_i64},
    tenants::ERASE,
};

/// What one part has, about, in characters. A row that is larger is a part by itself.
const PART: usize = 1 << 20;

/// The part of a table that is about one tenant.
struct Table {
    name: &'static str,
    /// With their types, without `tenant`.
    columns: &'static str,
    /// Those of the key beside the tenant, with their types. One that is no column is assigned anew.
    key: &'static str,
    condition: &'static str,
    /// Rows that are fetched at once.
    fetched: u32,
}

/// In this order. What is due comes last: it is of no use to a sweeper before the records are there.
const TABLES: &[Table] = &[
    Table {
        name: "payload",
        columns: "id bytea, content bytea, counted boolean",
        key: "id bytea",
        condition: "AND NOT EXISTS (SELECT FROM payload_pending w WHERE w.id = t.id)",
        fetched: 4,
    },
    Table {
        name: "record",
        columns: "kind smallint, id text, version bigint, content bytea",
        key: "kind smallint, id text",
        condition: "",
        fetched: 100,
    },
    Table {
        name: "mailbox",
        columns: "name text, counter bigint",
        key: "name text",
        condition: "",
        fetched: 1_000,
    },
    Table {
        name: "delivery",
        columns: "mailbox text, number bigint, msg_id text, msg_type text, subject_kind smallint, subject_id text, \
            payload bytea, at bigint, until bigint",
        key: "mailbox text, number bigint",
        condition: "",
        fetched: 1_000,
    },
    Table {
        name: "mark",
        columns: "mailbox text, number bigint, reader text, hidden boolean, acknowledged boolean",
        key: "mailbox text, number bigint, reader text",
        condition: "",
        fetched: 1_000,
    },
    Table {
        name: "audit",
        columns: "at bigint, subject_kind smallint, subject_id text, event bytea",
        key: "at bigint, seq bigint",
        condition: "",
        fetched: 1_000,
    },
    Table {
        name: "due",
        columns: "kind smallint, id text, at bigint",
        key: "kind smallint, id text",
        condition: "",
        fetched: 1_000,
    },
];

/// Longer than usual: the payloads of a tenant are sorted once, and the other database may keep this one waiting.
const SETTINGS: &str = "SET standard_conforming_strings = on; SET statement_timeout = '10min'; \
    SET idle_in_transaction_session_timeout = '10min'; BEGIN READ ONLY";

const ADVANCE: &str = "UPDATE residence SET arrived = $2 WHERE tenant = $1";

const FLOOR: &str = "SELECT last_value FROM record_incarnation";

/// Held while the sequence is set: another mover might set it back to what it needs itself. No tenant has it.
const RAISING: i64 = 0x00c0_0a7e_2516_0004;

/// So far ahead no other transaction takes numbers between the two parts of a statement.
const JUMP: i64 = 1_000_000;
const RAISE_BY_JUMP: &str = "SELECT CASE WHEN last_value + $2::bigint < $1::bigint \
    THEN setval('record_incarnation', $1::bigint) END FROM record_incarnation";
const RAISE_BY_STEPS: &str = "SELECT count(nextval('record_incarnation')) FROM generate_series(1, greatest(0, \
    $1::bigint - (SELECT last_value FROM record_incarnation)))";

/// The names in a list of columns with types.
fn names(columns: &str) -> Vec<&str> {
    columns.split(", ").filter_map(|column| column.split_whitespace().next()).collect()
}

fn prefixed(names: &[&str], with: &str) -> String {
    names.iter().map(|name| format!("{with}.{name}")).collect::<Vec<_>>().join(", ")
}

/// As a literal, with [`SETTINGS`].
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Table {
    /// A cursor can't be declared with parameters.
    fn cursor(&self, tenant: &TenantId, after: Option<&str>) -> String {
        let (columns, key) = (names(self.columns), names(self.key));
        let mut all = columns.clone();
        all.extend(key.iter().filter(|name| !columns.contains(name)));
        let (tenant, order) = (quoted(tenant.as_str()), prefixed(&key, "t"));
        let (from, later) = match after {
            None => (String::new(), String::new()),
            Some(after) => (
                format!("json_to_record({}) AS k ({}) CROSS JOIN LATERAL ", quoted(after), self.key),
                format!("AND ({order}) > ({})", prefixed(&key, "k")),
            ),
        };
        let fields = |names: &[&str]| {
            names.iter().map(|name| format!("'{name}', t.{name}")).collect::<Vec<_>>().join(", ")
        };
        format!(
            "DECLARE cargo NO SCROLL CURSOR FOR SELECT json_build_object({})::text AS row, \
             json_build_object({})::text AS key FROM {from}(SELECT {} FROM {} t WHERE t.tenant = {tenant} \
             {} {later} ORDER BY {order}) t",
            fields(&columns),
            fields(&key),
            prefixed(&all, "t"),
            self.name,
            self.condition,
        )
    }

    fn insert(&self) -> String {
        let columns = names(self.columns).join(", ");
        format!(
            "INSERT INTO {} (tenant, {columns}) SELECT $1, {columns} FROM json_to_recordset($2::text::json) AS r ({})",
            self.name, self.columns
        )
    }
}

/// Which table, and after which of its rows; `None` for its beginning.
fn read_position(position: &CargoPosition) -> Result<(usize, Option<&str>), StoreError> {
    if position.0.is_empty() {
        return Ok((0, None));
    }
    let parts = position.0.split_once(' ').and_then(|(at, key)| Some((at.parse().ok()?, key)));
    let (at, key) = parts.ok_or_else(|| StoreError::corrupt("not the position of a tenant on its way"))?;
    Ok((at, Some(key).filter(|key| !key.is_empty())))
}

struct PostgresUnloading {
    client: Client,
    tenant: TenantId,
    /// The table that is read.
    at: usize,
    after: Option<String>,
    /// Whether its cursor is open.
    is_open: bool,
}

#[async_trait]
impl Unloading for PostgresUnloading {
    async fn next(&mut self) -> Result<Option<Cargo>, StoreError> {
        while let Some(table) = TABLES.get(self.at) {
            if !self.is_open {
                let cursor = table.cursor(&self.tenant, self.after.as_deref());
                self.client.batch_execute(&cursor).await.map_err(StoreError::unavailable)?;
                self.is_open = true;
            }
            if let Some(cargo) = self.part(table).await? {
                return Ok(Some(cargo));
            }
            self.client.batch_execute("CLOSE cargo").await.map_err(StoreError::unavailable)?;
            (self.at, self.after, self.is_open) = (self.at + 1, None, false);
        }
        Ok(None)
    }
}

impl PostgresUnloading {
    /// The next rows of a table; `None` after the last.
    async fn part(&self, table: &Table) -> Result<Option<Cargo>, StoreError> {
        let fetch = format!("FETCH FORWARD {} FROM cargo", table.fetched);
        let (mut content, mut rows, mut last) = (String::from("["), 0, None);
        while content.len() < PART {
            let fetched = self.client.query(fetch.as_str(), &[]).await.map_err(StoreError::unavailable)?;
            for row in &fetched {
                let text: &str = get(row, "row")?;
                let separator = if rows == 0 { "" } else { "," };
                write!(content, "{separator}{text}").map_err(StoreError::corrupt)?;
                rows += 1;
            }
            if let Some(row) = fetched.last() {
                last = Some(get::<String>(row, "key")?);
            }
            if fetched.len() < table.fetched as usize {
                break;
            }
        }
        let Some(last) = last else { return Ok(None) };
        content.push(']');
        let next = CargoPosition(format!("{} {last}", self.at));
        Ok(Some(Cargo { rows, size: content.len() as u64, content: format!("{} {content}", self.at), next }))
    }
}

pub(crate) async fn unload(
    connector: &Connector,
    tenant: &TenantId,
    from: &CargoPosition,
) -> Result<Box<dyn Unloading>, StoreError> {
    let (at, after) = read_position(from)?;
    let (client, _) = connector.connect().await.map_err(StoreError::unavailable)?;
    client.batch_execute(SETTINGS).await.map_err(StoreError::unavailable)?;
    let (tenant, after) = (tenant.clone(), after.map(str::to_owned));
    Ok(Box::new(PostgresUnloading { client, tenant, at, after, is_open: false }))
}

pub(crate) async fn arrived(
    sessions: &Sessions,
    tenant: &TenantId,
    epoch: Epoch,
) -> Result<CargoPosition, StoreError> {
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    let arrived = arriving(locked(&transaction, tenant).await?, epoch)?;
    let result = transaction.commit().await;
    sessions.committed(session, result)?;
    Ok(CargoPosition(arrived))
}

/// How much of a tenant has arrived, if it is arriving with this epoch.
fn arriving(found: Option<(Residence, String)>, with: Epoch) -> Result<String, StoreError> {
    match found {
        Some((Residence { epoch, state: ResidenceState::Arriving { .. } }, arrived)) if epoch == with => {
            Ok(arrived)
        }
        _ => Err(StoreError::Moved),
    }
}

pub(crate) async fn load(
    sessions: &Sessions,
    tenant: &TenantId,
    epoch: Epoch,
    after: &CargoPosition,
    cargo: &Cargo,
) -> Result<(), StoreError> {
    let unreadable = || StoreError::corrupt("not a part of a tenant");
    let (at, rows) = cargo.content.split_once(' ').ok_or_else(unreadable)?;
    let table = at.parse().ok().and_then(|at: usize| TABLES.get(at)).ok_or_else(unreadable)?;
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    if arriving(locked(&transaction, tenant).await?, epoch)? != after.0 {
        return Err(StoreError::Moved);
    }
    let inserted = transaction.execute(&table.insert(), &[&tenant.as_str(), &rows]).await;
    inserted.map_err(StoreError::unavailable)?;
    let advanced = transaction.execute(ADVANCE, &[&tenant.as_str(), &cargo.next.0]).await;
    advanced.map_err(StoreError::unavailable)?;
    let result = transaction.commit().await;
    sessions.committed(session, result)
}

pub(crate) async fn version_floor(reads: &Reads) -> Result<u64, StoreError> {
    let rows = reads.query_for_all(FLOOR, &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("a sequence returned no row"))?;
    Ok((count(row, "last_value")? + 1) << INCARNATION_SHIFT)
}

pub(crate) async fn raise_version_floor(sessions: &Sessions, floor: u64) -> Result<(), StoreError> {
    let incarnation = to_i64(floor >> INCARNATION_SHIFT);
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    let locked = transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&RAISING]).await;
    locked.map_err(StoreError::unavailable)?;
    let jumped = transaction.execute(RAISE_BY_JUMP, &[&incarnation, &JUMP]).await;
    jumped.map_err(StoreError::unavailable)?;
    let stepped = transaction.execute(RAISE_BY_STEPS, &[&incarnation]).await;
    stepped.map_err(StoreError::unavailable)?;
    let result = transaction.commit().await;
    sessions.committed(session, result)
}

pub(crate) async fn clear(
    sessions: &Sessions,
    tenant: &TenantId,
    residence: Residence,
    limit: u32,
) -> Result<u64, StoreError> {
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    let may_be_cleared = locked(&transaction, tenant).await?.is_some_and(|(is, arrived)| {
        let is_empty_yet = matches!(is.state, ResidenceState::Arriving { .. }) && arrived.is_empty();
        is == residence && (is_empty_yet || matches!(is.state, ResidenceState::Left { .. }))
    });
    if !may_be_cleared {
        return Err(StoreError::Moved);
    }
    // No kind of record is kept.
    let (limit, kept) = (i64::from(limit), i16::MAX);
    let mut cleared = 0;
    for sql in ERASE {
        let deleted = transaction.execute(*sql, &[&tenant.as_str(), &limit, &kept]).await;
        cleared += deleted.map_err(StoreError::unavailable)?;
    }
    let result = transaction.commit().await;
    sessions.committed(session, result)?;
    Ok(cleared)
}
