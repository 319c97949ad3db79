//! Whole exchanges through a gateway, compared with their bare statements on the same PostgreSQL.

mod caller;
mod report;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use countersign_testkit::postgres::Postgres;
use tempfile::TempDir;

use crate::{
    Failure,
    args::ExchangeArgs,
    clients::{
        callers::{Completed, keep_in_flight},
        template::filling,
    },
    cpu::Meter,
    report_progress, rounds,
    rounds::Sample,
    servers::{
        bare::{Bare, DEFAULTS},
        gateway::{self, Gateway},
    },
};

use caller::Caller;
pub(crate) use report::Report;

const OURS: &str = "ours";
const STATEMENTS_8: &str = "statements, 8 clients";
const STATEMENTS_64: &str = "statements, 64 clients";
const TRANSACTIONS_8: &str = "3 transactions, 8 clients";
const TRANSACTIONS_64: &str = "3 transactions, 64 clients";

const ARMS: [&str; 5] = [OURS, STATEMENTS_8, STATEMENTS_64, TRANSACTIONS_8, TRANSACTIONS_64];

/// Sizes of what the gateway stores of an exchange beside its ciphertext: its record, the decision, an audit row.
const RECORD_BYTES: usize = 350;
const DECISION_BYTES: usize = 500;
const EVENT_BYTES: usize = 150;

/// How long to exchange before the first round: the first ones prepare statements.
const WARM_UP: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ExchangeArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    report_progress("starting a private PostgreSQL");
    // The server outlives the runtime and its connections.
    let postgres = Postgres::start_with(DEFAULTS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = TempDir::new()?;
    let gateway = Gateway::on_postgres(&program, folder.path(), &postgres)?;
    let bare = Bare::new(&runtime, &postgres, include_str!("../../baselines/exchange_tables.sql"))?;
    let servers = [("gateway", gateway.pid()), ("postgres", postgres.pid())];
    let bench = Bench { args, gateway, bare, servers, next: Arc::default() };
    bench.ours(WARM_UP)?;
    let rounds = rounds::measure(args.rounds, &ARMS, |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        bench.measure(arm)
    })?;
    Ok(Report::new(args, rounds))
}

struct Bench<'a> {
    args: &'a ExchangeArgs,
    gateway: Gateway,
    bare: Bare<'a>,
    servers: [(&'static str, u32); 2],
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    fn measure(&self, arm: &'static str) -> Result<Sample, Failure> {
        let length = Duration::from_secs(self.args.seconds);
        let statements = include_str!("../../baselines/exchange.sql");
        let transactions = include_str!("../../baselines/exchange_transactions.sql");
        let meter = Meter::start(&self.servers)?;
        let (count, elapsed, latencies) = match arm {
            OURS => {
                let Completed { latencies, elapsed } = self.ours(length)?;
                (latencies.len() as u64, elapsed, latencies)
            }
            STATEMENTS_8 => self.pgbench(statements, 8, length)?,
            STATEMENTS_64 => self.pgbench(statements, 64, length)?,
            TRANSACTIONS_8 => self.pgbench(transactions, 8, length)?,
            _ => self.pgbench(transactions, 64, length)?,
        };
        let metered = meter.stop()?;
        Ok(Sample { count, elapsed, latencies, metered, figures: BTreeMap::new() })
    }

    fn ours(&self, length: Duration) -> Result<Completed, Failure> {
        keep_in_flight(self.args.in_flight, length, async |number| {
            let mut caller = Caller::open(&self.gateway, number, self.args.bytes).await?;
            let next = Arc::clone(&self.next);
            Ok(async move || caller.exchange(&next).await)
        })
    }

    fn pgbench(
        &self,
        script: &str,
        clients: u64,
        length: Duration,
    ) -> Result<(u64, Duration, Vec<Duration>), Failure> {
        let [content, record, decision, event] =
            [self.args.bytes, RECORD_BYTES, DECISION_BYTES, EVENT_BYTES].map(filling);
        let variables =
            [("content", &*content), ("record", &record), ("decision", &decision), ("event", &event)];
        let done = self.bare.pgbench(script, clients, length, &variables)?;
        Ok((done.count, done.elapsed, Vec::new()))
    }
}
