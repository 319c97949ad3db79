//! The report of `bench expiries`: each rate, and its ratio to the one before it in the same round.

use serde::Serialize;

use crate::{
    args::ExpiriesArgs,
    figures::{Ratio, median, percent},
    report,
    rounds::Stretch,
    table::headed,
};

pub(super) const DECISIONS: &str = "decisions";
pub(super) const ON_ONE_NODE: &str = "expiries, one node";
pub(super) const ON_TWO_NODES: &str = "expiries, two nodes";

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Expiries a second on one node divided by the decisions a second before them.
    #[serde(flatten)]
    ratio: Ratio,
    /// Expiries a second on two nodes divided by those on one: the median of the rounds.
    ratio_of_two_nodes: f64,
    ratio_of_two_nodes_in_each_round: Vec<f64>,
    #[serde(flatten)]
    args: ExpiriesArgs,
    fairness: Fairness,
    stretches: Vec<Stretch>,
}

/// A tenant with a backlog, and another one whose records are due after all of that.
#[derive(Debug, Serialize)]
pub(crate) struct Fairness {
    pub(super) backlog: u64,
    pub(super) quiet_records: u64,
    /// From the start of the sweep until the other tenant's records were deleted.
    pub(super) quiet_ms: f64,
    /// Until the backlog was processed too.
    pub(super) backlog_ms: f64,
}

impl Report {
    pub(super) fn new(args: &ExpiriesArgs, stretches: Vec<Stretch>, fairness: Fairness) -> Self {
        let of = |arm: &'static str| {
            stretches.iter().filter(move |stretch| stretch.arm == arm).map(|stretch| stretch.per_second)
        };
        // The first of the two stretches of decisions in each round is the one before it.
        let ratio = Ratio::new(of(ON_ONE_NODE), of(DECISIONS).step_by(2));
        let of_two_nodes = Ratio::new(of(ON_TWO_NODES), of(ON_ONE_NODE));
        Self {
            ratio,
            ratio_of_two_nodes: of_two_nodes.median,
            ratio_of_two_nodes_in_each_round: of_two_nodes.of_each_round,
            args: args.clone(),
            fairness,
            stretches,
        }
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let row = |(arm, ratio): (&str, String)| {
            let of = || self.stretches.iter().filter(move |stretch| stretch.arm == arm);
            let rate = median(of().map(|stretch| stretch.per_second));
            let foreign = median(of().map(|stretch| stretch.cpu.foreign));
            [arm.to_owned(), format!("{rate:.0}"), ratio, percent(foreign)]
        };
        let rows = [
            (DECISIONS, String::new()),
            (ON_ONE_NODE, format!("{:.2} of decisions", self.ratio.median)),
            (ON_TWO_NODES, format!("{:.2} of one node", self.ratio_of_two_nodes)),
        ];
        let mut lines = headed(["work", "a second", "ratio", "foreign"], rows.map(row), 1);
        let Self { args: ExpiriesArgs { timing, exchanges, tenants, approvers, .. }, fairness, .. } = self;
        lines.push(format!(
            "\n{} rounds of {exchanges} exchanges in {tenants} tenants with {approvers} approvers each, on PostgreSQL with a \
             synchronous standby; every exchange expired exactly once",
            timing.rounds
        ));
        let Fairness { backlog, quiet_records, quiet_ms, backlog_ms } = fairness;
        lines.push(format!(
            "beside a tenant with {backlog} that lapsed at 1,000 a second, another one's {quiet_records} records were \
             deleted after {quiet_ms:.0} ms; the backlog was processed after {backlog_ms:.0} ms"
        ));
        lines.join("\n")
    }
}
