//! The report of `bench commits`: each variant without batching compared with the one with it.

use std::time::Duration;

use serde::Serialize;

use crate::{
    CommitsArgs,
    args::Engine,
    commits::{Batching, Stretch},
    figures::{median, milliseconds, percentile},
    workload::Workload,
};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Submissions a second on PostgreSQL with batching divided by those without it, with the same number of writers.
    pub(crate) ratio: f64,
    /// The same, compared with many writers without batching.
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
    pub(crate) store: Engine,
    pub(crate) workload: Workload,
    pub(crate) on: Summary,
    pub(crate) off: Summary,
    /// Commits a second with batching divided by those without it: the median of the rounds.
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
            comparisons.iter().find(selected).map_or(0.0, |comparison| comparison.ratio)
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
    fn new(stretches: &[Stretch], store: Engine, workload: Workload, off: Batching) -> Self {
        let of = |batching| -> Vec<&Stretch> {
            let selected = |stretch: &&Stretch| {
                stretch.store == store && stretch.workload == workload && stretch.batching == batching
            };
            stretches.iter().filter(selected).collect()
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
