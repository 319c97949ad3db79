//! The report of `bench latency`: ours compared with the baseline.

use std::time::Duration;

use serde::Serialize;

use super::{Side, Stretch};
use crate::{
    args::{Engine, LatencyArgs},
    figures::{median, milliseconds, percentile},
    table::aligned,
};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// p99, ours divided by the baseline's: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    pub(crate) store: Engine,
    #[serde(rename = "rate_asked")]
    pub(crate) requested_rate: u64,
    /// The highest sustained rate, in steps of a quarter.
    pub(crate) rate: u64,
    pub(crate) enforcers: u64,
    pub(crate) rounds: u64,
    pub(crate) seconds: u64,
    pub(crate) ours: Summary,
    pub(crate) baseline: Summary,
    pub(crate) stretches: Vec<Stretch>,
}

/// All rounds of one side. p50 and p99 are over all of their exchanges.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) lost: u64,
    pub(crate) foreign_cpu: f64,
}

impl Report {
    pub(crate) fn new(args: &LatencyArgs, rate: u64, stretches: Vec<Stretch>) -> Self {
        let of = |side| stretches.iter().filter(move |stretch: &&Stretch| stretch.side == side);
        let ratio_of_each_round: Vec<f64> = of(Side::Ours)
            .zip(of(Side::Baseline))
            .map(|(ours, baseline)| ours.p99_ms / baseline.p99_ms)
            .collect();
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            store: args.store,
            requested_rate: args.rate,
            rate,
            enforcers: args.enforcers,
            rounds: args.rounds,
            seconds: args.seconds,
            ours: Summary::new(&of(Side::Ours).collect::<Vec<_>>()),
            baseline: Summary::new(&of(Side::Baseline).collect::<Vec<_>>()),
            stretches,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut rows = vec![["", "exchanges/s", "p50", "p99", "lost", "foreign"].map(str::to_owned)];
        for (name, summary) in [("ours", &self.ours), ("bare commit and round trip", &self.baseline)] {
            rows.push([
                name.to_owned(),
                format!("{:.0}", summary.per_second),
                format!("{:.2}", summary.p50_ms),
                format!("{:.2}", summary.p99_ms),
                summary.lost.to_string(),
                format!("{:.0} %", summary.foreign_cpu * 100.0),
            ]);
        }
        let mut lines = aligned(&rows, 1);
        let reduced = match self.rate == self.requested_rate {
            true => String::new(),
            false => format!(" ({} was not sustained)", self.requested_rate),
        };
        lines.push(format!(
            "\nratio of p99 {:.2}; {:?}, {} exchanges a second{reduced}, {} enforcers on WebSockets, {} rounds of {} s \
             each; latencies in ms",
            self.ratio, self.store, self.rate, self.enforcers, self.rounds, self.seconds
        ));
        lines.join("\n")
    }
}

impl Summary {
    fn new(rounds: &[&Stretch]) -> Self {
        let mut latencies: Vec<Duration> =
            rounds.iter().flat_map(|stretch| stretch.latencies.iter().copied()).collect();
        latencies.sort_unstable();
        Self {
            per_second: median(rounds.iter().map(|stretch| stretch.per_second).collect()),
            p50_ms: milliseconds(percentile(&latencies, 50)),
            p99_ms: milliseconds(percentile(&latencies, 99)),
            lost: rounds.iter().map(|stretch| stretch.lost).sum(),
            foreign_cpu: median(rounds.iter().map(|stretch| stretch.cpu.foreign).collect()),
        }
    }
}
