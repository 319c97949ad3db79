//! Median and percentile of measurements.

use std::time::Duration;

/// The middle value, or the mean of the two middle values; 0 without values.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
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
