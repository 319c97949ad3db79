//! Large submissions, compared with bare inserts of as many bytes on the same PostgreSQL; and the memory that they cost.

mod report;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
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
    args::PayloadArgs,
    clients::{
        callers::{Completed, keep_in_flight},
        keep_alive::KeepAlive,
        messages,
        template::{Submission, filling},
    },
    cpu::{Meter, to_f64},
    report_progress, rounds,
    rounds::Sample,
    servers::{
        bare::{Bare, DEFAULTS},
        gateway::{self, Gateway},
        resident,
    },
    workload::scattered,
};

pub(crate) use report::Report;

const OURS: &str = "ours";
const BARE: &str = "bare bytea";

const INSERT: &str = "INSERT INTO large (id, content) VALUES ($1, $2)";

/// Submissions of 4 KB before a stretch: they open the gateway's connections, so that idle memory includes them.
const SMALL: u64 = 64;
const SMALL_BYTES: usize = 4_096;

pub(crate) fn run(args: &PayloadArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    report_progress("starting a private PostgreSQL");
    // The server outlives the runtime and its connections.
    let postgres = Postgres::start_with(DEFAULTS);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bare = Bare::new(&runtime, &postgres, include_str!("../../baselines/payload_table.sql"))?;
    let bench =
        Bench { args, program, postgres: &postgres, bare, folder: TempDir::new()?, next: Arc::default() };
    let rounds = rounds::measure(args.rounds, &[OURS, BARE], |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        match arm {
            OURS => bench.ours(),
            _ => bench.bare(&runtime),
        }
    })?;
    Ok(Report::new(args, rounds))
}

struct Bench<'a> {
    args: &'a PayloadArgs,
    program: PathBuf,
    postgres: &'a Postgres,
    bare: Bare<'a>,
    folder: TempDir,
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    /// Over a new gateway each time, because memory that was used once is seldom returned.
    fn ours(&self) -> Result<Sample, Failure> {
        let gateway = Gateway::on_postgres(&self.program, self.folder.path(), self.postgres)?;
        let in_flight = self.args.in_flight;
        let submit = |callers: u64, bytes: usize, length: Duration| {
            keep_in_flight(callers, length, async |caller| {
                let (enforcer, approver) = (messages::enforcer(caller), messages::approver(caller));
                let mut submission = Submission::new(&gateway.enforcer_key, &enforcer, &approver, bytes);
                let mut connection = KeepAlive::open(gateway.address).await?;
                let next = Arc::clone(&self.next);
                Ok(async move || {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    connection.call_successfully(submission.with_number(number)).await?;
                    Ok(())
                })
            })
        };
        submit(SMALL, SMALL_BYTES, Duration::from_millis(300))?;
        let idle = resident(&[gateway.pid()])?.rss;
        let meter = Meter::start(&[("gateway", gateway.pid()), ("postgres", self.postgres.pid())])?;
        let Completed { latencies, elapsed } =
            submit(in_flight, self.args.bytes, Duration::from_secs(self.args.seconds))?;
        let metered = meter.stop()?;
        let peak = peak_resident(gateway.pid())?;
        let memory = to_f64(peak.saturating_sub(idle)) / 1e6 / to_f64(in_flight);
        let figures = BTreeMap::from([
            ("MB/s", self.megabytes_per_second(latencies.len(), elapsed)),
            ("idle MB", to_f64(idle) / 1e6),
            ("peak MB", to_f64(peak) / 1e6),
            ("MB/upload", memory),
        ]);
        Ok(Sample { count: latencies.len() as u64, elapsed, latencies, metered, figures })
    }

    fn bare(&self, runtime: &Runtime) -> Result<Sample, Failure> {
        let content = filling(self.args.bytes).into_bytes();
        let meter = Meter::start(&[("postgres", self.postgres.pid())])?;
        let length = Duration::from_secs(self.args.seconds);
        let Completed { latencies, elapsed } = keep_in_flight(self.args.in_flight, length, async |_| {
            // On the runtime of several threads, so that connections don't wait for the thread of the callers.
            let client = runtime.spawn(self.bare.connect()).await??;
            let insert = client.prepare(INSERT).await?;
            let (next, content) = (Arc::clone(&self.next), content.clone());
            Ok(async move || {
                let id = scattered(next.fetch_add(1, Ordering::Relaxed)).cast_signed();
                client.execute(&insert, &[&id, &content]).await?;
                Ok(())
            })
        })?;
        let metered = meter.stop()?;
        let figures = BTreeMap::from([("MB/s", self.megabytes_per_second(latencies.len(), elapsed))]);
        Ok(Sample { count: latencies.len() as u64, elapsed, latencies, metered, figures })
    }

    fn megabytes_per_second(&self, count: usize, elapsed: Duration) -> f64 {
        to_f64(count as u64) * to_f64(self.args.bytes as u64) / 1e6 / elapsed.as_secs_f64()
    }
}

/// The largest resident set that the process has had, in bytes.
fn peak_resident(process: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmHWM in /proc")?;
    Ok(kib.parse::<u64>()? * 1_024)
}
