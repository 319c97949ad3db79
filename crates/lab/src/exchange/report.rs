//! The report of `bench exchange`.

use serde::Serialize;

use super::{OURS, STATEMENTS_8, STATEMENTS_64, TRANSACTIONS_8, TRANSACTIONS_64};
use crate::{args::ExchangeArgs, figures::median, rounds::Rounds};

/// All results, and the arguments that they were measured with.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Exchanges a second, ours divided by the statements one by one at the better number of clients: the median of the
    /// rounds.
    pub(crate) ratio: f64,
    pub(crate) ratio_of_each_round: Vec<f64>,
    pub(crate) better_statements: &'static str,
    /// The same, compared with one transaction for each step.
    pub(crate) ratio_to_transactions: f64,
    pub(crate) in_flight: u64,
    pub(crate) bytes: usize,
    pub(crate) seconds: u64,
    #[serde(flatten)]
    pub(crate) rounds: Rounds,
}

impl Report {
    pub(super) fn new(args: &ExchangeArgs, rounds: Rounds) -> Self {
        let better_statements = rounds.faster(STATEMENTS_8, STATEMENTS_64);
        let transactions = rounds.faster(TRANSACTIONS_8, TRANSACTIONS_64);
        let ratios = |to| rounds.ratios(OURS, to, |stretch| stretch.per_second);
        let ratio_of_each_round = ratios(better_statements);
        Self {
            ratio: median(ratio_of_each_round.clone()),
            ratio_of_each_round,
            better_statements,
            ratio_to_transactions: median(ratios(transactions)),
            in_flight: args.in_flight,
            bytes: args.bytes,
            seconds: args.seconds,
            rounds,
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = self.rounds.table("exchanges/s");
        lines.extend(self.rounds.plot("exchanges a second", |stretch| stretch.per_second));
        lines.push(format!(
            "\nratio {:.2} of {} (goal: at least 1.0), {:.2} of one transaction for each step\n{} in flight, {} B each, \
             {} rounds of {} s that count; client, gateway and postgres: processors that each was busy on",
            self.ratio,
            self.better_statements,
            self.ratio_to_transactions,
            self.in_flight,
            self.bytes,
            self.rounds.counted,
            self.seconds
        ));
        lines.join("\n")
    }
}
