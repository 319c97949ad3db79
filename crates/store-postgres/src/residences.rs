//! Which tenants were moved to this database or from it, and what it is a shard of.

use std::{collections::BTreeSet, fmt, sync::atomic::Ordering};

use countersign_core::store::{
    Epoch, Membership, Residence, ResidencePage, ResidenceState, Shard, StoreError, error_chain,
};
use countersign_wire::{hash::Sha256Hex, id::TenantId};
use parking_lot::Mutex;
use tokio_postgres::{Client, Error, Row, Transaction};

use crate::{
    connect::{Connector, InDoubt, check_durability},
    error::OpenError,
    migrations::SHARDS_NEED,
    reads::Reads,
    rows::{count, get, to_i64},
};

pub(crate) const MEMBERSHIP: &str = "SELECT store_id, number, name, buckets FROM shard";

const JOIN: &str =
    "INSERT INTO shard (store_id, number, name, buckets) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// From now on programs that know nothing of shards refuse to open the database.
const RAISE_OLDEST_PROGRAM: &str = "UPDATE migration SET oldest_program = $1 WHERE number = $1";

/// A page of changes. They are read until one is not full; one that changes meanwhile comes again.
pub(crate) const CHANGED: &str = "SELECT tenant, epoch, state, other, changed FROM residence WHERE changed > $1 ORDER BY changed LIMIT 1000";
const PAGE: usize = 1_000;

pub(crate) const ONE: &str = "SELECT epoch, state, other FROM residence WHERE tenant = $1";

const LOCKED: &str = "SELECT epoch, state, other, arrived FROM residence WHERE tenant = $1 FOR UPDATE";

/// The arrival of a tenant begins with nothing.
const CHANGE: &str = "INSERT INTO residence (tenant, epoch, state, other, changed, arrived) \
    VALUES ($1, $2, $3, $4, (SELECT COALESCE(max(changed), 0) + 1 FROM residence), '') \
    ON CONFLICT (tenant) DO UPDATE SET epoch = excluded.epoch, state = excluded.state, other = excluded.other, \
        changed = excluded.changed, arrived = ''";

/// Waits for those that write to the tenant, and gives way to them if that takes long: behind this they would wait too.
const LIMITS: &str = "SET LOCAL lock_timeout = '3s'";

/// Held while any residence is changed, so that their changes are committed in the order of their numbers. No tenant has it.
const ALL_RESIDENCES: i64 = 0x00c0_0a7e_2516_0003;

/// The key of the advisory lock of a tenant. That of two tenants may be the same: then they wait for each other.
pub(crate) fn lock_of(tenant: &TenantId) -> i64 {
    let digest = Sha256Hex::digest(tenant.as_str().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_be_bytes(first)
}

/// A tenant with the epoch that a change takes it to have.
pub(crate) type TenantInEpoch = (TenantId, Epoch);

/// How a transaction that writes to these tenants begins: with what makes it and [`change`] wait for each other.
pub(crate) fn lock_shared(tenants: &BTreeSet<TenantInEpoch>) -> String {
    let mut locks: Vec<i64> = tenants.iter().map(|(tenant, _)| lock_of(tenant)).collect();
    locks.sort_unstable();
    locks.dedup();
    let locks: Vec<String> =
        locks.iter().map(|lock| format!("pg_advisory_xact_lock_shared({lock})")).collect();
    format!("; SELECT {}", locks.join(", "))
}

fn state(row: &Row) -> Result<Residence, StoreError> {
    let other: i32 = get(row, "other")?;
    let other = Shard(u16::try_from(other).map_err(StoreError::corrupt)?);
    let state = match get::<i16>(row, "state")? {
        1 => ResidenceState::Here,
        2 => ResidenceState::Leaving { to: other },
        3 => ResidenceState::Arriving { from: other },
        4 => ResidenceState::Left { to: other },
        unknown => return Err(StoreError::corrupt(format!("unknown state {unknown} of a residence"))),
    };
    Ok(Residence { epoch: Epoch(count(row, "epoch")?), state })
}

fn columns(residence: Residence) -> (i64, i16, i32) {
    let (state, other) = match residence.state {
        ResidenceState::Here => (1, Shard(0)),
        ResidenceState::Leaving { to } => (2, to),
        ResidenceState::Arriving { from } => (3, from),
        ResidenceState::Left { to } => (4, to),
    };
    (to_i64(residence.epoch.0), state, i32::from(other.0))
}

pub(crate) async fn membership(reads: &Reads) -> Result<Option<Membership>, StoreError> {
    reads.query_for_all(MEMBERSHIP, &[]).await?.first().map(member).transpose()
}

/// On a connection of its own. `None` also if there is no table yet.
pub(crate) async fn peek(client: &Client) -> Result<Option<Membership>, OpenError> {
    let exists = client.query_one("SELECT to_regclass('shard') IS NOT NULL AS exists", &[]).await?;
    if !exists.try_get::<_, bool>("exists")? {
        return Ok(None);
    }
    Ok(client.query_opt(MEMBERSHIP, &[]).await?.as_ref().map(member).transpose()?)
}

fn member(row: &Row) -> Result<Membership, StoreError> {
    let number = |number: i32| u16::try_from(number).map_err(StoreError::corrupt);
    let buckets: Vec<i32> = get(row, "buckets")?;
    Ok(Membership {
        store_id: get(row, "store_id")?,
        shard: Shard(number(get(row, "number")?)?),
        name: get(row, "name")?,
        buckets: buckets.into_iter().map(number).collect::<Result<_, _>>()?,
    })
}

pub(crate) async fn list(reads: &Reads, since: u64) -> Result<ResidencePage, StoreError> {
    let mut page = ResidencePage { changes: Vec::new(), read_to: since };
    loop {
        let rows = reads.query_for_all(CHANGED, &[&to_i64(page.read_to)]).await?;
        page.changes.extend(rows.iter().filter_map(changed));
        page.read_to = rows.last().map_or(Ok(page.read_to), |row| count(row, "changed"))?;
        if rows.len() < PAGE {
            return Ok(page);
        }
    }
}

/// One that can't be read is of one tenant, and must not keep those of all others from being read.
fn changed(row: &Row) -> Option<(TenantId, Residence)> {
    let tenant: Result<TenantId, StoreError> =
        get::<&str>(row, "tenant").and_then(|tenant| tenant.parse().map_err(StoreError::corrupt));
    match (tenant, state(row)) {
        (Ok(tenant), Ok(residence)) => Some((tenant, residence)),
        (Err(error), _) => {
            let error = error_chain(&error);
            tracing::warn!(error, "a residence has no tenant that can be read; it is left out");
            None
        }
        (Ok(tenant), Err(error)) => {
            let error = error_chain(&error);
            tracing::warn!(
                error,
                %tenant,
                "the residence of a tenant can't be read; it counts as leaving, which nobody reads or writes"
            );
            let epoch = Epoch(count(row, "epoch").unwrap_or(u64::MAX));
            Some((tenant, Residence { epoch, state: ResidenceState::Leaving { to: Shard(u16::MAX) } }))
        }
    }
}

pub(crate) async fn one(reads: &Reads, tenant: &TenantId) -> Result<Option<Residence>, StoreError> {
    reads.query(tenant, ONE, &[&tenant.as_str()]).await?.first().map(state).transpose()
}

/// What is written about moves, on a connection of its own: it counts only once it is as durable as a commit.
pub(crate) struct Sessions {
    connector: Connector,
    /// Kept for the next transaction.
    idle: Mutex<Option<Session>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, idle: Mutex::default() }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) async fn get(&self) -> Result<Session, StoreError> {
        let idle = self.idle.lock().take().filter(|session| !session.client.is_closed());
        match idle {
            Some(session) => Ok(session),
            None => Session::open(&self.connector).await,
        }
    }

    /// Takes back a session whose transaction was sent its COMMIT with this result.
    pub(crate) fn committed(&self, session: Session, result: Result<(), Error>) -> Result<(), StoreError> {
        result.map_err(|_| StoreError::OutcomeUnknown)?;
        if session.in_doubt.load(Ordering::Relaxed) {
            return Err(StoreError::OutcomeUnknown);
        }
        *self.idle.lock() = Some(session);
        Ok(())
    }
}

