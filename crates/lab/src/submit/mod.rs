//! Submissions over HTTP, compared with bare INSERTs of the same bytes on the same PostgreSQL, and with a driver that does
//! nothing but batch them.

mod batching;
mod report;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_testkit::postgres::Postgres;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::SubmitArgs,
    clients::{
        callers::{Completed, keep_in_flight},
        keep_alive::KeepAlive,
        messages,
        template::{Submission, filling},
    },
    cpu::Meter,
    report_progress, rounds,
    rounds::Sample,
    servers::{
        bare::{Bare, DEFAULTS},
        gateway::{self, Gateway},
    },
};

pub(crate) use report::Report;

const OURS: &str = "ours";
const INSERT_8: &str = "INSERT, 8 clients";
const INSERT_64: &str = "INSERT, 64 clients";
const BATCHING: &str = "batching driver";

/// How long to submit before the first round: the first submissions open connections and prepare statements.
const WARM_UP: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &SubmitArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    report_progress("starting a private PostgreSQL");
    // The server outlives the runtime and its connections.
    let postgres = Postgres::start_with(DEFAULTS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench::new(args, &program, &postgres, &runtime)?;
    keep_in_flight(args.in_flight, WARM_UP, async |caller| bench.caller(caller).await)?;
    let rounds = rounds::measure(args.rounds, &[OURS, INSERT_8, INSERT_64, BATCHING], |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        bench.measure(arm, &runtime)
    })?;
    Ok(Report::new(args, rounds))
}

struct Bench<'a> {
    args: &'a SubmitArgs,
    gateway: Gateway,
    _folder: TempDir,
    bare: Bare<'a>,
    servers: [(&'static str, u32); 2],
    /// As long as the body of a submission.
    content: Arc<str>,
    next: Arc<AtomicU64>,
}

impl<'a> Bench<'a> {
    fn new(
        args: &'a SubmitArgs,
        program: &Path,
        postgres: &'a Postgres,
        runtime: &Runtime,
    ) -> Result<Self, Failure> {
        let folder = TempDir::new()?;
        let gateway = Gateway::on_postgres(program, folder.path(), postgres)?;
        let bare = Bare::new(runtime, postgres, include_str!("../../baselines/submit_table.sql"))?;
        let servers = [("gateway", gateway.pid()), ("postgres", postgres.pid())];
        let content = filling(args.bytes).into();
        Ok(Self { args, gateway, _folder: folder, bare, servers, content, next: Arc::default() })
    }

    fn measure(&self, arm: &'static str, runtime: &Runtime) -> Result<Sample, Failure> {
        let length = Duration::from_secs(self.args.seconds);
        let meter = Meter::start(&self.servers)?;
        let pgbench = |clients| {
            let script = include_str!("../../baselines/submit.sql");
            self.bare.pgbench(script, clients, length, &[("content", &self.content)])
        };
        let (count, elapsed, latencies) = match arm {
            OURS | BATCHING => {
                let Completed { latencies, elapsed } = match arm {
                    OURS => {
                        let make = async |caller| self.caller(caller).await;
                        keep_in_flight(self.args.in_flight, length, make)?
                    }
                    _ => runtime.block_on(batching::run(self, length))?,
                };
                (latencies.len() as u64, elapsed, latencies)
            }
            _ => {
                let done = pgbench(if arm == INSERT_8 { 8 } else { 64 })?;
                (done.count, done.elapsed, Vec::new())
            }
        };
        let metered = meter.stop()?;
        Ok(Sample { count, elapsed, latencies, metered, figures: BTreeMap::new() })
    }

    /// One of the callers: an enforcer with a connection of its own.
    async fn caller(&self, caller: u64) -> Result<impl AsyncFnMut() -> Result<(), Failure> + use<>, Failure> {
        let mut connection = KeepAlive::open(self.gateway.address).await?;
        let enforcer = messages::enforcer(caller % self.args.enforcers);
        let approver = messages::approver(caller % self.args.approvers);
        let key = &self.gateway.enforcer_key;
        let mut submission = Submission::new(key, &enforcer, &approver, self.args.bytes);
        let next = Arc::clone(&self.next);
        Ok(async move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            connection.call_successfully(submission.with_number(number)).await?;
            Ok(())
        })
    }
}
