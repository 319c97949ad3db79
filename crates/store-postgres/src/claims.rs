//! Claims what is due, in one statement.

use countersign_core::store::{CLAIM, Due, StoreError, error_chain};
use countersign_wire::timestamp::Timestamp;

use crate::{reads::Reads, rows::due};

/// `place` goes through the index from one tenant of a minute to the next, so that it costs as much as there are tenants
/// with something due, however much each has; a bound keeps it short after an outage of days. `turns` puts the oldest
/// minute of every tenant before anybody's second one, and each turn takes an equal share of the limit.
///
/// What another node is just claiming is skipped. Nobody waits until a claim is durable: one that is lost in a crash has
/// lapsed early.
pub(crate) const CLAIM_DUE: &str = "WITH RECURSIVE \
    clock AS MATERIALIZED (SELECT gateway_now() AS now, set_config('synchronous_commit', 'off', true)), \
    place (minute, tenant, at, step) AS ( \
        SELECT d.*, 1 FROM clock CROSS JOIN LATERAL ( \
            SELECT at / 60000000 AS minute, tenant, at FROM due \
            WHERE at / 60000000 <= clock.now / 60000000 \
            ORDER BY at / 60000000, tenant, at LIMIT 1) d \
        UNION ALL \
        SELECT d.*, place.step + 1 FROM place CROSS JOIN clock CROSS JOIN LATERAL ( \
            SELECT at / 60000000 AS minute, tenant, at FROM due \
            WHERE (at / 60000000, tenant) > (place.minute, place.tenant) \
                AND at / 60000000 <= clock.now / 60000000 \
            ORDER BY at / 60000000, tenant, at LIMIT 1) d \
        WHERE place.step < 10000), \
    turns AS MATERIALIZED ( \
        SELECT minute, tenant, row_number() OVER (PARTITION BY tenant ORDER BY minute) AS turn \
        FROM place, clock WHERE at <= now), \
    share AS MATERIALIZED (SELECT $1::bigint / greatest(count(*), 1) + 1 AS rows FROM turns WHERE turn = 1), \
    chosen AS MATERIALIZED ( \
        SELECT d.* FROM (SELECT * FROM turns ORDER BY turn, minute, tenant) t CROSS JOIN clock CROSS JOIN LATERAL ( \
            SELECT tenant, kind, id, at FROM due \
            WHERE at / 60000000 = t.minute AND tenant = t.tenant AND at <= clock.now \
            ORDER BY at LIMIT (SELECT rows FROM share) FOR UPDATE SKIP LOCKED) d \
        LIMIT $1), \
    claimed AS ( \
        UPDATE due SET at = clock.now + $2::bigint FROM chosen, clock \
        WHERE due.tenant = chosen.tenant AND due.kind = chosen.kind AND due.id = chosen.id \
        RETURNING due.tenant, due.kind, due.id, chosen.at) \
    SELECT clock.now, claimed.* FROM clock LEFT JOIN claimed ON true ORDER BY at, tenant, kind, id";

/// Claims up to `limit` of what is due, in turn by tenant.
pub(crate) async fn claim_due(reads: &Reads, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
    let claim = i64::try_from(CLAIM.as_micros()).unwrap_or(i64::MAX);
    let (rows, now) = reads.query_and_now(CLAIM_DUE, "at", &[&i64::from(limit), &claim]).await?;
    // An entry that can't be decoded stays claimed, and must not stop the sweep of all tenants.
    let log = |error: &StoreError| {
        tracing::error!(error = error_chain(error), "an entry of the table due can't be decoded");
    };
    Ok((rows.iter().filter_map(|row| due(row).inspect_err(log).ok()).collect(), now))
}
