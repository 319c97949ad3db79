//! Several arms measured in turn, round after round: ours and its baselines, A-B-A-B. A round that other processes disturbed
//! is measured again.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use crate::{
    Failure,
    cpu::{CpuUsage, Meter, Metered, to_f64},
    figures::{Percentiles, Ratio, median, percent},
    report_progress,
    table::headed,
};

/// Rounds that are measured at worst, as a multiple of those that are wanted undisturbed.
const MAX_ROUNDS: u64 = 2;

/// Width of the plot, in characters.
const PLOT_WIDTH: f64 = 50.0;

/// What was completed in one stretch.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) count: u64,
    pub(crate) elapsed: Duration,
    /// How long each took, in any order; empty where that is not measured.
    pub(crate) latencies: Vec<Duration>,
}

impl Completed {
    pub(crate) fn timed(latencies: Vec<Duration>, elapsed: Duration) -> Self {
        Self { count: latencies.len() as u64, elapsed, latencies }
    }
}

/// The raw results of one stretch.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) completed: Completed,
    pub(crate) metered: Metered,
    /// What only this bench measures, by name.
    pub(crate) figures: BTreeMap<&'static str, f64>,
}

impl Sample {
    /// Runs a stretch, with the CPU usage of these servers meanwhile.
    pub(crate) fn measure(
        servers: &[(&'static str, u32)],
        run: impl FnOnce() -> Result<Completed, Failure>,
    ) -> Result<Self, Failure> {
        let meter = Meter::start(servers)?;
        let completed = run()?;
        Ok(Self { completed, metered: meter.stop()?, figures: BTreeMap::new() })
    }
}

/// The measurement of one arm in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Stretch {
    pub(crate) round: u64,
    pub(crate) arm: &'static str,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
    pub(crate) cpu: CpuUsage,
    pub(crate) cores: BTreeMap<&'static str, f64>,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    /// Whether other processes used too much of the machine.
    pub(crate) disturbed: bool,
    #[serde(skip)]
    pub(crate) latencies: Vec<Duration>,
}

/// One arm over the rounds that count: medians.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) arm: &'static str,
    pub(crate) per_second: f64,
    /// The slowest and the fastest round.
    pub(crate) range_per_second: [f64; 2],
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
    pub(crate) cores: BTreeMap<&'static str, f64>,
    pub(crate) figures: BTreeMap<&'static str, f64>,
    pub(crate) foreign_cpu: f64,
}

/// All rounds, and the summary of each arm.
#[derive(Debug, Serialize)]
pub(crate) struct Rounds {
    /// Rounds that figures are taken from: those that nobody disturbed, or all where none was undisturbed.
    #[serde(rename = "counted_rounds")]
    pub(crate) counted: usize,
    pub(crate) arms: Vec<Summary>,
    pub(crate) stretches: Vec<Stretch>,
}