pub(crate) struct Session {
    client: Client,
    in_doubt: InDoubt,
}

impl Session {
    async fn open(connector: &Connector) -> Result<Self, StoreError> {
        let unfit = |error: OpenError| StoreError::unavailable(error);
        let (client, in_doubt) = connector.connect().await.map_err(unfit)?;
        check_durability(&client).await.map_err(unfit)?;
        Ok(Self { client, in_doubt })
    }

    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_>, StoreError> {
        self.in_doubt.store(false, Ordering::Relaxed);
        let transaction = self.client.transaction().await.map_err(StoreError::unavailable)?;
        transaction.batch_execute(LIMITS).await.map_err(StoreError::unavailable)?;
        Ok(transaction)
    }
}

pub(crate) async fn join(sessions: &Sessions, membership: &Membership) -> Result<(), StoreError> {
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    let buckets: Vec<i32> = membership.buckets.iter().map(|shard| i32::from(*shard)).collect();
    let number = i32::from(membership.shard.0);
    let joined =
        transaction.execute(JOIN, &[&membership.store_id, &number, &membership.name, &buckets]).await;
    joined.map_err(StoreError::unavailable)?;
    let raised = transaction.execute(RAISE_OLDEST_PROGRAM, &[&SHARDS_NEED]).await;
    raised.map_err(StoreError::unavailable)?;
    let result = transaction.commit().await;
    sessions.committed(session, result)
}

/// The residence, and how much of the tenant has arrived, until the end of the transaction.
pub(crate) async fn locked(
    transaction: &Transaction<'_>,
    tenant: &TenantId,
) -> Result<Option<(Residence, String)>, StoreError> {
    let row = transaction.query_opt(LOCKED, &[&tenant.as_str()]).await.map_err(StoreError::unavailable)?;
    row.map(|row| Ok((state(&row)?, get(&row, "arrived")?))).transpose()
}

pub(crate) async fn change(
    sessions: &Sessions,
    tenant: &TenantId,
    from: Option<Residence>,
    to: Residence,
) -> Result<Option<Residence>, StoreError> {
    let mut session = sessions.get().await?;
    let transaction = session.begin().await?;
    for lock in [ALL_RESIDENCES, lock_of(tenant)] {
        let locked = transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await;
        locked.map_err(StoreError::unavailable)?;
    }
    let current = locked(&transaction, tenant).await?.map(|(residence, _)| residence);
    let is_older = current.is_some_and(|current| current.epoch > to.epoch);
    let becomes = if current == from && current != Some(to) && !is_older { Some(to) } else { current };
    if becomes != current {
        let (epoch, state, other) = columns(to);
        let changed = transaction.execute(CHANGE, &[&tenant.as_str(), &epoch, &state, &other]).await;
        changed.map_err(StoreError::unavailable)?;
    }
    // Also without a change: what another mover has changed must be durable before anything rests on it.
    let result = transaction.commit().await;
    sessions.committed(session, result)?;
    Ok(becomes)
}
