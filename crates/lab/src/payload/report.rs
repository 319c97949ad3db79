//! The report of `bench payload`.

use serde::Serialize;

use super::{BARE, OURS};
use crate::{args::PayloadArgs, figures::median, rounds::Rounds};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Bytes a second, ours divided by those of the bare engine: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    /// The gateway's peak minus its idle resident memory, divided by the uploads in flight: the largest of the rounds.
    pub(crate) megabytes_per_upload: f64,
    pub(crate) in_flight: u64,
    pub(crate) bytes: usize,
    pub(crate) seconds: u64,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &PayloadArgs, rounds: Rounds) -> Self {
        let ratio_of_each_round = rounds.ratios(OURS, BARE, |stretch| stretch.figures["MB/s"]);
        let ours = rounds.stretches.iter().filter(|stretch| stretch.arm == OURS);
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            megabytes_per_upload: ours
                .fold(0.0, |most_so_far: f64, stretch| most_so_far.max(stretch.figures["MB/upload"])),
            in_flight: args.in_flight,
            bytes: args.bytes,
            seconds: args.seconds,
            rounds,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = self.rounds.table("uploads/s");
        lines.extend(self.rounds.plot("MB a second", |stretch| stretch.figures["MB/s"]));
        let of = |arm, figure| self.rounds.median(arm, |stretch| stretch.figures[figure]);
        lines.push(format!(
            "\nratio {:.2} ({:.0} and {:.0} MB/s; goal: at least 0.5), memory {:.1} MB for each upload in flight (goal: at most \
             6; {:.0} MB idle, {:.0} MB at its peak)\n{} in flight, {} B each, {} rounds of {} s that count",
            self.ratio,
            of(OURS, "MB/s"),
            of(BARE, "MB/s"),
            self.megabytes_per_upload,
            of(OURS, "idle MB"),
            of(OURS, "peak MB"),
            self.in_flight,
            self.bytes,
            self.rounds.counted,
            self.seconds
        ));
        lines.join("\n")
    }
}
