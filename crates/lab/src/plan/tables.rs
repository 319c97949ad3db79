//! Plans as tables in Markdown.

use clap::ValueEnum;

use super::{model::Plan, units::number};

/// The cells of a plan's row.
type Cells = fn(&Plan) -> Vec<String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Table {
    /// What comes in at the busiest time.
    Load,
    /// Processors, memory, traffic and disk for it.
    Cost,
    /// Cells, and what binds in one.
    Cells,
}

impl Table {
    pub(super) const ALL: [Self; 3] = [Self::Load, Self::Cost, Self::Cells];

    pub(super) fn of(self, plans: &[Plan]) -> String {
        let (head, row): (&[&str], Cells) = match self {
            Self::Load => (
                &[
                    "developers",
                    "active a day",
                    "connections",
                    "agents at once",
                    "requests to people",
                    "HTTP requests",
                    "connects",
                    "pings",
                    "commits",
                ],
                load,
            ),
            Self::Cost => (
                &[
                    "developers",
                    "processors, gateway",
                    "processors, database",
                    "memory of connections",
                    "traffic",
                    "database's log",
                    "disk",
                ],
                cost,
            ),
            Self::Cells => (
                &[
                    "developers",
                    "cells",
                    "nodes of each",
                    "primaries of each",
                    "what binds, and how much of one primary it needs",
                ],
                cells,
            ),
        };
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let rule = vec!["---".to_owned(); head.len()].join("|");
        let mut lines = vec![line(head.iter().map(|it| (*it).to_owned()).collect()), format!("|{rule}|")];
        lines.extend(plans.iter().map(row).map(line));
        lines.join("\n")
    }
}

fn load(plan: &Plan) -> Vec<String> {
    let load = &plan.load;
    let mut cells: Vec<String> =
        [plan.developers, load.active.ceil(), load.connections.ceil()].map(rounded).into();
    cells.push(if load.agents < 10.0 { format!("{:.1}", load.agents) } else { rounded(load.agents) });
    cells.extend([load.asks, load.requests, load.connects, load.pings, load.commits].map(rate));
    cells
}

fn cost(plan: &Plan) -> Vec<String> {
    let cost = &plan.cost;
    vec![
        rounded(plan.developers),
        cores(cost.gateway_cores),
        cores(cost.database_cores),
        amount(cost.connection_memory),
        format!("{}/s", amount(cost.traffic)),
        format!("{}/s", amount(cost.log)),
        amount(cost.disk),
    ]
}

fn cells(plan: &Plan) -> Vec<String> {
    let parts = &plan.parts;
    let (what, part) = parts.binds;
    let part = if part < 0.001 { "under 0.1 %".to_owned() } else { format!("{:.1} %", part * 100.0) };
    vec![
        rounded(plan.developers),
        rounded(parts.cells),
        rounded(parts.nodes),
        rounded(parts.primaries),
        format!("{what}, {part}"),
    ]
}

/// With three digits that say something.
fn rounded(value: f64) -> String {
    let digits = if value > 0.0 { value.log10().floor() } else { 0.0 };
    let step = 10_f64.powf((digits - 2.0).max(0.0));
    number((value / step).round() * step)
}

fn rate(value: f64) -> String {
    if value < 10.0 { format!("{}/s", two_digits(value)) } else { format!("{}/s", rounded(value)) }
}

fn cores(value: f64) -> String {
    if value < 10.0 { two_digits(value) } else { rounded(value) }
}

fn two_digits(value: f64) -> String {
    let decimals = if value >= 1.0 {
        1
    } else if value >= 0.1 {
        2
    } else if value >= 0.01 {
        3
    } else {
        4
    };
    format!("{value:.decimals$}")
}

fn amount(bytes: f64) -> String {
    let sizes = [("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    match sizes.into_iter().find(|(_, size)| bytes >= *size) {
        Some((name, size)) => {
            let value = bytes / size;
            let decimals = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.decimals$} {name}")
        }
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_no_more_digits_than_are_known() {
        assert_eq!([1_234_567.0, 999.4, 12.0, 0.0].map(rounded), ["1,230,000", "999", "12", "0"]);
        assert_eq!([1_234.0, 9.87, 0.123, 0.00012].map(rate), ["1,230/s", "9.9/s", "0.12/s", "0.0001/s"]);
        assert_eq!([12.0, 1_500.0, 2.5e12, 1.234e15].map(amount), ["12 B", "1.50 KB", "2.50 TB", "1.23 PB"]);
    }
}
