//! Submissions over HTTP, compared with bare INSERTs of the same bytes on the same PostgreSQL, and with a driver that does
//! nothing but batch them.

mod batching;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use serde::Serialize;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::{LoadArgs, SubmitArgs},
    clients::{
        callers::keep_in_flight,
        messages,
        template::{Submission, filling, submitter},
    },
    figures::Ratio,
    report,
    rounds::{self, Completed, Rounds, Sample},
    servers::{bare::Bare, gateway::Gateway, on_postgres::OnPostgres},
};

const OURS: &str = "ours";
const INSERT_8: &str = "INSERT, 8 clients";
const INSERT_64: &str = "INSERT, 64 clients";
const BATCHING: &str = "batching driver";

/// How long to submit before the first round: the first submissions open connections and prepare statements.
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Submissions a second, ours divided by the better INSERT.
    #[serde(flatten)]
    ratio: Ratio,
    better_insert: &'static str,
    /// Submissions a second, ours divided by those of the batching driver.
    share_of_batching: f64,
    #[serde(flatten)]
    args: SubmitArgs,
    #[serde(flatten)]
    rounds: Rounds,
}

pub(crate) fn run(args: &SubmitArgs) -> Result<Report, Failure> {
    let on = OnPostgres::start(&args.load.gateway)?;
    let (runtime, gateway) = (Runtime::new()?, on.gateway()?);
    let bare = Bare::new(&runtime, &on.postgres, include_str!("../../baselines/submit_table.sql"))?;
    let content = filling(args.load.bytes).into();
    let bench = Bench { args, gateway: &gateway, bare, content, next: Arc::default() };
    bench.ours(WARM_UP)?;
    let servers = on.servers(std::slice::from_ref(&gateway));
    let rounds = rounds::measure(args.load.timing.rounds, &[OURS, INSERT_8, INSERT_64, BATCHING], |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        Sample::measure(&servers, || bench.run(arm, &runtime))
    })?;
    let better_insert = rounds.faster(INSERT_8, INSERT_64);
    Ok(Report {
        ratio: rounds.ratio(OURS, better_insert, |stretch| stretch.per_second),
        better_insert,
        share_of_batching: rounds.ratio(OURS, BATCHING, |stretch| stretch.per_second).median,
        args: args.clone(),
        rounds,
    })
}

struct Bench<'a> {
    args: &'a SubmitArgs,
    gateway: &'a Gateway,
    bare: Bare<'a>,
    /// As long as the body of a submission.
    content: Arc<str>,
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    fn run(&self, arm: &'static str, runtime: &Runtime) -> Result<Completed, Failure> {
        let LoadArgs { timing, in_flight, .. } = self.args.load;
        let Self { bare, content, next, .. } = self;
        let pgbench = |clients| {
            let script = include_str!("../../baselines/submit.sql");
            bare.pgbench(script, clients, timing.length(), &[("content", content)])
        };
        match arm {
            OURS => self.ours(timing.length()),
            INSERT_8 => pgbench(8),
            INSERT_64 => pgbench(64),
            _ => runtime.block_on(batching::run(bare, content, next, in_flight, timing.length())),
        }
    }

    fn ours(&self, length: Duration) -> Result<Completed, Failure> {
        let SubmitArgs { load, approvers, enforcers } = self.args;
        keep_in_flight(load.in_flight, length, async |caller| {
            let (enforcer, approver) =
                (messages::enforcer(caller % enforcers), messages::approver(caller % approvers));
            let submission = Submission::new(&self.gateway.enforcer_key, &enforcer, &approver, load.bytes);
            submitter(self.gateway.address, submission, &self.next).await
        })
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let LoadArgs { timing, in_flight, bytes, .. } = &self.args.load;
        let mut lines = self.rounds.table("submissions/s");
        lines.extend(self.rounds.plot("submissions a second", |stretch| stretch.per_second));
        lines.push(format!(
            "\nratio {:.2} of {} (goal: at least 1.0), {:.2} of the batching driver\n{in_flight} in flight, {bytes} B each, \
             {} rounds of {} s that count; client, gateway and postgres: processors that each was busy on",
            self.ratio.median,
            self.better_insert,
            self.share_of_batching,
            self.rounds.counted,
            timing.seconds
        ));
        lines.join("\n")
    }
}
