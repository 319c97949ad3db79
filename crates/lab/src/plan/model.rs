//! The arithmetic. Everything is of the busiest time unless it says a day.

use crate::Failure;

use super::units::Units;

/// Days that are worked, of all.
const WORKING_DAYS: f64 = 22.0 * 12.0 / 365.25;

const HOUR: f64 = 3_600.0;

/// What so many developers need.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) developers: f64,
    pub(super) load: Load,
    pub(super) cost: Cost,
    pub(super) parts: Parts,
}

#[derive(Debug)]
pub(super) struct Load {
    /// Developers who work with agents on a working day.
    pub(super) active: f64,
    pub(super) connections: f64,
    /// Agents that run at the same time.
    pub(super) agents: f64,
    /// Requests to people, each second.
    pub(super) asks: f64,
    /// HTTP requests, each second.
    pub(super) requests: f64,
    pub(super) connects: f64,
    pub(super) pings: f64,
    pub(super) commits: f64,
}

#[derive(Debug)]
pub(super) struct Cost {
    /// Processors that are busy.
    pub(super) gateway_cores: f64,
    pub(super) database_cores: f64,
    /// Bytes of nodes, all together.
    pub(super) connection_memory: f64,
    /// Bytes a second, both ways.
    pub(super) traffic: f64,
    /// Bytes a second of the database's log, which its standby receives.
    pub(super) log: f64,
    /// Bytes on disk in the steady state.
    pub(super) disk: f64,
}

/// How it is divided into cells.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) cells: f64,
    /// Nodes of each cell.
    pub(super) nodes: f64,
    /// Primaries of each cell, every one with a standby.
    pub(super) primaries: f64,
    /// What asks for most of them, and how much of one primary it would need.
    pub(super) binds: (&'static str, f64),
}

impl Plan {
    pub(super) fn new(developers: u64, units: &Units) -> Result<Self, Failure> {
        let developers = crate::cpu::to_f64(developers);
        let cell = units.get("cell_developers")?;
        let load = Load::new(developers, units)?;
        let cost = Cost::new(&load, units)?;
        let cells = (developers / cell).ceil().max(1.0);
        let of_a_cell = Load::new(developers / cells, units)?;
        let cost_of_a_cell = Cost::new(&of_a_cell, units)?;
        let parts = Parts::new(cells, &of_a_cell, &cost_of_a_cell, units)?;
        Ok(Self { developers, load, cost, parts })
    }
}

impl Load {
    fn new(developers: f64, units: &Units) -> Result<Self, Failure> {
        let get = |name| units.get(name);
        let active = developers * get("active")?;
        let agent_hours = active * get("agent_hours")?;
        let agents = agent_hours * get("busiest_hour")?;
        let burst = get("burst")?;
        let connections = active * get("connections")?;
        let each_second = |of_an_hour: f64| agents * of_an_hour / HOUR * burst;
        let reconnects = connections * get("reconnects")? * get("busiest_hour")? / HOUR * burst;
        Ok(Self {
            active,
            connections,
            agents,
            asks: each_second(get("hour_asks")?),
            requests: each_second(get("hour_requests")?),
            connects: each_second(get("hour_connections")?) + reconnects,
            pings: connections / get("ping_interval")?,
            commits: each_second(get("hour_commits")?)
                + reconnects * (get("connect_commits")? + get("disconnect_commits")?),
        })
    }
}

impl Cost {
    fn new(load: &Load, units: &Units) -> Result<Self, Failure> {
        let get = |name| units.get(name);
        let burst = get("burst")?;
        let each_second = |of_an_hour: f64| load.agents * of_an_hour / HOUR * burst;
        // An hour was measured over plain HTTP; each of its connections does a handshake, too.
        let pushes = load.asks * get("pushed")?;
        let connecting = load.connects * get("connect_tls_gateway_ms")?
            + load.pings * get("ping_gateway_ms")?
            + pushes * get("push_gateway_ms")?;
        let connecting_database =
            load.connects * get("connect_postgres_ms")? + pushes * get("push_postgres_ms")?;
        Ok(Self {
            gateway_cores: each_second(get("hour_gateway_ms")?) / 1e3 + connecting / 1e3,
            database_cores: each_second(get("hour_postgres_ms")?) / 1e3 + connecting_database / 1e3,
            connection_memory: load.connections * get("connection_bytes")?,
            traffic: each_second(get("hour_bytes")?),
            log: each_second(get("hour_log_bytes")?),
            disk: Self::disk(load, units)?,
        })
    }

