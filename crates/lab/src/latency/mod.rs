//! Latency from a decision to its delivery, compared with the minimum possible: a bare commit and a round trip.

pub(crate) mod baseline;
pub(crate) mod ours;
mod report;

use std::time::Duration;

use countersign_testkit::postgres::Postgres;
use serde::Serialize;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::{Engine, LatencyArgs},
    cpu::{CpuUsage, Metered, to_f64},
    figures::{milliseconds, percentile},
    report_progress,
    servers::gateway,
};

pub(crate) use report::Report;

/// A rate counts as sustained if this fraction of it is reached.
const SUSTAINED: f64 = 0.98;

/// A rate that is not sustained is multiplied by this fraction.
const REDUCTION: (u64, u64) = (3, 4);
/// How many rates to try.
const MAX_TRIES: usize = 8;

/// Exchanges before the measurement: the first ones open connections and prepare statements.
const WARM_UP: u64 = 500;

/// How long to try a rate.
const TRIAL: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Ours,
    Baseline,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Baseline => "baseline",
        }
    }
}

/// The measurement of one side in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) side: Side,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Decisions that never arrived.
    pub(crate) lost: u64,
    pub(crate) cpu: CpuUsage,
    #[serde(skip)]
    pub(crate) latencies: Vec<Duration>,
}

/// The raw results of a stretch.
pub(crate) struct Timed {
    pub(crate) latencies: Vec<Duration>,
    pub(crate) published: u64,
    pub(crate) elapsed: Duration,
    pub(crate) metered: Metered,
}

/// How fast exchanges begin, for how long, and how many enforcers share them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacing {
    pub(crate) rate: u64,
    pub(crate) length: Duration,
    pub(crate) enforcers: u64,
}

/// The data of one stretch: new every time, so that every stretch starts with an empty database.
struct Place {
    folder: TempDir,
    postgres: Option<Postgres>,
}

impl Place {
    fn new(store: Engine) -> Result<Self, Failure> {
        let postgres = (store == Engine::Postgres).then(Postgres::start);
        Ok(Self { folder: TempDir::new()?, postgres })
    }
}

/// Finds a sustainable rate, then measures both sides in every round.
pub(crate) fn run(args: &LatencyArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = LatencyBench { args, program, runtime };
    let rate = bench.sustainable_rate()?;
    let mut stretches = Vec::new();
    for round in 1..=args.rounds {
        for side in [Side::Ours, Side::Baseline] {
            let timed = bench.measure(side, rate, Duration::from_secs(args.seconds))?;
            let stretch = Stretch::new(round, side, timed);
            report_progress(&format!(
                "round {round} of {}: {:8} {:6.0}/s, p50 {:.2} ms, p99 {:.2} ms, {} lost, foreign CPU {:2.0} %",
                args.rounds,
                side.name(),
                stretch.per_second,
                stretch.p50_ms,
                stretch.p99_ms,
                stretch.lost,
                stretch.cpu.foreign * 100.0
            ));
            stretches.push(stretch);
        }
    }
    Ok(Report::new(args, rate, stretches))
}

struct LatencyBench<'a> {
    args: &'a LatencyArgs,
    program: std::path::PathBuf,
    runtime: Runtime,
}

impl LatencyBench<'_> {
    fn measure(&self, side: Side, rate: u64, length: Duration) -> Result<Timed, Failure> {
        let place = Place::new(self.args.store)?;
        let pacing = Pacing { rate, length, enforcers: self.args.enforcers };
        match side {
            Side::Ours => self.ours(&place, pacing),
            Side::Baseline => self.baseline(&place, pacing),
        }
    }

    fn sustainable_rate(&self) -> Result<u64, Failure> {
        let mut rate = self.args.rate;
        for _ in 0..MAX_TRIES {
            let Timed { latencies, published, elapsed, metered } = self.measure(Side::Ours, rate, TRIAL)?;
            let reached = to_f64(published) / elapsed.as_secs_f64().max(TRIAL.as_secs_f64());
            report_progress(&format!(
                "{rate} exchanges a second: {reached:.0} reached, {} delivered, foreign CPU {:2.0} %",
                latencies.len(),
                metered.cpu.foreign * 100.0
            ));
            if reached >= to_f64(rate) * SUSTAINED {
                return Ok(rate);
            }
            rate = (rate * REDUCTION.0 / REDUCTION.1).max(1);
        }
        Err("no rate was sustained".into())
    }
}

impl Stretch {
    fn new(round: u64, side: Side, timed: Timed) -> Self {
        let Timed { mut latencies, published, elapsed, metered } = timed;
        latencies.sort_unstable();
        Self {
            round,
            side,
            per_second: to_f64(published) / elapsed.as_secs_f64(),
            p50_ms: milliseconds(percentile(&latencies, 50)),
            p99_ms: milliseconds(percentile(&latencies, 99)),
            lost: published.saturating_sub(latencies.len() as u64),
            cpu: metered.cpu,
            latencies,
        }
    }
}
