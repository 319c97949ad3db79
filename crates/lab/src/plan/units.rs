//! The figures that a plan is computed from, with where they come from.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Failure;

/// One file, so that a figure that is measured anew is changed once.
const FILE: &str = include_str!("../../units.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    assumption: Vec<Assumption>,
    unit: Vec<Unit>,
}

/// What nobody has measured.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assumption {
    name: String,
    says: String,
    value: f64,
}

/// What one of something costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unit {
    name: String,
    says: String,
    value: f64,
    /// The command that measures it.
    command: String,
}

#[derive(Debug)]
pub(super) struct Units {
    file: File,
    values: BTreeMap<String, f64>,
}

impl Units {
    pub(super) fn read() -> Result<Self, Failure> {
        let file: File = toml::from_str(FILE)?;
        let assumed = file.assumption.iter().map(|it| (it.name.clone(), it.value));
        let measured = file.unit.iter().map(|it| (it.name.clone(), it.value));
        let values: BTreeMap<String, f64> = assumed.chain(measured).collect();
        match values.len() == file.assumption.len() + file.unit.len() {
            true => Ok(Self { file, values }),
            false => Err("units.toml has a name twice".into()),
        }
    }

    /// Takes another value, as `name=value`.
    pub(super) fn set(&mut self, set: &str) -> Result<(), Failure> {
        let (name, value) = set.split_once('=').ok_or_else(|| format!("{set} is not NAME=VALUE"))?;
        let known =
            self.values.get_mut(name).ok_or_else(|| format!("there is no {name}; see plan --figures"))?;
        *known = value.parse().map_err(|_| format!("{value} is not a number"))?;
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Result<f64, Failure> {
        self.values.get(name).copied().ok_or_else(|| format!("units.toml has no {name}").into())
    }

    /// Both tables, as Markdown.
    pub(super) fn tables(&self) -> String {
        let value = |name: &str| number(self.values.get(name).copied().unwrap_or_default());
        let mut lines = vec!["| assumed | figure | name |".to_owned(), "|---|---|---|".to_owned()];
        let assumed = self.file.assumption.iter();
        lines.extend(assumed.map(|it| format!("| {} | {} | `{}` |", it.says, value(&it.name), it.name)));
        lines.extend(["", "| measured | figure | name | by |", "|---|---|---|---|"].map(str::to_owned));
        let measured = self.file.unit.iter();
        lines.extend(
            measured.map(|it| {
                format!("| {} | {} | `{}` | `{}` |", it.says, value(&it.name), it.name, it.command)
            }),
        );
        lines.join("\n")
    }
}

/// With as many digits as say something, and commas.
pub(super) fn number(value: f64) -> String {
    let text =
        if value >= 100.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value}") };
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let digits: Vec<char> = whole.chars().rev().collect();
    let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().collect()).collect();
    groups.join(",").chars().rev().collect::<String>() + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([10_693.0, 0.5, 50e6, 150.4].map(number), ["10,693", "0.5", "50,000,000", "150"]);
    }

    #[test]
    fn a_figure_that_is_set_counts_and_an_unknown_one_is_refused() {
        let mut units = Units::read().unwrap();
        units.set("agent_hours=3").unwrap();
        assert!((units.get("agent_hours").unwrap() - 3.0).abs() < f64::EPSILON);
        assert!(units.set("agent_minutes=3").is_err() && units.set("agent_hours").is_err());
    }
}
