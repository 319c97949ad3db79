//! Whole exchanges through a gateway, compared with their bare statements on the same PostgreSQL.

mod caller;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use serde::Serialize;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::LoadArgs,
    clients::{callers::keep_in_flight, template::filling},
    figures::Ratio,
    report,
    rounds::{self, Completed, Rounds, Sample},
    servers::{bare::Bare, gateway::Gateway, on_postgres::OnPostgres},
};

use caller::Caller;

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

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Exchanges a second, ours divided by the statements one by one at the better number of clients.
    #[serde(flatten)]
    ratio: Ratio,
    better_statements: &'static str,
    /// The same, compared with one transaction for each step.
    ratio_to_transactions: f64,
    #[serde(flatten)]
    args: LoadArgs,
    #[serde(flatten)]
    rounds: Rounds,
}

pub(crate) fn run(args: &LoadArgs) -> Result<Report, Failure> {
    let on = OnPostgres::start(&args.gateway)?;
    let (runtime, gateway) = (Runtime::new()?, on.gateway()?);
    let bare = Bare::new(&runtime, &on.postgres, include_str!("../../baselines/exchange_tables.sql"))?;
    let bench = Bench { args, gateway: &gateway, bare, next: Arc::default() };
    bench.ours(WARM_UP)?;
    let servers = on.servers(std::slice::from_ref(&gateway));
    let rounds = rounds::measure(args.timing.rounds, &ARMS, |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        Sample::measure(&servers, || bench.run(arm))
    })?;
    let better_statements = rounds.faster(STATEMENTS_8, STATEMENTS_64);
    let transactions = rounds.faster(TRANSACTIONS_8, TRANSACTIONS_64);
    Ok(Report {
        ratio: rounds.ratio(OURS, better_statements, |stretch| stretch.per_second),
        better_statements,
        ratio_to_transactions: rounds.ratio(OURS, transactions, |stretch| stretch.per_second).median,
        args: args.clone(),
        rounds,
    })
}

struct Bench<'a> {
    args: &'a LoadArgs,
    gateway: &'a Gateway,
    bare: Bare<'a>,
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    fn run(&self, arm: &'static str) -> Result<Completed, Failure> {
        let length = self.args.timing.length();
        let statements = include_str!("../../baselines/exchange.sql");
        let transactions = include_str!("../../baselines/exchange_transactions.sql");
        match arm {
            OURS => self.ours(length),
            STATEMENTS_8 => self.pgbench(statements, 8, length),
            STATEMENTS_64 => self.pgbench(statements, 64, length),
            TRANSACTIONS_8 => self.pgbench(transactions, 8, length),
            _ => self.pgbench(transactions, 64, length),
        }
    }

    fn ours(&self, length: Duration) -> Result<Completed, Failure> {
        keep_in_flight(self.args.in_flight, length, async |number| {
            let mut caller = Caller::open(self.gateway, number, self.args.bytes).await?;
            let next = Arc::clone(&self.next);
            Ok(async move || caller.exchange(&next).await)
        })
    }

    fn pgbench(&self, script: &str, clients: u64, length: Duration) -> Result<Completed, Failure> {
        let [content, record, decision, event] =
            [self.args.bytes, RECORD_BYTES, DECISION_BYTES, EVENT_BYTES].map(filling);
        let variables =
            [("content", &*content), ("record", &record), ("decision", &decision), ("event", &event)];
        self.bare.pgbench(script, clients, length, &variables)
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let LoadArgs { timing, in_flight, bytes, .. } = &self.args;
        let mut lines = self.rounds.table("exchanges/s");
        lines.extend(self.rounds.plot("exchanges a second", |stretch| stretch.per_second));
        lines.push(format!(
            "\nratio {:.2} of {} (goal: at least 1.0), {:.2} of one transaction for each step\n{in_flight} in flight, \
             {bytes} B each, {} rounds of {} s that count; client, gateway and postgres: processors that each was busy on",
            self.ratio.median,
            self.better_statements,
            self.ratio_to_transactions,
            self.rounds.counted,
            timing.seconds
        ));
        lines.join("\n")
    }
}
