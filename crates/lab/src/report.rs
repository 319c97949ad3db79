//! What the stretches say: each way without batching beside the one with it.

use std::time::Duration;

use serde::Serialize;

use crate::{
    CommitsArgs,
    commits::{Batching, Kept, Stretch},
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

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    let upper = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => figures[upper],
        _ => f64::midpoint(figures[upper - 1], figures[upper]),
    }
}

/// The least of the ascending `latencies` that so many of a hundred do not exceed.
fn percentile(latencies: &[Duration], percent: usize) -> Duration {
    let index = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
    latencies.get(index).copied().unwrap_or_default()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "halves of small numbers are exact")]
    fn a_median_is_in_the_middle() {
        let medians = [vec![3.0, 1.0, 2.0], vec![4.0, 1.0, 2.0, 3.0], vec![]].map(median);
        assert_eq!(medians, [2.0, 2.5, 0.0]);
    }

    #[test]
    fn a_percentile_is_a_latency_that_occurred() {
        let latencies: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let percentiles = [50, 99, 100].map(|percent| percentile(&latencies, percent));
        assert_eq!(percentiles, [100, 198, 200].map(Duration::from_millis));
        assert_eq!(percentile(&latencies[..1], 99), latencies[0]);
    }
}