/// Measures every arm in every round until `rounds` of them were undisturbed, or twice as many were measured.
pub(crate) fn measure(
    rounds: u64,
    arms: &[&'static str],
    mut run: impl FnMut(&'static str) -> Result<Sample, Failure>,
) -> Result<Rounds, Failure> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut undisturbed = 0;
    for round in 1..=rounds * MAX_ROUNDS {
        let first = stretches.len();
        for arm in arms {
            stretches.push(Stretch::new([round, rounds], arm, run(arm)?));
        }
        undisturbed += u64::from(stretches[first..].iter().all(|stretch| !stretch.disturbed));
        if undisturbed == rounds {
            break;
        }
    }
    Ok(Rounds::new(arms, stretches))
}

impl Stretch {
    /// Of the given round, of as many. Reports the progress.
    pub(crate) fn new([round, rounds]: [u64; 2], arm: &'static str, sample: Sample) -> Self {
        let Sample { completed: Completed { count, elapsed, latencies }, metered, figures } = sample;
        let stretch = Self {
            round,
            arm,
            count,
            seconds: elapsed.as_secs_f64(),
            per_second: to_f64(count) / elapsed.as_secs_f64(),
            latency: Percentiles::of(latencies.iter().copied()),
            disturbed: metered.cpu.is_disturbed(),
            cpu: metered.cpu,
            cores: metered.cores,
            figures,
            latencies,
        };
        report_progress(&stretch.progress(rounds));
        stretch
    }

    fn progress(&self, rounds: u64) -> String {
        let Self { round, arm, per_second, latency: Percentiles { p50_ms, p99_ms }, cpu, .. } = self;
        let cores = self.cores.iter().map(|(name, cores)| format!("{name} {cores:.2}"));
        let figures = self.figures.iter().map(|(name, figure)| format!(", {name} {figure:.2}"));
        format!(
            "round {round} of {rounds}: {arm:28} {per_second:8.1}/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms{}, cores: {}, \
             foreign CPU {}{}",
            figures.collect::<String>(),
            cores.collect::<Vec<_>>().join(" "),
            percent(cpu.foreign),
            if self.disturbed { ", disturbed" } else { "" }
        )
    }
}

impl Rounds {
    fn new(arms: &[&'static str], stretches: Vec<Stretch>) -> Self {
        let mut rounds = Self { counted: 0, arms: Vec::new(), stretches };
        rounds.counted = rounds.of(arms[0]).len();
        rounds.arms = arms.iter().map(|arm| Summary::new(arm, &rounds.of(arm))).collect();
        rounds
    }

    /// The stretches of an arm that count, in the order of their rounds.
    fn of(&self, arm: &str) -> Vec<&Stretch> {
        let disturbed =
            |round| self.stretches.iter().any(|stretch| stretch.round == round && stretch.disturbed);
        let of_arm = || self.stretches.iter().filter(|stretch| stretch.arm == arm);
        let undisturbed: Vec<&Stretch> = of_arm().filter(|stretch| !disturbed(stretch.round)).collect();
        if undisturbed.is_empty() { of_arm().collect() } else { undisturbed }
    }

    /// A figure of one arm divided by the same figure of another, for each round that counts.
    pub(crate) fn ratio(&self, of: &str, to: &str, figure: impl Fn(&Stretch) -> f64) -> Ratio {
        Ratio::new(self.of(of).into_iter().map(&figure), self.of(to).into_iter().map(&figure))
    }

    /// The arm with the higher median rate.
    pub(crate) fn faster(&self, one: &'static str, other: &'static str) -> &'static str {
        let rate = |arm| self.median(arm, |stretch| stretch.per_second);
        if rate(other) > rate(one) { other } else { one }
    }

    /// The median of the rounds that count.
    pub(crate) fn median(&self, arm: &str, figure: impl Fn(&Stretch) -> f64) -> f64 {
        median(self.of(arm).into_iter().map(figure))
    }

    /// One line for each arm: rate, latencies, and processors that each process was busy on.
    pub(crate) fn table(&self, unit: &str) -> Vec<String> {
        let head = ["", unit, "p50 ms", "p99 ms", "client", "gateway", "postgres", "foreign"];
        let rows = self.arms.iter().map(|summary| {
            let latency = |ms: f64| if ms > 0.0 { format!("{ms:.2}") } else { String::new() };
            let cores = |name| summary.cores.get(name).map(|cores| format!("{cores:.2}")).unwrap_or_default();
            [
                summary.arm.to_owned(),
                if summary.per_second < 100.0 {
                    format!("{:.1}", summary.per_second)
                } else {
                    format!("{:.0}", summary.per_second)
                },
                latency(summary.latency.p50_ms),
                latency(summary.latency.p99_ms),
                cores("client"),
                cores("gateway"),
                cores("postgres"),
                percent(summary.foreign_cpu),
            ]
        });
        headed(head, rows, 1)
    }

    /// A bar for each arm: `=` to the slowest round, `#` to the median, `.` to the fastest.
    pub(crate) fn plot(&self, unit: &str, figure: impl Fn(&Stretch) -> f64) -> Vec<String> {
        let bars: Vec<(&str, [f64; 3])> = self
            .arms
            .iter()
            .map(|summary| {
                let mut figures: Vec<f64> = self.of(summary.arm).into_iter().map(&figure).collect();
                figures.sort_unstable_by(f64::total_cmp);
                let [first, .., last] = figures[..] else {
                    let only = figures.first().copied().unwrap_or_default();
                    return (summary.arm, [only; 3]);
                };
                (summary.arm, [first, median(figures), last])
            })
            .collect();
        let full = bars.iter().fold(0.0, |full: f64, (_, [.., fastest])| full.max(*fastest));
        let name_width = bars.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let mut lines =
            vec![format!("\n{unit}: = to the least of the rounds, # to the median, . to the largest")];
        lines.extend(bars.into_iter().map(|(name, [least, middle, largest])| {
            let bar = fill('=', 0.0, least, full)
                + &fill('#', least, middle, full)
                + &fill('.', middle, largest, full);
            format!("{name:name_width$}  {bar} {middle:.1}")
        }));
        lines
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bar has at most a few dozen characters"
)]
fn fill(with: char, from: f64, to: f64, full: f64) -> String {
    let column = |figure: f64| (figure / full.max(f64::MIN_POSITIVE) * PLOT_WIDTH).round() as usize;
    std::iter::repeat_n(with, column(to).saturating_sub(column(from))).collect()
}

impl Summary {
    fn new(arm: &'static str, stretches: &[&Stretch]) -> Self {
        let of = |figure: &dyn Fn(&Stretch) -> f64| -> Vec<f64> {
            stretches.iter().map(|stretch| figure(stretch)).collect()
        };
        let named = |map: fn(&Stretch) -> &BTreeMap<&'static str, f64>| {
            let names = stretches.first().map(|stretch| map(stretch).keys().copied()).into_iter().flatten();
            names.map(|name| (name, median(of(&|stretch| map(stretch)[name])))).collect()
        };
        let rates = of(&|stretch| stretch.per_second);
        Self {
            arm,
            per_second: median(rates.clone()),
            range_per_second: [
                rates.iter().copied().fold(f64::INFINITY, f64::min),
                rates.iter().copied().fold(0.0, f64::max),
            ],
            latency: Percentiles {
                p50_ms: median(of(&|stretch| stretch.latency.p50_ms)),
                p99_ms: median(of(&|stretch| stretch.latency.p99_ms)),
            },
            cores: named(|stretch| &stretch.cores),
            figures: named(|stretch| &stretch.figures),
            foreign_cpu: median(of(&|stretch| stretch.cpu.foreign)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: u64, foreign: f64) -> Sample {
        let cpu = CpuUsage { own: 0.1, servers: 0.2, interrupts: 0.0, foreign };
        let metered = Metered { cpu, cores: BTreeMap::from([("client", 0.2)]) };
        let completed = Completed { count, elapsed: Duration::from_secs(1), latencies: Vec::new() };
        Sample { completed, metered, figures: BTreeMap::new() }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "quotients of small powers of two are exact")]
    fn a_disturbed_round_is_measured_again_and_does_not_count() {
        let mut foreign = [0.0, 0.5, 0.0, 0.0, 0.0, 0.0].into_iter();
        let mut counts = [100, 1, 400, 200, 800, 200].into_iter();
        let rounds =
            measure(2, &["ours", "bare"], |_| Ok(sample(counts.next().unwrap(), foreign.next().unwrap())))
                .unwrap();
        assert_eq!((rounds.counted, rounds.stretches.len()), (2, 6));
        assert_eq!(rounds.ratio("ours", "bare", |stretch| stretch.per_second).of_each_round, [2.0, 4.0]);
        assert_eq!(rounds.arms[0].range_per_second, [400.0, 800.0]);
    }

    #[test]
    fn where_every_round_is_disturbed_all_count_and_measuring_ends() {
        let rounds = measure(2, &["ours"], |_| Ok(sample(1, 0.9))).unwrap();
        assert_eq!((rounds.counted, rounds.stretches.len()), (4, 4));
    }

    #[test]
    fn a_bar_has_its_least_its_median_and_its_largest_round() {
        let mut counts = [50, 100, 75].into_iter();
        let rounds = measure(3, &["ours"], |_| Ok(sample(counts.next().unwrap(), 0.0))).unwrap();
        let plot = rounds.plot("per second", |stretch| stretch.per_second);
        let bar = format!("{}{}{}", "=".repeat(25), "#".repeat(13), ".".repeat(12));
        assert_eq!(plot[1], format!("ours  {bar} 75.0"));
    }
}
