//! What the stretches say: each way without batching beside the one with it.

use std::time::Duration;

use serde::Serialize;

use crate::{
    CommitsArgs,
    commits::{Batching, Kept, Stretch},
    figures::{median, milliseconds, percentile},
    workload::Workload,
};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// PostgreSQL's submissions, on divided by off, with as many writers.
    pub(crate) ratio: f64,
    /// The same against off with many writers.
    pub(crate) ratio_to_many_writers: f64,
    pub(crate) seconds: u64,
    pub(crate) in_flight: u64,
    pub(crate) rounds: u64,
    pub(crate) approvers: u64,
    pub(crate) enforcers: u64,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) stretches: Vec<Stretch>,
}

/// One workload on one store, with batching and without it.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) store: Kept,
    pub(crate) workload: Workload,
    pub(crate) on: Summary,
    pub(crate) off: Summary,
    /// On divided by off: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
}

/// All rounds of one variant.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) batching: Batching,
    pub(crate) writers: usize,
    /// The median of the rounds.
    pub(crate) commits_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// The median of the rounds.
    pub(crate) foreign_cpu: f64,
}

impl Report {
    pub(crate) fn new(args: &CommitsArgs, stretches: Vec<Stretch>) -> Self {
        let comparisons: Vec<Comparison> = [
            (Kept::Sqlite, Batching::Off),
            (Kept::Postgres, Batching::Off),
            (Kept::Postgres, Batching::OffManyWriters),
        ]
        .into_iter()
        .flat_map(|(store, off)| [Workload::Submit, Workload::Decide].map(|workload| (store, workload, off)))
        .map(|(store, workload, off)| Comparison::new(&stretches, store, workload, off))
        .collect();
        let ratio = |batching| {
            let asked = |comparison: &&Comparison| {
                comparison.store == Kept::Postgres
                    && comparison.workload == Workload::Submit
                    && comparison.off.batching == batching
            };
            comparisons.iter().find(asked).map_or(0.0, |comparison| comparison.ratio)
        };
        Self {
            ratio: ratio(Batching::Off),
            ratio_to_many_writers: ratio(Batching::OffManyWriters),
            seconds: args.seconds,
            in_flight: args.in_flight,
            rounds: args.rounds,
            approvers: args.approvers,
            enforcers: args.enforcers,
            comparisons,
            stretches,
        }
    }
}

impl Comparison {
    fn new(stretches: &[Stretch], store: Kept, workload: Workload, off: Batching) -> Self {
        let of = |batching| -> Vec<&Stretch> {
            let asked = |stretch: &&Stretch| {
                stretch.store == store && stretch.workload == workload && stretch.batching == batching
            };
            stretches.iter().filter(asked).collect()
        };
        let (on, off) = (of(Batching::On), of(off));
        let ratio_of_each_round: Vec<f64> =
            on.iter().zip(&off).map(|(on, off)| on.commits_per_second / off.commits_per_second).collect();
        Self {
            store,
            workload,
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            on: Summary::new(&on),
            off: Summary::new(&off),
        }
    }
}

impl Summary {
    fn new(rounds: &[&Stretch]) -> Self {
        let mut latencies: Vec<Duration> =
            rounds.iter().flat_map(|stretch| stretch.latencies.iter().copied()).collect();
        latencies.sort_unstable();
        Self {
            batching: rounds.first().map_or(Batching::On, |stretch| stretch.batching),
            writers: rounds.first().map_or(0, |stretch| stretch.writers),
            commits_per_second: median(rounds.iter().map(|stretch| stretch.commits_per_second).collect()),
            p50_ms: milliseconds(percentile(&latencies, 50)),
            p99_ms: milliseconds(percentile(&latencies, 99)),
            foreign_cpu: median(rounds.iter().map(|stretch| stretch.cpu.foreign).collect()),
        }
    }
}
