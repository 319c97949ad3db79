//! What a gateway counts about itself, read where it serves it for Prometheus.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::Failure;

/// The value of every line, by its name with its labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(BTreeMap<String, f64>);

impl Counts {
    pub(crate) async fn read(metrics: SocketAddr) -> Result<Self, Failure> {
        let answer =
            reqwest::Client::builder().build()?.get(format!("http://{metrics}/metrics")).send().await?;
        Ok(Self::parse(&answer.error_for_status()?.text().await?))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(values.collect())
    }

    /// The sum over all lines of this name, without the prefix, in which one of these texts is: all if there are none.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let full = format!("countersign_{name}");
        let of_name = |line: &str| {
            let rest = line.strip_prefix(&full)?;
            (rest.is_empty() || rest.starts_with('{')).then_some(rest.to_owned())
        };
        let lines = self.0.iter().filter_map(|(line, value)| Some((of_name(line)?, value)));
        lines
            .filter(|(rest, _)| {
                labels.is_empty() || labels.iter().any(|label| rest.contains(&format!("\"{label}\"")))
            })
            .map(|(_, value)| value)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "sums of small numbers are exact")]
    fn a_name_is_not_taken_for_a_longer_one_and_labels_choose() {
        let counts = Counts::parse(
            "# HELP countersign_calls_total x\ncountersign_calls_total{operation=\"load\"} 3\n\
             countersign_calls_total{operation=\"commit\"} 4\ncountersign_calls_total_more 9\n",
        );
        assert_eq!(counts.sum("calls_total", &[]), 7.0);
        assert_eq!(counts.sum("calls_total", &["commit"]), 4.0);
    }
}
