//! The report of `bench client`.

use serde::Serialize;

use super::{idle::Idle, operation::Operation};
use crate::{
    args::ClientArgs,
    cpu::{CpuUsage, to_f64},
    figures::{median, percent},
    report,
    table::headed,
};

/// One operation at one size: microseconds of ours and of the bare crates, a pair for each round.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    pub(crate) operation: Operation,
    /// Bytes of the payload that was asked about.
    pub(crate) payload_bytes: usize,
    /// Bytes of the text that was made or read, ours and bare.
    pub(crate) text_bytes: [usize; 2],
    pub(crate) ours_us: Vec<f64>,
    pub(crate) bare_us: Vec<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The largest of the operations' ratios.
    pub(crate) ratio: f64,
    /// Resident bytes of an idle enforcer divided by those of a bare HTTP client: the median of the rounds.
    pub(crate) idle_ratio: f64,
    #[serde(flatten)]
    pub(crate) args: ClientArgs,
    pub(crate) operations: Vec<Summary>,
    pub(crate) idle: Vec<Idle>,
    pub(crate) cpu: CpuUsage,
}

/// One operation at one size.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// Ours divided by bare: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ours_median_us: f64,
    pub(crate) bare_median_us: f64,
    #[serde(flatten)]
    pub(crate) cost: Cost,
}

impl Summary {
    fn new(cost: Cost) -> Self {
        Self {
            ratio: median(cost.ours_us.iter().zip(&cost.bare_us).map(|(ours, bare)| ours / bare)),
            ours_median_us: median(cost.ours_us.iter().copied()),
            bare_median_us: median(cost.bare_us.iter().copied()),
            cost,
        }
    }
}

impl Report {
    pub(super) fn new(args: &ClientArgs, costs: Vec<Cost>, idle: Vec<Idle>, cpu: CpuUsage) -> Self {
        let operations: Vec<Summary> = costs.into_iter().map(Summary::new).collect();
        let ratio = operations.iter().map(|summary| summary.ratio).fold(0.0, f64::max);
        let ratios = idle.iter().map(|idle| to_f64(idle.enforcer_rss) / to_f64(idle.bare_rss));
        Self { ratio, idle_ratio: median(ratios), args: args.clone(), operations, idle, cpu }
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let head = ["", "payload", "text, ours", "text, bare", "ours", "bare", "ratio"];
        let mut rows = Vec::new();
        for Summary { ratio, ours_median_us, bare_median_us, cost } in &self.operations {
            let time = |microseconds: &f64| format!("{microseconds:.0} µs");
            rows.push([
                Operation::name(cost.operation).to_owned(),
                format!("{} B", cost.payload_bytes),
                format!("{} B", cost.text_bytes[0]),
                format!("{} B", cost.text_bytes[1]),
                time(ours_median_us),
                time(bare_median_us),
                format!("{ratio:.2}"),
            ]);
        }
        let megabytes = |bytes: fn(&Idle) -> u64| {
            format!("{:.1} MB", median(self.idle.iter().map(|idle| to_f64(bytes(idle)))) / 1e6)
        };
        rows.push([
            "resident memory while idle".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            megabytes(|idle| idle.enforcer_rss),
            megabytes(|idle| idle.bare_rss),
            format!("{:.2}", self.idle_ratio),
        ]);
        let mut lines = headed(head, rows, 1);
        lines.push(format!(
            "\n{} rounds, medians; foreign CPU {} while operations were timed",
            self.args.rounds,
            percent(self.cpu.foreign)
        ));
        lines.join("\n")
    }
}
