//! Aligned columns.

/// Formats rows as aligned columns: the first `words` columns contain words, aligned left; the others contain figures,
/// aligned right.
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

/// The same, below a line with the names of the columns.
pub(crate) fn headed<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
    words: usize,
) -> Vec<String> {
    let mut all = vec![head.map(str::to_owned)];
    all.extend(rows);
    aligned(&all, words)
}
