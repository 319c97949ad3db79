//! A histogram of atomics. That of the library has a mutex, which all requests would share.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};

/// Upper bounds for durations, in nanoseconds: 100 µs to 10 s.
const SECONDS: Scale = Scale {
    bounds: &[
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        1_000_000_000,
        2_500_000_000,
        10_000_000_000,
    ],
    nanos: 1,
    unit: 1e9,
};

/// Upper bounds for how long people take, in microseconds: 1 s to a day.
const WAITS: Scale = Scale {
    bounds: &[
        1_000_000,
        2_000_000,
        5_000_000,
        15_000_000,
        30_000_000,
        60_000_000,
        120_000_000,
        300_000_000,
        900_000_000,
        1_800_000_000,
        3_600_000_000,
        14_400_000_000,
        43_200_000_000,
        86_400_000_000,
    ],
    nanos: 1_000,
    unit: 1e6,
};

/// Upper bounds for the number of changes in a batch, which has 256 at most.
const SIZES: Scale = Scale { bounds: &[1, 2, 4, 8, 16, 32, 64, 128, 256], nanos: 1, unit: 1.0 };

#[derive(Debug)]
struct Scale {
    /// Ascending, in the unit in which values are counted.
    bounds: &'static [u64],
    /// Of a duration: how many nanoseconds are counted as one.
    nanos: u128,
    /// How many of them make one of the unit that is shown.
    unit: f64,
}

#[derive(Debug)]
struct Counts {
    scale: &'static Scale,
    /// One for each bound, and one for what is above all of them.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// Clones share the counts. An observation is two additions, without a lock.
#[derive(Clone)]
pub struct Histogram(Arc<Counts>);

impl Histogram {
    /// For the number of changes that are committed together.
    pub fn sizes() -> Self {
        Self::new(&SIZES)
    }

    /// For how long people take.
    pub fn waits() -> Self {
        Self::new(&WAITS)
    }

    fn new(scale: &'static Scale) -> Self {
        let buckets = (0..=scale.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts { scale, buckets, sum: AtomicU64::new(0) }))
    }

    pub fn observe(&self, duration: Duration) {
        self.add(u64::try_from(duration.as_nanos() / self.0.scale.nanos).unwrap_or(u64::MAX));
    }

    pub fn observe_size(&self, size: usize) {
        self.add(size as u64);
    }

    fn add(&self, value: u64) {
        let bucket = self.0.scale.bounds.partition_point(|bound| *bound < value);
        self.0.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.0.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// How many values were observed.
    pub fn count(&self) -> u64 {
        self.0.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }
}

/// For durations.
impl Default for Histogram {
    fn default() -> Self {
        Self::new(&SECONDS)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    #[expect(clippy::cast_precision_loss, reason = "a sum is shown with 53 bits")]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Counts { scale, buckets, sum } = &*self.0;
        let bounds = scale.bounds.iter().map(|bound| *bound as f64 / scale.unit).chain([f64::INFINITY]);
        let counts = buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        // From the same reads as the buckets, so that the two agree.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = sum.load(Ordering::Relaxed) as f64 / scale.unit;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text, registry::Registry};

    use super::*;

    fn encoded(histogram: &Histogram) -> String {
        let mut registry = Registry::default();
        registry.register("h", "Help", histogram.clone());
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_value_is_counted_in_the_first_bucket_that_is_not_below_it() {
        let histogram = Histogram::default();
        for micros in [0, 100, 101, 10_000_000, 10_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let text = encoded(&histogram);
        for line in [
            "h_bucket{le=\"0.0001\"} 2",
            "h_bucket{le=\"0.00025\"} 3",
            "h_bucket{le=\"2.5\"} 3",
            "h_bucket{le=\"10.0\"} 4",
            "h_bucket{le=\"+Inf\"} 5",
            "h_count 5",
            "h_sum 20.000202",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
        }
        assert!(SECONDS.bounds.len() <= 14 && SECONDS.bounds.is_sorted());
    }

    #[test]
    fn a_day_is_a_wait_and_a_thousand_years_of_them_have_a_sum() {
        let (histogram, day) = (Histogram::waits(), Duration::from_hours(24));
        histogram.observe(Duration::from_millis(1_001));
        for _ in 0..365_000 {
            histogram.observe(day);
        }
        histogram.observe(day + Duration::from_millis(1));
        let text = encoded(&histogram);
        for line in [
            "h_bucket{le=\"1.0\"} 0",
            "h_bucket{le=\"2.0\"} 1",
            "h_bucket{le=\"43200.0\"} 1",
            "h_bucket{le=\"86400.0\"} 365001",
            "h_count 365002",
            "h_sum 31536086401.002",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
        }
        assert!(WAITS.bounds.len() <= 14 && WAITS.bounds.is_sorted());
    }

    #[test]
    fn sizes_are_shown_as_they_are() {
        let histogram = Histogram::sizes();
        histogram.observe_size(3);
        let text = encoded(&histogram);
        assert!(text.contains("h_bucket{le=\"4.0\"} 1\n") && text.contains("h_sum 3.0\n"), "{text}");
        assert!(text.contains("h_bucket{le=\"2.0\"} 0\n"), "{text}");
    }
}
