//! Every metric with what a reader of it has to know. The document is written from the same entries as the scrape.

use std::fmt;

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, text},
    metrics::{MetricType, TypedMetric, counter::Counter, gauge::Gauge},
    registry::{Metric, Registry},
};

use super::{
    histogram::Histogram,
    labels::{LabelSet, PerLabel},
};

/// All names begin with it.
const PREFIX: &str = "countersign";

/// A metric that can say which labels it has.
pub trait Measured: Metric + Clone {
    /// Every label with all of its values; empty for a metric without labels.
    fn labels(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        Vec::new()
    }
}

impl Measured for Counter {}

impl Measured for Gauge {}

impl Measured for Histogram {}

impl<L: LabelSet, M: TypedMetric + EncodeMetric + fmt::Debug + Send + Sync + 'static> Measured
    for PerLabel<L, M>
{
    fn labels(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        L::all()
    }
}

/// Which program this is.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    pub version: &'static str,
}

impl EncodeMetric for Build {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_info(&[("version", self.version)])
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Info
    }
}

impl Measured for Build {
    fn labels(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("version", Vec::new())]
    }
}

/// A gauge whose value is computed when it is scraped.
#[derive(Clone, Copy)]
pub struct Computed<F>(pub F);

impl<F> fmt::Debug for Computed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

impl<F: Fn() -> f64> EncodeMetric for Computed<F> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&(self.0)())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

impl<F: Fn() -> f64 + Clone + Send + Sync + 'static> Measured for Computed<F> {}

/// What the document says of a metric.
#[derive(Debug, Clone)]
pub struct Entry {
    /// As it is scraped, with its prefix; of a histogram, without the suffixes of its parts.
    pub name: String,
    pub metric_type: &'static str,
    pub labels: Vec<(&'static str, Vec<&'static str>)>,
    /// A sentence without its full stop.
    pub help: &'static str,
    /// What to do when it rises; `None` where that depends on others.
    pub when_it_rises: Option<&'static str>,
}

/// The registry and its description.
#[derive(Debug)]
pub struct Catalog {
    registry: Registry,
    entries: Vec<Entry>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self { registry: Registry::with_prefix(PREFIX), entries: Vec::new() }
    }
}

impl Catalog {
    /// Adds a metric. The name is without prefix and, for a counter, without `_total`; the help without a full stop.
    pub fn add(&mut self, name: &str, help: &'static str, metric: &impl Measured) {
        let (metric_type, suffix) = match metric.metric_type() {
            MetricType::Counter => ("counter", "_total"),
            MetricType::Gauge => ("gauge", ""),
            MetricType::Histogram => ("histogram", ""),
            MetricType::Info => ("info", "_info"),
            MetricType::Unknown => ("unknown", ""),
        };
        self.entries.push(Entry {
            name: format!("{PREFIX}_{name}{suffix}"),
            metric_type,
            labels: metric.labels(),
            help,
            when_it_rises: None,
        });
        self.registry.register(name, help, metric.clone());
    }

    /// Says what to do when the metric that was added last rises.
    pub fn when_it_rises(&mut self, advice: &'static str) {
        if let Some(entry) = self.entries.last_mut() {
            entry.when_it_rises = Some(advice);
        }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All values in the text format of `OpenMetrics`.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.registry)?;
        Ok(encoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_name_that_is_scraped() {
        let mut catalog = Catalog::default();
        catalog.add("things", "Things", &Counter::<u64>::default());
        catalog.add("level", "Level", &Computed(|| 2.5));
        catalog.add("wait_seconds", "Waits", &Histogram::default());
        let encoded = catalog.encode().unwrap();
        for entry in catalog.entries() {
            let has_sample = encoded.lines().any(|line| line.starts_with(&entry.name));
            assert!(has_sample, "{} in\n{encoded}", entry.name);
        }
        assert!(encoded.contains("\ncountersign_level 2.5\n"), "{encoded}");
    }
}
