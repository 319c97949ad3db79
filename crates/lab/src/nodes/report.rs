//! The report of `bench nodes`.

use serde::Serialize;

use super::{BARE, OURS, STOPPED};
use crate::{args::NodesArgs, figures::median, rounds::Rounds};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// p99, ours divided by the baseline's, at the first rate: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) rates: Vec<AtRate>,
    pub(crate) nats_stopped: Rounds,
    pub(crate) enforcers: u64,
    pub(crate) seconds: u64,
}

/// Both sides at one rate.
#[derive(Debug, Serialize)]
pub(crate) struct AtRate {
    pub(crate) rate: u64,
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &NodesArgs, of_rates: Vec<(u64, Rounds)>, nats_stopped: Rounds) -> Self {
        let rates: Vec<AtRate> = of_rates
            .into_iter()
            .map(|(rate, rounds)| {
                let ratio_of_each_round = rounds.ratios(OURS, BARE, |stretch| stretch.p99_ms);
                AtRate { rate, ratio: median(ratio_of_each_round.clone()), ratio_of_each_round, rounds }
            })
            .collect();
        Self {
            ratio: rates.first().map_or(0.0, |at_rate| at_rate.ratio),
            rates,
            nats_stopped,
            enforcers: args.enforcers,
            seconds: args.seconds,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = Vec::new();
        for AtRate { rate, ratio, rounds, .. } in &self.rates {
            lines.push(format!("{rate} exchanges a second"));
            lines.extend(rounds.table("exchanges/s"));
            lines.extend(rounds.plot("p99 in ms", |stretch| stretch.p99_ms));
            lines.push(format!(
                "ratio of p99 {ratio:.2} (goal: at most 1.5), {} rounds that count\n",
                rounds.counted
            ));
        }
        let of = |figure| self.nats_stopped.median(STOPPED, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "with NATS stopped {:.0} were missing, the slowest arrived after {:.0} ms; {} enforcers on WebSockets of \
             another node than the one that decides, stretches of {} s",
            of("missing"),
            of("slowest ms"),
            self.enforcers,
            self.seconds
        ));
        lines.join("\n")
    }
}
