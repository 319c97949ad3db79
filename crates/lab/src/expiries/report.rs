//! The report of `bench expiries`: each rate, and its ratio to the one before it in the same round.

use serde::Serialize;

use super::{Fairness, Stretch, Work};
use crate::{args::ExpiriesArgs, figures::median, table::aligned};

const HEAD: [&str; 4] = ["work", "a second", "ratio", "foreign"];

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Expiries a second on one node divided by the decisions a second before them: the median of the rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    /// Expiries a second on two nodes divided by those on one: the median of the rounds.
    pub(crate) ratio_of_two_nodes: f64,
    pub(crate) ratio_of_two_nodes_in_each_round: Vec<f64>,
    pub(crate) exchanges: u64,
    pub(crate) rounds: u64,
    pub(crate) seconds: u64,
    pub(crate) tenants: u64,
    pub(crate) approvers: u64,
    pub(crate) fairness: Fairness,
    pub(crate) stretches: Vec<Stretch>,
}

impl Report {
    pub(crate) fn new(args: &ExpiriesArgs, stretches: Vec<Stretch>, fairness: Fairness) -> Self {
        let of = |work| {
            stretches.iter().filter(move |stretch| stretch.work == work).map(|stretch| stretch.per_second)
        };
        let ratios = |of: Vec<f64>, to: Vec<f64>| -> Vec<f64> {
            of.into_iter().zip(to).map(|(of, to)| of / to).collect()
        };
        let one: Vec<f64> = of(Work::ExpiriesOnOneNode).collect();
        // The first of the two stretches of decisions in each round is the one before it.
        let ratio_of_each_round = ratios(one.clone(), of(Work::Decisions).step_by(2).collect());
        let two_nodes = ratios(of(Work::ExpiriesOnTwoNodes).collect(), one);
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            ratio_of_two_nodes: median(two_nodes.clone()),
            ratio_of_two_nodes_in_each_round: two_nodes,
            exchanges: args.exchanges,
            rounds: args.rounds,
            seconds: args.seconds,
            tenants: args.tenants,
            approvers: args.approvers,
            fairness,
            stretches,
        }
    }

    pub(crate) fn table(&self) -> String {
        let row = |work: Work, name: &str, ratio: String| {
            let of = || self.stretches.iter().filter(move |stretch| stretch.work == work);
            let rate = median(of().map(|stretch| stretch.per_second).collect());
            let foreign = median(of().map(|stretch| stretch.cpu.foreign).collect()) * 100.0;
            [name.to_owned(), format!("{rate:.0}"), ratio, format!("{foreign:.0} %")]
        };
        let rows = [
            HEAD.map(str::to_owned),
            row(Work::Decisions, "decisions", String::new()),
            row(Work::ExpiriesOnOneNode, "expiries, one node", format!("{:.2} of decisions", self.ratio)),
            row(
                Work::ExpiriesOnTwoNodes,
                "expiries, two nodes",
                format!("{:.2} of one node", self.ratio_of_two_nodes),
            ),
        ];
        let mut lines = aligned(&rows, 1);
        let Self { exchanges, rounds, tenants, approvers, fairness, .. } = self;
        lines.push(format!(
            "\n{rounds} rounds of {exchanges} exchanges in {tenants} tenants with {approvers} approvers each, on PostgreSQL \
             with a synchronous standby; every exchange expired exactly once"
        ));
        let Fairness { backlog, quiet_records, quiet_ms, backlog_ms } = fairness;
        lines.push(format!(
            "beside a tenant with {backlog} that lapsed at 1,000 a second, another one's {quiet_records} records were \
             deleted after {quiet_ms:.0} ms; the backlog was processed after {backlog_ms:.0} ms"
        ));
        lines.join("\n")
    }
}
