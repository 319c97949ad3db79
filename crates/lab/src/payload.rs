//! Large submissions, compared with bare inserts of as many bytes on the same PostgreSQL; and the memory that they cost.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::LoadArgs,
    clients::{
        callers::keep_in_flight,
        messages,
        template::{Submission, filling, submitter},
    },
    cpu::to_f64,
    figures::Ratio,
    report,
    rounds::{self, Completed, Rounds, Sample},
    servers::{bare::Bare, on_postgres::OnPostgres, resident},
    workload::scattered,
};

const OURS: &str = "ours";
const BARE: &str = "bare bytea";

const INSERT: &str = "INSERT INTO large (id, content) VALUES ($1, $2)";

/// Submissions of 4 KB before a stretch: they open the gateway's connections, so that idle memory includes them.
const SMALL: u64 = 64;
const SMALL_BYTES: usize = 4_096;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Bytes a second, ours divided by those of the bare engine.
    #[serde(flatten)]
    ratio: Ratio,
    /// The gateway's peak minus its idle resident memory, divided by the uploads in flight: the largest of the rounds.
    megabytes_per_upload: f64,
    #[serde(flatten)]
    args: LoadArgs,
    #[serde(flatten)]
    rounds: Rounds,
}

pub(crate) fn run(args: &LoadArgs) -> Result<Report, Failure> {
    let on = OnPostgres::start(&args.gateway)?;
    let runtime = Runtime::new()?;
    let bare = Bare::new(&runtime, &on.postgres, include_str!("../baselines/payload_table.sql"))?;
    let bench = Bench { args, on: &on, bare, next: Arc::default() };
    let rounds = rounds::measure(args.timing.rounds, &[OURS, BARE], |arm| {
        runtime.block_on(bench.bare.checkpoint())?;
        let mut sample = if arm == OURS { bench.ours()? } else { bench.bare(&runtime)? };
        let Completed { count, elapsed, .. } = sample.completed;
        let megabytes = to_f64(count) * to_f64(args.bytes as u64) / 1e6;
        sample.figures.insert("MB/s", megabytes / elapsed.as_secs_f64());
        Ok(sample)
    })?;
    let ours = rounds.stretches.iter().filter(|stretch| stretch.arm == OURS);
    Ok(Report {
        ratio: rounds.ratio(OURS, BARE, |stretch| stretch.figures["MB/s"]),
        megabytes_per_upload: ours.map(|stretch| stretch.figures["MB/upload"]).fold(0.0, f64::max),
        args: args.clone(),
        rounds,
    })
}

struct Bench<'a> {
    args: &'a LoadArgs,
    on: &'a OnPostgres,
    bare: Bare<'a>,
    next: Arc<AtomicU64>,
}

impl Bench<'_> {
    /// Over a new gateway each time, because memory that was used once is seldom returned.
    fn ours(&self) -> Result<Sample, Failure> {
        let LoadArgs { timing, in_flight, bytes, .. } = *self.args;
        let gateway = self.on.gateway()?;
        let submit = |callers: u64, bytes: usize, length: Duration| {
            keep_in_flight(callers, length, async |caller| {
                let (enforcer, approver) = (messages::enforcer(caller), messages::approver(caller));
                let submission = Submission::new(&gateway.enforcer_key, &enforcer, &approver, bytes);
                submitter(gateway.address, submission, &self.next).await
            })
        };
        submit(SMALL, SMALL_BYTES, Duration::from_millis(300))?;
        let idle = resident(&[gateway.pid()])?.rss;
        let servers = self.on.servers(std::slice::from_ref(&gateway));
        let mut sample = Sample::measure(&servers, || submit(in_flight, bytes, timing.length()))?;
        let peak = peak_resident(gateway.pid())?;
        let [idle_mb, peak_mb] = [idle, peak].map(|bytes| to_f64(bytes) / 1e6);
        let memory = to_f64(peak.saturating_sub(idle)) / 1e6 / to_f64(in_flight);
        sample.figures.extend([("idle MB", idle_mb), ("peak MB", peak_mb), ("MB/upload", memory)]);
        Ok(sample)
    }

    fn bare(&self, runtime: &Runtime) -> Result<Sample, Failure> {
        let LoadArgs { timing, in_flight, bytes, .. } = *self.args;
        let content = filling(bytes).into_bytes();
        Sample::measure(&self.on.servers(&[]), || {
            keep_in_flight(in_flight, timing.length(), async |_| {
                // On the runtime of several threads, so that connections don't wait for the thread of the callers.
                let client = runtime.spawn(self.bare.connect()).await??;
                let insert = client.prepare(INSERT).await?;
                let (next, content) = (Arc::clone(&self.next), content.clone());
                Ok(async move || {
                    let id = scattered(next.fetch_add(1, Ordering::Relaxed)).cast_signed();
                    client.execute(&insert, &[&id, &content]).await?;
                    Ok(())
                })
            })
        })
    }
}

/// The largest resident set that the process has had, in bytes.
fn peak_resident(process: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmHWM in /proc")?;
    Ok(kib.parse::<u64>()? * 1_024)
}

impl report::Report for Report {
    fn table(&self) -> String {
        let LoadArgs { timing, in_flight, bytes, .. } = &self.args;
        let mut lines = self.rounds.table("uploads/s");
        lines.extend(self.rounds.plot("MB a second", |stretch| stretch.figures["MB/s"]));
        let of = |arm, figure| self.rounds.median(arm, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "\nratio {:.2} ({:.0} and {:.0} MB/s; goal: at least 0.5), memory {:.1} MB for each upload in flight (goal: at most \
             6; {:.0} MB idle, {:.0} MB at its peak)\n{in_flight} in flight, {bytes} B each, {} rounds of {} s that count",
            self.ratio.median,
            of(OURS, "MB/s"),
            of(BARE, "MB/s"),
            self.megabytes_per_upload,
            of(OURS, "idle MB"),
            of(OURS, "peak MB"),
            self.rounds.counted,
            timing.seconds
        ));
        lines.join("\n")
    }
}
