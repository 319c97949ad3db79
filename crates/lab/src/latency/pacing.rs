//! What both sides of a comparison of latencies share: how fast exchanges begin, and what is said of those that ended.

use std::time::Duration;

use crate::{cpu::to_f64, figures::milliseconds, rounds::Sample};

/// Exchanges before the measurement: the first ones open connections and prepare statements.
pub(super) const WARM_UP: u64 = 500;

/// How fast exchanges begin, for how long, and how many enforcers share them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacing {
    pub(crate) rate: u64,
    pub(crate) length: Duration,
    pub(crate) enforcers: u64,
}

/// Adds the latencies of what has arrived, which of it was the slowest, and how much is missing.
pub(super) fn with_latencies(mut sample: Sample, latencies: Vec<Duration>) -> Sample {
    let slowest = latencies.iter().max().copied().unwrap_or_default();
    let missing = sample.completed.count.saturating_sub(latencies.len() as u64);
    sample.figures.extend([("slowest ms", milliseconds(slowest)), ("missing", to_f64(missing))]);
    sample.completed.latencies = latencies;
    sample
}
