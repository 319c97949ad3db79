//! The report of `bench commits`: each variant without batching compared with the one with it.

use std::time::Duration;

use serde::Serialize;

use crate::{
    args::{CommitsArgs, Engine},
    cpu::CpuUsage,
    figures::{Percentiles, Ratio, median, percent},
    report,
    table::headed,
    workload::Workload,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Batching {
    On,
    /// With the same number of writers as with batching.
    Off,
    /// With more writers, on PostgreSQL.
    OffManyWriters,
}

/// The measurement of one variant in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) store: Engine,
    pub(crate) workload: Workload,
    pub(crate) batching: Batching,
    pub(crate) writers: usize,
    pub(crate) seconds: f64,
    pub(crate) commits: u64,
    pub(crate) commits_per_second: f64,
    pub(crate) cpu: CpuUsage,
    #[serde(skip)]
    pub(crate) latencies: Vec<Duration>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Submissions a second on PostgreSQL with batching divided by those without it, with the same number of writers.
    ratio: f64,
    /// The same, compared with many writers without batching.
    ratio_to_many_writers: f64,
    #[serde(flatten)]
    args: CommitsArgs,
    comparisons: Vec<Comparison>,
    stretches: Vec<Stretch>,
}

/// One workload on one store, with batching and without it.
#[derive(Debug, Serialize)]
struct Comparison {
    store: Engine,
    workload: Workload,
    on: Summary,
    off: Summary,
    /// Commits a second with batching divided by those without it.
    #[serde(flatten)]
    ratio: Ratio,
}

/// All rounds of one variant: medians, and latencies over the commits of all rounds.
#[derive(Debug, Serialize)]
struct Summary {
    batching: Batching,
    writers: usize,
    commits_per_second: f64,
    #[serde(flatten)]
    latency: Percentiles,
    foreign_cpu: f64,
}

impl Report {
    pub(super) fn new(args: &CommitsArgs, stretches: Vec<Stretch>) -> Self {
        let comparisons: Vec<Comparison> = [
            (Engine::Sqlite, Batching::Off),
            (Engine::Postgres, Batching::Off),
            (Engine::Postgres, Batching::OffManyWriters),
        ]
        .into_iter()
        .flat_map(|(store, off)| [Workload::Submit, Workload::Decide].map(|workload| (store, workload, off)))
        .map(|(store, workload, off)| Comparison::new(&stretches, store, workload, off))
        .collect();
        let ratio = |batching| {
            let selected = |comparison: &&Comparison| {
                comparison.store == Engine::Postgres
                    && comparison.workload == Workload::Submit
                    && comparison.off.batching == batching
            };
            comparisons.iter().find(selected).map_or(0.0, |comparison| comparison.ratio.median)
        };
        Self {
            ratio: ratio(Batching::Off),
            ratio_to_many_writers: ratio(Batching::OffManyWriters),
            args: args.clone(),
            comparisons,
            stretches,
        }
    }
}

impl Comparison {
    fn new(stretches: &[Stretch], store: Engine, workload: Workload, off: Batching) -> Self {
        let of = |batching| -> Vec<&Stretch> {
            let selected = |stretch: &&Stretch| {
                stretch.store == store && stretch.workload == workload && stretch.batching == batching
            };
            stretches.iter().filter(selected).collect()
        };
        let rates = |batching| of(batching).into_iter().map(|stretch| stretch.commits_per_second);
        let ratio = Ratio::new(rates(Batching::On), rates(off));
        let [on, off] = [Batching::On, off].map(|batching| Summary::new(batching, &of(batching)));
        Self { store, workload, on, off, ratio }
    }

    fn row(&self) -> [String; 12] {
        let Self { store, workload, on, off, ratio } = self;
        let rate = |summary: &Summary| format!("{:.0}", summary.commits_per_second);
        [
            store.to_string(),
            workload.to_string(),
            format!("{} : {}", on.writers, off.writers),
            rate(on),
            rate(off),
            format!("{:.2}", ratio.median),
            format!("{:.2}", on.latency.p50_ms),
            format!("{:.2}", on.latency.p99_ms),
            format!("{:.2}", off.latency.p50_ms),
            format!("{:.2}", off.latency.p99_ms),
            percent(on.foreign_cpu),
            percent(off.foreign_cpu),
        ]
    }
}

impl Summary {
    fn new(batching: Batching, rounds: &[&Stretch]) -> Self {
        Self {
            batching,
            writers: rounds.first().map_or(0, |stretch| stretch.writers),
            commits_per_second: median(rounds.iter().map(|stretch| stretch.commits_per_second)),
            latency: Percentiles::of(rounds.iter().flat_map(|stretch| stretch.latencies.iter().copied())),
            foreign_cpu: median(rounds.iter().map(|stretch| stretch.cpu.foreign)),
        }
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        #[rustfmt::skip]
        let head = [
            "store", "workload", "writers", "on/s", "off/s", "ratio", "on p50", "on p99", "off p50", "off p99",
            "foreign on", "foreign off",
        ];
        let mut lines = headed(head, self.comparisons.iter().map(Comparison::row), 3);
        let CommitsArgs { timing, in_flight, approvers, enforcers } = &self.args;
        lines.push(format!(
            "\n{in_flight} changes in flight, {} rounds of {} s each, mailboxes of {approvers} approvers and {enforcers} \
             enforcers; latencies in ms",
            timing.rounds, timing.seconds
        ));
        lines.join("\n")
    }
}
