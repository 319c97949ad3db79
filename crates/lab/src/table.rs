//! The report of `bench commits` as a table.

use crate::report::{Comparison, Report, Summary};

const HEAD: [&str; 12] = [
    "store",
    "workload",
    "writers",
    "on/s",
    "off/s",
    "ratio",
    "on p50",
    "on p99",
    "off p50",
    "off p99",
    "foreign on",
    "foreign off",
];

const WORDS: usize = 3;

/// Formats rows as aligned columns: the first `words` columns contain words, aligned left; the others
/// contain figures, aligned right.
pub(crate) fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]], words: usize) -> Vec<String> {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < words { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

pub(crate) fn write(report: &Report) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(report.comparisons.iter().map(row));
    let mut lines = aligned(&rows, WORDS);
    let Report { in_flight, rounds, seconds, approvers, enforcers, .. } = report;
    lines.push(format!(
        "\n{in_flight} changes in flight, {rounds} rounds of {seconds} s each, \
         mailboxes of {approvers} approvers and {enforcers} enforcers; latencies in ms"
    ));
    lines.join("\n")
}

fn row(comparison: &Comparison) -> [String; HEAD.len()] {
    let Comparison { store, workload, on, off, ratio, .. } = comparison;
    let rate = |summary: &Summary| format!("{:.0}", summary.commits_per_second);
    let foreign = |summary: &Summary| format!("{:.0} %", summary.foreign_cpu * 100.0);
    [
        store.to_string(),
        workload.to_string(),
        format!("{} : {}", on.writers, off.writers),
        rate(on),
        rate(off),
        format!("{ratio:.2}"),
        format!("{:.2}", on.p50_ms),
        format!("{:.2}", on.p99_ms),
        format!("{:.2}", off.p50_ms),
        format!("{:.2}", off.p99_ms),
        foreign(on),
        foreign(off),
    ]
}
