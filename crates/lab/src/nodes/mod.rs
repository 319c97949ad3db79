//! Latency from a decision on one node to its delivery by another, compared with a bare commit and a bare NATS round trip;
//! and with NATS stopped.

mod baseline;

use std::{path::PathBuf, time::Duration};

use countersign_testkit::{nats::Nats, postgres::Postgres};
use serde::Serialize;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    args::NodesArgs,
    figures::Ratio,
    latency::{pacing::Pacing, route::Route},
    report, report_progress,
    rounds::{self, Rounds, Sample},
    servers::gateway::{self, Gateway},
};

const OURS: &str = "ours";
const BARE: &str = "bare commit and NATS";
const STOPPED: &str = "ours, NATS stopped";

/// How long to wait for the last decisions while NATS carries rings.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(6);

/// The same without NATS: nodes compare their mailboxes with the store every 5 s.
const COMPARISON_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// p99, ours divided by the baseline's, at the first rate: the median of the rounds.
    ratio: f64,
    rates: Vec<AtRate>,
    nats_stopped: Rounds,
    #[serde(flatten)]
    args: NodesArgs,
}

/// Both sides at one rate.
#[derive(Debug, Serialize)]
struct AtRate {
    rate: u64,
    /// p99, ours divided by the baseline's.
    #[serde(flatten)]
    ratio: Ratio,
    #[serde(flatten)]
    rounds: Rounds,
}

pub(crate) fn run(args: &NodesArgs) -> Result<Report, Failure> {
    let bench = Bench { args, program: gateway::program(args.gateway.path())?, runtime: Runtime::new()? };
    let at_rate = |rate: &u64| -> Result<AtRate, Failure> {
        report_progress(&format!("{rate} exchanges a second"));
        let rounds = rounds::measure(args.timing.rounds, &[OURS, BARE], |arm| bench.measure(arm, *rate))?;
        let ratio = rounds.ratio(OURS, BARE, |stretch| stretch.latency.p99_ms);
        Ok(AtRate { rate: *rate, ratio, rounds })
    };
    let rates = args.rate.iter().map(at_rate).collect::<Result<Vec<_>, _>>()?;
    // One stretch: what matters is that everything arrives, and when.
    let slowest = args.rate.iter().copied().min().unwrap_or(1);
    let nats_stopped = rounds::measure(1, &[STOPPED], |arm| bench.measure(arm, slowest))?;
    let ratio = rates.first().map_or(0.0, |at_rate| at_rate.ratio.median);
    Ok(Report { ratio, rates, nats_stopped, args: args.clone() })
}

struct Bench<'a> {
    args: &'a NodesArgs,
    program: PathBuf,
    runtime: Runtime,
}

impl Bench<'_> {
    /// On new servers.
    fn measure(&self, arm: &str, rate: u64) -> Result<Sample, Failure> {
        let (folder, postgres, mut nats) = (TempDir::new()?, Postgres::start(), Nats::start());
        let pacing = Pacing { rate, length: self.args.timing.length(), enforcers: self.args.enforcers };
        let arrival_timeout = match arm {
            BARE => return baseline::measure(&self.runtime, &postgres, &nats, pacing),
            STOPPED => {
                nats.stop();
                COMPARISON_TIMEOUT
            }
            _ => ARRIVAL_TIMEOUT,
        };
        let doorbell = format!("[doorbell]\nkind = \"nats\"\nurl = \"{}\"\n", nats.url());
        let decides = Gateway::on_postgres_with(&self.program, folder.path(), &postgres, &doorbell)?;
        let delivers = decides.another_node(&self.program, folder.path())?;
        let mut servers =
            vec![("gateway", decides.pid()), ("gateway", delivers.pid()), ("postgres", postgres.pid())];
        servers.extend(nats.pid().map(|server| ("nats", server)));
        let route = Route { decides: &decides, delivers: delivers.address, arrival_timeout };
        route.measure(&self.runtime, &servers, pacing)
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let mut lines = Vec::new();
        for AtRate { rate, ratio, rounds } in &self.rates {
            lines.push(format!("{rate} exchanges a second"));
            lines.extend(rounds.table("exchanges/s"));
            lines.extend(rounds.plot("p99 in ms", |stretch| stretch.latency.p99_ms));
            lines.push(format!(
                "ratio of p99 {:.2} (goal: at most 1.5), {} rounds that count\n",
                ratio.median, rounds.counted
            ));
        }
        let of = |figure| self.nats_stopped.median(STOPPED, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "with NATS stopped {:.0} were missing, the slowest arrived after {:.0} ms; {} enforcers on WebSockets of \
             another node than the one that decides, stretches of {} s",
            of("missing"),
            of("slowest ms"),
            self.args.enforcers,
            self.args.timing.seconds
        ));
        lines.join("\n")
    }
}