    /// What an hour leaves is there whole for the days of sessions, then without these for the days of exchanges, then as rows of the
    /// audit log.
    fn disk(load: &Load, units: &Units) -> Result<f64, Failure> {
        let get = |name| units.get(name);
        let (sessions, exchanges, audit) = (get("session_days")?, get("exchange_days")?, get("audit_days")?);
        let of_an_hour = get("hour_stored")? * sessions
            + get("hour_stored_without_sessions")? * (exchanges - sessions)
            + get("hour_stored_ids")? * (audit - exchanges);
        let hours_a_day = load.active * get("agent_hours")? * WORKING_DAYS;
        Ok(hours_a_day * of_an_hour * get("slack")?)
    }
}

impl Parts {
    fn new(cells: f64, load: &Load, cost: &Cost, units: &Units) -> Result<Self, Failure> {
        let get = |name| units.get(name);
        let (utilised, node_cores) = (get("utilised")?, get("node_cores")?);
        let by_cores = cost.gateway_cores / (node_cores * utilised);
        let by_connections = load.connections / get("node_connections")?;
        // One can be away, and the others carry what it carried.
        let nodes = by_cores.max(by_connections).ceil().max(1.0) + 1.0;
        let needed = [
            ("processors", cost.database_cores / (get("database_cores")? * utilised)),
            ("disk", cost.disk / get("database_disk")?),
            ("log", cost.log / get("database_log")?),
        ];
        let binds = needed.into_iter().fold(needed[0], |first, it| if it.1 > first.1 { it } else { first });
        Ok(Self { cells, nodes, primaries: binds.1.ceil().max(1.0), binds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(developers: u64, set: &[&str]) -> Plan {
        let mut units = Units::read().unwrap();
        for set in set {
            units.set(set).unwrap();
        }
        Plan::new(developers, &units).unwrap()
    }

    fn assert_close(one: f64, other: f64) {
        assert!((one - other).abs() <= other.abs() * 1e-9, "{one} {other}");
    }

    #[test]
    fn twice_as_many_are_twice_the_load_and_the_same_cells_twice() {
        let (one, two) = (plan(500_000, &[]), plan(1_000_000, &[]));
        assert_close(two.load.commits, one.load.commits * 2.0);
        assert_close(two.cost.disk, one.cost.disk * 2.0);
        assert_close(two.parts.cells, 2.0);
        assert_close(two.parts.primaries, one.parts.primaries);
        assert_close(two.parts.nodes, one.parts.nodes);
    }

    #[test]
    fn an_hour_is_paid_for_as_long_as_each_part_of_it_is_kept() {
        let kept = [
            "hour_stored=100",
            "hour_stored_without_sessions=10",
            "hour_stored_ids=1",
            "session_days=7",
            "exchange_days=30",
            "audit_days=400",
            "active=1",
            "agent_hours=1",
            "slack=1",
        ];
        let days = 100.0 * 7.0 + 10.0 * 23.0 + 370.0;
        assert_close(plan(10, &kept).cost.disk, 10.0 * days * WORKING_DAYS);
    }

    #[test]
    fn what_needs_most_decides_how_many_primaries_there_are() {
        let (disk, log) = (plan(500_000, &["database_disk=1e9"]), plan(500_000, &["database_log=1"]));
        assert_eq!((disk.parts.binds.0, log.parts.binds.0), ("disk", "log"));
        assert_close(disk.parts.primaries, (disk.cost.disk / 1e9).ceil());
        assert_close(plan(1, &[]).parts.primaries, 1.0);
    }

    #[test]
    fn a_node_that_is_away_is_carried_by_the_others() {
        let set = ["node_connections=1000", "connections=1", "active=1", "node_cores=1000000"];
        assert_close(plan(2_500, &set).parts.nodes, 4.0);
    }
}
