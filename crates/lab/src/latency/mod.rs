//! Latency from a decision to its delivery, compared with the minimum possible: a bare commit and a round trip.

pub(crate) mod baseline;
pub(crate) mod pacing;
pub(crate) mod route;

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::store::Store;
use countersign_store_postgres::PostgresStore;
use countersign_store_sqlite::SqliteStore;
use countersign_testkit::postgres::Postgres;
use serde::Serialize;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::{Engine, LatencyArgs},
    cpu::to_f64,
    figures::{Percentiles, Ratio, median, percent},
    report, report_progress,
    rounds::{Completed, Sample, Stretch},
    servers::gateway::{self, Gateway},
    table::headed,
};

use pacing::Pacing;
use route::Route;

const OURS: &str = "ours";
const BASELINE: &str = "baseline";

/// A rate counts as sustained if this fraction of it is reached.
const SUSTAINED: f64 = 0.98;

/// A rate that is not sustained is multiplied by this fraction.
const REDUCTION: (u64, u64) = (3, 4);
/// How many rates to try.
const MAX_TRIES: usize = 8;

/// How long to try a rate.
const TRIAL: Duration = Duration::from_secs(2);

/// How long to wait for the last decisions.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// p99, ours divided by the baseline's.
    #[serde(flatten)]
    ratio: Ratio,
    /// The highest sustained rate, in steps of a quarter.
    rate: u64,
    #[serde(flatten)]
    args: LatencyArgs,
    ours: Summary,
    baseline: Summary,
    stretches: Vec<Stretch>,
}

/// All rounds of one side, disturbed or not.
#[derive(Debug, Serialize)]
struct Summary {
    per_second: f64,
    /// Over the exchanges of all rounds.
    #[serde(flatten)]
    latency: Percentiles,
    /// Decisions that never arrived.
    lost: f64,
    foreign_cpu: f64,
}

/// Finds a sustainable rate, then measures both sides in every round.
pub(crate) fn run(args: &LatencyArgs) -> Result<Report, Failure> {
    let bench = Bench { args, program: gateway::program(args.gateway.path())?, runtime: Runtime::new()? };
    let rate = bench.sustainable_rate()?;
    let mut stretches = Vec::new();
    for round in 1..=args.timing.rounds {
        for arm in [OURS, BASELINE] {
            let sample = bench.measure(arm, rate, args.timing.length())?;
            stretches.push(Stretch::new([round, args.timing.rounds], arm, sample));
        }
    }
    let of = |arm: &'static str| stretches.iter().filter(move |stretch| stretch.arm == arm);
    let p99_of = |arm| of(arm).map(|stretch| stretch.latency.p99_ms);
    Ok(Report {
        ratio: Ratio::new(p99_of(OURS), p99_of(BASELINE)),
        rate,
        args: args.clone(),
        ours: Summary::new(&of(OURS).collect::<Vec<_>>()),
        baseline: Summary::new(&of(BASELINE).collect::<Vec<_>>()),
        stretches,
    })
}

struct Bench<'a> {
    args: &'a LatencyArgs,
    program: PathBuf,
    runtime: Runtime,
}

impl Bench<'_> {
    /// With new data, so that every stretch starts with an empty database.
    fn measure(&self, arm: &str, rate: u64, length: Duration) -> Result<Sample, Failure> {
        let folder = TempDir::new()?;
        let postgres = (self.args.store == Engine::Postgres).then(Postgres::start);
        let pacing = Pacing { rate, length, enforcers: self.args.enforcers };
        let mut servers: Vec<_> = postgres.iter().map(|postgres| ("postgres", postgres.pid())).collect();
        if arm == BASELINE {
            let store = self.runtime.block_on(open(&folder, postgres.as_ref()))?;
            return baseline::over_loopback(&self.runtime, &store, &servers, pacing);
        }
        let gateway = match &postgres {
            Some(postgres) => Gateway::on_postgres(&self.program, folder.path(), postgres)?,
            None => Gateway::on_sqlite(&self.program, folder.path())?,
        };
        servers.push(("gateway", gateway.pid()));
        let route = Route { decides: &gateway, delivers: gateway.address, arrival_timeout: ARRIVAL_TIMEOUT };
        route.measure(&self.runtime, &servers, pacing)
    }

    fn sustainable_rate(&self) -> Result<u64, Failure> {
        let mut rate = self.args.rate;
        for _ in 0..MAX_TRIES {
            let Sample { completed, metered, .. } = self.measure(OURS, rate, TRIAL)?;
            let Completed { count, elapsed, latencies } = completed;
            let reached = to_f64(count) / elapsed.max(TRIAL).as_secs_f64();
            report_progress(&format!(
                "{rate} exchanges a second: {reached:.0} reached, {} delivered, foreign CPU {}",
                latencies.len(),
                percent(metered.cpu.foreign)
            ));
            if reached >= to_f64(rate) * SUSTAINED {
                return Ok(rate);
            }
            rate = (rate * REDUCTION.0 / REDUCTION.1).max(1);
        }
        Err("no rate was sustained".into())
    }
}

/// The store of bare commits.
async fn open(folder: &TempDir, postgres: Option<&Postgres>) -> Result<Arc<dyn Store>, Failure> {
    if let Some(postgres) = postgres {
        let options = countersign_store_postgres::Options::new(postgres.url());
        return Ok(Arc::new(PostgresStore::open(options).await?));
    }
    let file = folder.path().join("bench.sqlite");
    Ok(Arc::new(SqliteStore::open(file, countersign_store_sqlite::Options::default())?))
}

impl Summary {
    fn new(rounds: &[&Stretch]) -> Self {
        let of = |figure: fn(&Stretch) -> f64| rounds.iter().map(move |stretch| figure(stretch));
        Self {
            per_second: median(of(|stretch| stretch.per_second)),
            latency: Percentiles::of(rounds.iter().flat_map(|stretch| stretch.latencies.iter().copied())),
            lost: of(|stretch| stretch.figures["missing"]).sum(),
            foreign_cpu: median(of(|stretch| stretch.cpu.foreign)),
        }
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let row = |(name, summary): (&str, &Summary)| {
            [
                name.to_owned(),
                format!("{:.0}", summary.per_second),
                format!("{:.2}", summary.latency.p50_ms),
                format!("{:.2}", summary.latency.p99_ms),
                summary.lost.to_string(),
                percent(summary.foreign_cpu),
            ]
        };
        let sides = [("ours", &self.ours), ("bare commit and round trip", &self.baseline)];
        let mut lines = headed(["", "exchanges/s", "p50", "p99", "lost", "foreign"], sides.map(row), 1);
        let LatencyArgs { timing, rate: asked, enforcers, store, .. } = &self.args;
        let reduced = match self.rate == *asked {
            true => String::new(),
            false => format!(" ({asked} was not sustained)"),
        };
        lines.push(format!(
            "\nratio of p99 {:.2}; {store:?}, {} exchanges a second{reduced}, {enforcers} enforcers on WebSockets, {} rounds \
             of {} s each; latencies in ms",
            self.ratio.median, self.rate, timing.rounds, timing.seconds
        ));
        lines.join("\n")
    }
}
