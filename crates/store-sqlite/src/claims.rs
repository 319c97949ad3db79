//! Claims what is due, in a transaction of its own.

use std::collections::HashMap;

use countersign_core::store::{CLAIM, Due, StoreError};
use countersign_wire::timestamp::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, TransactionBehavior, params};

use crate::{clock::Clock, error::store_error, reads, rows};

/// How many tenants and minutes are looked at: enough for an outage of a week, and still short.
const MAX_STEPS: usize = 10_000;

/// What is claimed, and the store's time.
pub(crate) type ClaimResult = std::result::Result<(Vec<Due>, Timestamp), StoreError>;

/// What one tenant has due in one minute.
struct Turn {
    minute: i64,
    tenant: String,
    /// How many earlier minutes the tenant has.
    earlier: usize,
}

/// Claims up to `limit` of what is due, in turn by tenant.
pub(crate) fn claim_due(conn: &mut Connection, clock: &Clock, limit: u32) -> ClaimResult {
    let claim = |conn: &mut Connection| {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = clock.now();
        let claimed = choose(&tx, now, limit as usize)?;
        for due in &claimed {
            tx.prepare_cached("UPDATE due SET at = ?4 WHERE tenant = ?1 AND kind = ?2 AND id = ?3")?
                .execute(params![
                    due.tenant.as_str(),
                    due.key.kind.number(),
                    due.key.id,
                    now.plus(CLAIM).unix_micros()
                ])?;
        }
        tx.commit()?;
        Ok((claimed, now))
    };
    claim(conn).map_err(store_error)
}

/// The oldest minute of every tenant comes before anybody's second one, and each turn takes an equal share of the limit.
fn choose(conn: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Due>> {
    let mut turns = turns(conn, now)?;
    turns.sort_by_key(|turn| turn.earlier);
    let tenants = turns.iter().take_while(|turn| turn.earlier == 0).count();
    let share = limit / tenants.max(1) + 1;
    let mut chosen = Vec::new();
    for Turn { minute, tenant, .. } in turns {
        let left = rows::to_i64(share.min(limit - chosen.len()) as u64);
        let sql = include_str!("../queries/due_of_turn.sql");
        let read = |row: &Row<'_>| Ok(known(rows::due(row)));
        let of_turn = reads::all(conn, sql, params![minute, tenant, now.unix_micros(), left], read)?;
        chosen.extend(of_turn.into_iter().flatten());
        if chosen.len() == limit {
            break;
        }
    }
    chosen.sort_by(|one, other| (one.at, &one.tenant, &one.key).cmp(&(other.at, &other.tenant, &other.key)));
    Ok(chosen)
}

/// An entry that can't be decoded is left where it is, and must not stop the sweep of all tenants.
fn known(due: Result<Due>) -> Option<Due> {
    due.inspect_err(|error| tracing::error!(%error, "an entry of the table due can't be decoded")).ok()
}

/// Goes through the index from one tenant of a minute to the next, so that it costs as much as there are tenants with
/// something due, however much each has.
fn turns(conn: &Connection, now: Timestamp) -> Result<Vec<Turn>> {
    let now = now.unix_micros();
    let mut next = conn.prepare_cached(include_str!("../queries/due_next.sql"))?;
    let mut earlier: HashMap<String, usize> = HashMap::new();
    let mut turns = Vec::new();
    // No tenant is empty, so all sort after the empty string.
    let (mut minute, mut tenant) = (i64::MIN, String::new());
    for _ in 0..MAX_STEPS {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?));
        let Some((at_minute, of, at)) = next.query_row(params![minute, tenant, now], read).optional()? else {
            break;
        };
        (minute, tenant) = (at_minute, of);
        if at <= now {
            let count = earlier.entry(tenant.clone()).or_default();
            turns.push(Turn { minute, tenant: tenant.clone(), earlier: *count });
            *count += 1;
        }
    }
    Ok(turns)
}
