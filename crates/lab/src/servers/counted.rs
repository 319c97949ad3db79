//! A gateway on PostgreSQL with TLS beside plain HTTP, and with everything that its cost can be counted by.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use countersign_testkit::child_process::free_port;
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

use super::{gateway::Gateway, on_postgres::OnPostgres};
use crate::{
    Failure,
    args::CountingArgs,
    clients::stream::Endpoint,
    cpu::Meter,
    scrape::Counts,
    stopwatch::Stopwatch,
    tls::{Authority, TlsClient},
};

/// Calls of the store that a client's call leads to. The others are the node's own, at fixed times.
const READS: [&str; 6] = ["load", "payloads", "deliveries", "deliveries_by_subject", "heads", "in_inboxes"];

pub(crate) struct Counted {
    pub(crate) on: OnPostgres,
    pub(crate) gateway: Gateway,
    pub(crate) tls: Endpoint,
    pub(crate) authority: Authority,
    metrics: SocketAddr,
    database: Client,
    settling: Duration,
}

/// What was counted from one moment to another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Processor time, in seconds.
    pub(crate) gateway: f64,
    pub(crate) postgres: f64,
    pub(crate) requests: f64,
    pub(crate) reads: f64,
    pub(crate) commits: f64,
    /// Transactions that commits were put into.
    pub(crate) transactions: f64,
    /// Bytes of PostgreSQL's log.
    pub(crate) log_bytes: f64,
}

/// A cost that is being counted.
pub(crate) struct Counting<'a> {
    of: &'a Counted,
    watch: Stopwatch,
    meter: Meter,
    before: (Counts, f64),
}

impl Counted {
    pub(crate) async fn start(args: &CountingArgs) -> Result<Self, Failure> {
        let settling = Duration::from_secs(args.settle);
        let on = OnPostgres::start(&args.gateway)?;
        let [tls, metrics] =
            [free_port(), free_port()].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let authority = Authority::new()?;
        let certificate = authority.issue(on.folder.path())?;
        // Push services are on this machine, too.
        let notifications = "[notifications]\nallowed_networks = [\"127.0.0.0/8\"]\n";
        let sections =
            format!("{}{notifications}[metrics]\nlisten = \"{metrics}\"\n", certificate.section(Some(tls)));
        let gateway = Gateway::on_postgres_with(&on.program, on.folder.path(), &on.postgres, &sections)?;
        let tls = Endpoint { address: tls, tls: Some(authority.client()?) };
        let (database, connection) = tokio_postgres::connect(&on.postgres.url(), NoTls).await?;
        tokio::spawn(connection);
        Ok(Self { on, gateway, tls, authority, metrics, database, settling })
    }

    /// Where TLS is, for a client that resumes its session.
    pub(crate) fn resuming(&self) -> Result<Endpoint, Failure> {
        Ok(Endpoint { address: self.tls.address, tls: Some(TlsClient::resuming(&self.authority)?) })
    }

    /// What a node costs by itself while nothing is done; nothing, where nothing settles: a moment tells no rate.
    pub(crate) async fn idle(&self) -> Result<Cost, Failure> {
        if self.settling.is_zero() {
            return Ok(Cost { seconds: 1.0, ..Cost::default() });
        }
        let counting = self.count().await?;
        sleep(self.settling * 3).await;
        counting.end().await
    }

    /// Begins to count, once what was before has settled.
    pub(crate) async fn count(&self) -> Result<Counting<'_>, Failure> {
        sleep(self.settling).await;
        let servers = self.on.servers(std::slice::from_ref(&self.gateway));
        let before = (Counts::read(self.metrics).await?, self.log_position().await?);
        Ok(Counting { of: self, watch: Stopwatch::start(), meter: Meter::start(&servers)?, before })
    }

    /// Runs statements that return nothing.
    pub(crate) async fn execute(&self, statement: &str) -> Result<(), Failure> {
        Ok(self.database.batch_execute(statement).await?)
    }

    /// The number that a statement selects.
    pub(crate) async fn number(&self, statement: &str) -> Result<i64, Failure> {
        Ok(self.database.query_one(statement, &[]).await?.try_get(0)?)
    }

    #[expect(clippy::cast_precision_loss, reason = "a run writes far less than 2^52 bytes")]
    async fn log_position(&self) -> Result<f64, Failure> {
        Ok(self.number("SELECT (pg_current_wal_lsn() - '0/0')::bigint").await? as f64)
    }

    /// Kills the gateway, and starts it again.
    pub(crate) fn again(self) -> Result<Self, Failure> {
        let Self { on, gateway, tls, authority, metrics, database, settling } = self;
        let gateway = gateway.again(&on.program, on.folder.path())?;
        Ok(Self { on, gateway, tls, authority, metrics, database, settling })
    }
}

impl Counting<'_> {
    /// What was done since, with what settles afterwards.
    pub(crate) async fn end(self) -> Result<Cost, Failure> {
        sleep(self.of.settling).await;
        let Self { of, watch, meter, before: (before, log_before) } = self;
        let (seconds, cores) = (watch.elapsed().as_secs_f64(), meter.stop()?.cores);
        let (after, log_after) = (Counts::read(of.metrics).await?, of.log_position().await?);
        let more = |name: &str, labels: &[&str]| after.sum(name, labels) - before.sum(name, labels);
        Ok(Cost {
            seconds,
            gateway: cores["gateway"] * seconds,
            postgres: cores["postgres"] * seconds,
            requests: more("http_requests_total", &[]),
            reads: more("store_calls_total", &READS),
            commits: more("store_calls_total", &["commit"]),
            transactions: more("store_write_seconds_count", &[]),
            log_bytes: log_after - log_before,
        })
    }
}

impl Cost {
    /// Without what as long a time costs in which nothing happens, for each of so many.
    pub(crate) fn of_each(self, idle: Self, count: f64) -> Self {
        let each = |figure: fn(&Self) -> f64| {
            (figure(&self) - figure(&idle) * self.seconds / idle.seconds).max(0.0) / count
        };
        Self {
            seconds: self.seconds / count,
            gateway: each(|it| it.gateway),
            postgres: each(|it| it.postgres),
            requests: each(|it| it.requests),
            reads: each(|it| it.reads),
            commits: each(|it| it.commits),
            transactions: each(|it| it.transactions),
            log_bytes: each(|it| it.log_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_idle_node_does_is_nobodys_cost() {
        let busy = Cost { seconds: 8.0, commits: 20.0, gateway: 1.0, ..Cost::default() };
        let idle = Cost { seconds: 4.0, commits: 2.0, gateway: 1.0, ..Cost::default() };
        let each = busy.of_each(idle, 4.0);
        assert_eq!((each.commits, each.gateway), (4.0, 0.0));
    }
}
