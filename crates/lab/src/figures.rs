//! Medians, percentiles and ratios of measurements.

use std::time::Duration;

use serde::Serialize;

/// The middle value, or the mean of the two middle values; 0 without values.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_unstable_by(f64::total_cmp);
    let upper = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => figures[upper],
        _ => f64::midpoint(figures[upper - 1], figures[upper]),
    }
}

/// The smallest of the ascending `latencies` that `percent` percent of them do not exceed; zero without values.
pub(crate) fn percentile(latencies: &[Duration], percent: usize) -> Duration {
    let index = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
    latencies.get(index).copied().unwrap_or_default()
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// A fraction as a whole percentage.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// Latencies in milliseconds; zero where none were measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Percentiles {
    /// Of latencies in any order.
    pub(crate) fn of(latencies: impl IntoIterator<Item = Duration>) -> Self {
        let mut latencies: Vec<Duration> = latencies.into_iter().collect();
        latencies.sort_unstable();
        let [p50_ms, p99_ms] = [50, 99].map(|percent| milliseconds(percentile(&latencies, percent)));
        Self { p50_ms, p99_ms }
    }
}

/// A figure of ours divided by that of its baseline.
#[derive(Debug, Serialize)]
pub(crate) struct Ratio {
    /// The median of the rounds.
    #[serde(rename = "ratio")]
    pub(crate) median: f64,
    #[serde(rename = "ratio_of_each_round")]
    pub(crate) of_each_round: Vec<f64>,
}

impl Ratio {
    /// Of the figures of as many rounds.
    pub(crate) fn new(of: impl IntoIterator<Item = f64>, to: impl IntoIterator<Item = f64>) -> Self {
        let of_each_round: Vec<f64> = of.into_iter().zip(to).map(|(of, to)| of / to).collect();
        Self { median: median(of_each_round.iter().copied()), of_each_round }
    }
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
