//! From a decision to its delivery, beside the least that it could take: a bare commit and a round trip.

mod baseline;
mod ours;
mod report;

use std::time::Duration;

use countersign_testkit::postgres::Postgres;
use serde::Serialize;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::{LatencyArgs, StoreKind},
    cpu::{Shares, to_f64},
    figures::{milliseconds, percentile},
    servers::gateway,
    tell,
};

pub(crate) use report::Report;

/// A rate holds if so much of it is reached.
const HOLDS: f64 = 0.98;

/// One that does not hold is taken down by this, until it does, at most so often.
const EASE: (u64, u64) = (3, 4);
const TRIES: usize = 8;

/// Exchanges before the watch starts: connections and statements are made by the first ones.
const WARM_UP: u64 = 500;

/// How long a rate is tried.
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

/// One side's turn in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) side: Side,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Decisions that never arrived.
    pub(crate) lost: u64,
    pub(crate) cpu: Shares,
    #[serde(skip)]
    pub(crate) latencies: Vec<Duration>,
}

/// What a stretch came to.
struct Timed {
    latencies: Vec<Duration>,
    published: u64,
    elapsed: Duration,
    cpu: Shares,
}

/// Where one stretch keeps its data: new every time, so that every stretch meets the same.
struct Place {
    folder: TempDir,
    postgres: Option<Postgres>,
}

impl Place {
    fn new(store: StoreKind) -> Result<Self, Failure> {
        let postgres = (store == StoreKind::Postgres).then(Postgres::start);
        Ok(Self { folder: TempDir::new()?, postgres })
    }
}

/// Runs every round.
pub(crate) fn run(args: &LatencyArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench { args, program, runtime };
    let rate = bench.rate_that_holds()?;
    let mut stretches = Vec::new();
    for round in 1..=args.rounds {
        for side in [Side::Ours, Side::Baseline] {
            let timed = bench.turn(side, rate, Duration::from_secs(args.seconds))?;
            let stretch = Stretch::new(round, side, timed);
            tell(&format!(
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

struct Bench<'a> {
    args: &'a LatencyArgs,
    program: std::path::PathBuf,
    runtime: Runtime,
}

impl Bench<'_> {
    fn turn(&self, side: Side, rate: u64, length: Duration) -> Result<Timed, Failure> {
        let place = Place::new(self.args.store)?;
        match side {
            Side::Ours => self.ours(&place, rate, length),
            Side::Baseline => self.baseline(&place, rate, length),
        }
    }

    fn rate_that_holds(&self) -> Result<u64, Failure> {
        let mut rate = self.args.rate;
        for _ in 0..TRIES {
            let Timed { latencies, published, elapsed, cpu } = self.turn(Side::Ours, rate, TRIAL)?;
            let reached = to_f64(published) / elapsed.as_secs_f64().max(TRIAL.as_secs_f64());
            tell(&format!(
                "{rate} exchanges a second: {reached:.0} reached, {} delivered, foreign CPU {:2.0} %",
                latencies.len(),
                cpu.foreign * 100.0
            ));
            if reached >= to_f64(rate) * HOLDS {
                return Ok(rate);
            }
            rate = (rate * EASE.0 / EASE.1).max(1);
        }
        Err("no rate holds".into())
    }
}

impl Stretch {
    fn new(round: u64, side: Side, timed: Timed) -> Self {
        let Timed { mut latencies, published, elapsed, cpu } = timed;
        latencies.sort_unstable();
        Self {
            round,
            side,
            per_second: to_f64(published) / elapsed.as_secs_f64(),
            p50_ms: milliseconds(percentile(&latencies, 50)),
            p99_ms: milliseconds(percentile(&latencies, 99)),
            lost: published.saturating_sub(latencies.len() as u64),
            cpu,
            latencies,
        }
    }
}
