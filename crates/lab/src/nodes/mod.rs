//! Latency from a decision on one node to its delivery by another, compared with a bare commit and a bare NATS round trip;
//! and with NATS stopped.

mod baseline;
mod report;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use countersign_testkit::{nats::Nats, postgres::Postgres};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::NodesArgs,
    cpu::to_f64,
    figures::milliseconds,
    latency::{Pacing, Timed, ours::Route},
    report_progress, rounds,
    rounds::{Rounds, Sample},
    servers::gateway::{self, Gateway},
};

pub(crate) use report::Report;

const OURS: &str = "ours";
const BARE: &str = "bare commit and NATS";
const STOPPED: &str = "ours, NATS stopped";

/// How long to wait for the last decisions while NATS carries rings.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(6);

/// The same without NATS: nodes compare their mailboxes with the store every 5 s.
const COMPARISON_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn run(args: &NodesArgs) -> Result<Report, Failure> {
    let program = gateway::program(args.gateway.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench { args, program, runtime };
    let mut of_rates = Vec::new();
    for rate in &args.rate {
        report_progress(&format!("{rate} exchanges a second"));
        of_rates.push((*rate, bench.rounds(*rate)?));
    }
    let stopped = bench.stopped()?;
    Ok(Report::new(args, of_rates, stopped))
}

struct Bench<'a> {
    args: &'a NodesArgs,
    program: PathBuf,
    runtime: Runtime,
}

/// New servers for each stretch.
struct Place {
    folder: TempDir,
    postgres: Postgres,
    nats: Nats,
}

impl Place {
    fn new() -> Result<Self, Failure> {
        Ok(Self { folder: TempDir::new()?, postgres: Postgres::start(), nats: Nats::start() })
    }
}

impl Bench<'_> {
    fn rounds(&self, rate: u64) -> Result<Rounds, Failure> {
        rounds::measure(self.args.rounds, &[OURS, BARE], |arm| {
            let place = Place::new()?;
            let pacing = self.pacing(rate, self.args.seconds);
            let timed = match arm {
                OURS => self.ours(&place, pacing, ARRIVAL_TIMEOUT)?,
                _ => baseline::measure(&self.runtime, &place, pacing)?,
            };
            Ok(sample(timed))
        })
    }

    /// One stretch: what matters is that everything arrives, and when.
    fn stopped(&self) -> Result<Rounds, Failure> {
        let rate = self.args.rate.iter().copied().min().unwrap_or(1);
        rounds::measure(1, &[STOPPED], |_| {
            let mut place = Place::new()?;
            place.nats.stop();
            Ok(sample(self.ours(&place, self.pacing(rate, self.args.seconds), COMPARISON_TIMEOUT)?))
        })
    }

    fn pacing(&self, rate: u64, seconds: u64) -> Pacing {
        Pacing { rate, length: Duration::from_secs(seconds), enforcers: self.args.enforcers }
    }

    fn ours(&self, place: &Place, pacing: Pacing, arrival_timeout: Duration) -> Result<Timed, Failure> {
        let Place { folder, postgres, nats } = place;
        let (folder, more) = (folder.path(), doorbell(&nats.url()));
        let decides = Gateway::on_postgres_with(&self.program, folder, postgres, &more)?;
        let delivers = decides.another_node(&self.program, folder)?;
        let mut servers =
            vec![("gateway", decides.pid()), ("gateway", delivers.pid()), ("postgres", postgres.pid())];
        servers.extend(nats.pid().map(|server| ("nats", server)));
        let route = Route { decides: &decides, delivers: delivers.address, arrival_timeout };
        route.measure(&self.runtime, &servers, pacing)
    }
}

/// The part of a node's configuration that names NATS.
fn doorbell(url: &str) -> String {
    format!("[doorbell]\nkind = \"nats\"\nurl = \"{url}\"\n")
}

fn sample(timed: Timed) -> Sample {
    let Timed { latencies, published, elapsed, metered } = timed;
    let slowest = latencies.iter().max().copied().unwrap_or_default();
    let figures = BTreeMap::from([
        ("slowest ms", milliseconds(slowest)),
        ("missing", to_f64(published.saturating_sub(latencies.len() as u64))),
    ]);
    Sample { count: published, elapsed, latencies, metered, figures }
}
