//! What a population of developers needs: the load at its busiest time, what that costs, and how it is divided. Computed from units that
//! were measured and from assumptions, both in `units.toml`.

mod model;
mod tables;
mod units;

use clap::Args;

use crate::Failure;
use units::Units;

/// Arguments of `countersign-lab plan`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// How many developers use it; may be given several times.
    #[arg(long, value_name = "N", required_unless_present = "figures")]
    developers: Vec<u64>,
    /// Another value of a unit or of an assumption, by its name; may be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Only one of the tables.
    #[arg(long, value_enum)]
    table: Option<tables::Table>,
    /// Print the assumptions and the units instead.
    #[arg(long, conflicts_with_all = ["developers", "table"])]
    figures: bool,
}

/// The tables, as Markdown.
pub(crate) fn run(args: &PlanArgs) -> Result<String, Failure> {
    let mut units = Units::read()?;
    for set in &args.set {
        units.set(set)?;
    }
    if args.figures {
        return Ok(units.tables());
    }
    let plans = args
        .developers
        .iter()
        .map(|count| model::Plan::new(*count, &units))
        .collect::<Result<Vec<_>, _>>()?;
    let chosen = tables::Table::ALL.into_iter().filter(|table| args.table.is_none_or(|only| only == *table));
    let texts: Vec<String> = chosen.map(|table| table.of(&plans)).collect();
    Ok(texts.join("\n\n"))
}
