//! Labels with a closed set of values, and a metric for each. All are made at the start: counting is an index into an
//! array, without a lock, a hash or an allocation, and no client can add a label value.

use std::{fmt, marker::PhantomData, sync::Arc};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{MetricType, TypedMetric},
};

/// A label's name and one of its values.
pub type LabelPair = (&'static str, &'static str);

/// A closed set of label values. [`labels!`](crate::labels) makes an enum one; two make one together, as a tuple.
pub trait LabelSet: Copy + fmt::Debug + Send + Sync + 'static {
    /// How many combinations of values there are.
    const SIZE: usize;

    /// The place among all combinations, below [`LabelSet::SIZE`].
    fn index(self) -> usize;

    /// The labels of the combination at this place.
    fn pairs(index: usize) -> Vec<LabelPair>;

    /// Every label with all of its values.
    fn all() -> Vec<(&'static str, Vec<&'static str>)>;
}

impl<A: LabelSet, B: LabelSet> LabelSet for (A, B) {
    const SIZE: usize = A::SIZE * B::SIZE;

    fn index(self) -> usize {
        self.0.index() * B::SIZE + self.1.index()
    }

    fn pairs(index: usize) -> Vec<LabelPair> {
        let mut pairs = A::pairs(index / B::SIZE);
        pairs.extend(B::pairs(index % B::SIZE));
        pairs
    }

    fn all() -> Vec<(&'static str, Vec<&'static str>)> {
        let mut all = A::all();
        all.extend(B::all());
        all
    }
}

/// Makes an enum whose variants are the values of one label: `pub enum Reason("reason") { Late => "late" }`.
#[macro_export]
macro_rules! labels {
    ($(#[$doc:meta])* $vis:vis enum $name:ident($label:literal) {
        $($(#[$variant_doc:meta])* $variant:ident => $value:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every variant, in the order of its declaration.
            $vis const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value of the label.
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $value,)+ }
            }
        }

        impl $crate::metrics::LabelSet for $name {
            const SIZE: usize = Self::ALL.len();

            fn index(self) -> usize {
                self as usize
            }

            fn pairs(index: usize) -> Vec<$crate::metrics::LabelPair> {
                vec![($label, Self::ALL[index].as_str())]
            }

            fn all() -> Vec<(&'static str, Vec<&'static str>)> {
                vec![($label, Self::ALL.iter().map(|value| value.as_str()).collect())]
            }
        }
    };
}

/// One metric for each combination of label values. Clones share them.
pub struct PerLabel<L, M> {
    metrics: Arc<[M]>,
    labels: PhantomData<fn() -> L>,
}

impl<L: LabelSet, M> PerLabel<L, M> {
    pub fn at(&self, labels: L) -> &M {
        &self.metrics[labels.index()]
    }
}

impl<L, M> Clone for PerLabel<L, M> {
    fn clone(&self) -> Self {
        Self { metrics: Arc::clone(&self.metrics), labels: PhantomData }
    }
}

impl<L: LabelSet, M: Default> Default for PerLabel<L, M> {
    fn default() -> Self {
        Self { metrics: (0..L::SIZE).map(|_| M::default()).collect(), labels: PhantomData }
    }
}

impl<L, M: fmt::Debug> fmt::Debug for PerLabel<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metrics.fmt(f)
    }
}

impl<L, M: TypedMetric> TypedMetric for PerLabel<L, M> {
    const TYPE: MetricType = M::TYPE;
}

impl<L: LabelSet, M: EncodeMetric + TypedMetric> EncodeMetric for PerLabel<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (index, metric) in self.metrics.iter().enumerate() {
            metric.encode(encoder.encode_family(&L::pairs(index))?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text, metrics::counter::Counter, registry::Registry};

    use super::*;

    labels! {
        enum Side("side") {
            Left => "left",
            Right => "right",
        }
    }

    labels! {
        enum Size("size") {
            Small => "small",
            Large => "large",
            Huge => "huge",
        }
    }

    #[test]
    fn each_combination_of_labels_has_a_metric_of_its_own() {
        let counters = PerLabel::<(Side, Size), Counter>::default();
        for side in Side::ALL {
            for size in Size::ALL {
                counters.at((*side, *size)).inc();
            }
        }
        counters.at((Side::Right, Size::Small)).inc();
        let mut registry = Registry::default();
        registry.register("c", "Help", counters.clone());
        let mut shown = String::new();
        text::encode(&mut shown, &registry).unwrap();
        let samples: Vec<&str> = shown.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "c_total{side=\"left\",size=\"small\"} 1",
                "c_total{side=\"left\",size=\"large\"} 1",
                "c_total{side=\"left\",size=\"huge\"} 1",
                "c_total{side=\"right\",size=\"small\"} 2",
                "c_total{side=\"right\",size=\"large\"} 1",
                "c_total{side=\"right\",size=\"huge\"} 1",
            ]
        );
    }
}
