//! What changes in a text, as the lines of a unified diff.

/// Lines before and after a change that are shown with it.
const CONTEXT: usize = 3;

/// Beyond this many lines on both sides together, a part is shown as removed and added as a whole.
const MAX_COMPARED: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// The difference between two texts, `None` standing for no file. Empty if there is none.
pub fn unified(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    if before == after {
        return String::new();
    }
    let label = |text: Option<&str>| if text.is_some() { name } else { "/dev/null" }.to_owned();
    let mut shown = format!("--- {}\n+++ {}\n", label(before), label(after));
    let lines = compared(before.unwrap_or_default(), after.unwrap_or_default());
    let changed: Vec<usize> = (0..lines.len()).filter(|at| !matches!(lines[*at], Line::Same(_))).collect();
    let mut start = 0;
    while start < changed.len() {
        let mut end = start;
        while end + 1 < changed.len() && changed[end + 1] - changed[end] <= 2 * CONTEXT {
            end += 1;
        }
        let from = changed[start].saturating_sub(CONTEXT);
        let to = (changed[end] + CONTEXT + 1).min(lines.len());
        shown += &hunk(&lines, from, to);
        start = end + 1;
    }
    shown
}

fn hunk(lines: &[Line<'_>], from: usize, to: usize) -> String {
    let old = |part: &[Line<'_>]| part.iter().filter(|line| !matches!(line, Line::Added(_))).count();
    let new = |part: &[Line<'_>]| part.iter().filter(|line| !matches!(line, Line::Removed(_))).count();
    let (before, part) = (&lines[..from], &lines[from..to]);
    let place =
        |first: usize, count: usize| format!("{},{count}", if count == 0 { first } else { first + 1 });
    let mut text = format!("@@ -{} +{} @@\n", place(old(before), old(part)), place(new(before), new(part)));
    for line in part {
        let (sign, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Removed(line) => ('-', line),
            Line::Added(line) => ('+', line),
        };
        text.push(sign);
        text.push_str(line.trim_end_matches(['\n', '\r']));
        text.push('\n');
        if !line.ends_with('\n') {
            text.push_str("\\ No newline at end of file\n");
        }
    }
    text
}

/// Both texts line by line, with the longest common part in between left out.
fn compared<'t>(before: &'t str, after: &'t str) -> Vec<Line<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (mid_old, mid_new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line<'t>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(mid_old, mid_new));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    if old.len() + new.len() > MAX_COMPARED {
        let removed = old.iter().map(|line| Line::Removed(line));
        return removed.chain(new.iter().map(|line| Line::Added(line))).collect();
    }
    // common[i][j]: how many lines the rests from i and j have in common, in order.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(Line::Removed(old[i]));
            i += 1;
        } else {
            lines.push(Line::Added(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_what_patch_understands() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13";
        let expected = "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13\n\\ No newline at end of file\n";
        assert_eq!(unified("f", Some(before), Some(after)), expected);
    }

    #[test]
    fn new_and_removed_files_are_said_to_be_so() {
        assert_eq!(unified("f", None, Some("a\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("f", Some("a\n"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(unified("f", Some("a\n"), Some("a\n")), "");
    }
}
