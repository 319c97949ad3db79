//! The report of `bench neighbours`.

use serde::Serialize;

use super::{ALONE, BESIDE};
use crate::{args::NeighboursArgs, figures::median, rounds::Rounds};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The quiet tenant's submissions a second, beside the loud one divided by alone: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    /// The quiet tenant's p99, beside the loud one divided by alone.
    pub(crate) ratio_of_p99: f64,
    pub(crate) ratio_of_p99_of_each_round: Vec<f64>,
    /// Submissions a second that the gateway carried before the first round.
    pub(crate) capacity: u64,
    /// Submissions a second that the quiet tenant sends.
    pub(crate) rate: u64,
    pub(crate) loud_in_flight: u64,
    pub(crate) seconds: u64,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &NeighboursArgs, capacity: u64, rate: u64, rounds: Rounds) -> Self {
        let ratio_of_each_round = rounds.ratios(BESIDE, ALONE, |stretch| stretch.per_second);
        let ratio_of_p99_of_each_round = rounds.ratios(BESIDE, ALONE, |stretch| stretch.p99_ms);
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            ratio_of_p99: median(ratio_of_p99_of_each_round.clone()),
            ratio_of_p99_of_each_round,
            capacity,
            rate,
            loud_in_flight: args.loud_in_flight,
            seconds: args.seconds,
            rounds,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = self.rounds.table("quiet/s");
        lines.extend(self.rounds.plot("p99 of the quiet tenant in ms", |stretch| stretch.p99_ms));
        let loud = |figure| self.rounds.median(BESIDE, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "\nratio of throughput {:.2} (goal: at least 0.8), of p99 {:.2} (goal: at most 2)\n\
             the gateway carries {} submissions a second; the quiet tenant sends {} a second, the loud one has {} in flight \
             to one approver, of which {:.0} a second are accepted and {:.0} answered with 503; {} rounds of {} s that count",
            self.ratio,
            self.ratio_of_p99,
            self.capacity,
            self.rate,
            self.loud_in_flight,
            loud("loud/s"),
            loud("loud refused/s"),
            self.rounds.counted,
            self.seconds
        ));
        lines.join("\n")
    }
}
