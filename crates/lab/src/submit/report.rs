//! The report of `bench submit`.

use serde::Serialize;

use super::{BATCHING, INSERT_8, INSERT_64, OURS};
use crate::{args::SubmitArgs, figures::median, rounds::Rounds};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Submissions a second, ours divided by the better INSERT: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    /// The baseline of the ratio.
    pub(crate) better_insert: &'static str,
    /// Submissions a second, ours divided by those of the batching driver.
    pub(crate) share_of_batching: f64,
    pub(crate) in_flight: u64,
    pub(crate) bytes: usize,
    pub(crate) seconds: u64,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &SubmitArgs, rounds: Rounds) -> Self {
        let better_insert = rounds.faster(INSERT_8, INSERT_64);
        let ratio_of_each_round = rounds.ratios(OURS, better_insert, |stretch| stretch.per_second);
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            better_insert,
            share_of_batching: median(rounds.ratios(OURS, BATCHING, |stretch| stretch.per_second)),
            in_flight: args.in_flight,
            bytes: args.bytes,
            seconds: args.seconds,
            rounds,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = self.rounds.table("submissions/s");
        lines.extend(self.rounds.plot("submissions a second", |stretch| stretch.per_second));
        lines.push(format!(
            "\nratio {:.2} of {} (goal: at least 1.0), {:.2} of the batching driver\n{} in flight, {} B each, {} rounds \
             of {} s that count; client, gateway and postgres: processors that each was busy on",
            self.ratio,
            self.better_insert,
            self.share_of_batching,
            self.in_flight,
            self.bytes,
            self.rounds.counted,
            self.seconds
        ));
        lines.join("\n")
    }
}
