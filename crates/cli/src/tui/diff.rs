//! A unified diff, file by file. Every line of the diff is in exactly one file, in its order.

use super::kind::Kind;

/// One file of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'a> {
    /// What its header calls it.
    pub name: String,
    /// Its lines, headers included.
    pub lines: Vec<(Kind, &'a str)>,
    /// Lines that are added.
    pub added: usize,
    /// Lines that are removed.
    pub removed: usize,
    /// Whether its content is not shown as lines.
    pub is_binary: bool,
}

/// The files of a diff. A hunk says how long it is, so a removed line that looks like a header is what it is.
pub fn files(diff: &str) -> Vec<File<'_>> {
    let mut files: Vec<File<'_>> = Vec::new();
    // Lines of the current hunk that are still to come, before and after the change.
    let (mut before, mut after) = (0_u64, 0_u64);
    let lines: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    // A header of Git has been read, whose `---` line does not begin another file.
    let mut in_header = false;
    for (index, line) in lines.iter().copied().enumerate() {
        let is_content = before > 0 || after > 0;
        let next = lines.get(index + 1).copied().unwrap_or_default();
        let begins = !is_content
            && (line.starts_with("diff ")
                || (!in_header && line.starts_with("--- ") && next.starts_with("+++ ")));
        if begins || files.is_empty() {
            files.push(File { name: name(line), lines: Vec::new(), added: 0, removed: 0, is_binary: false });
            in_header = line.starts_with("diff ");
        }
        let Some(file) = files.last_mut() else { continue };
        let kind = match line.as_bytes().first() {
            Some(b'+') if is_content => {
                file.added += 1;
                after = after.saturating_sub(1);
                Kind::Added
            }
            Some(b'-') if is_content => {
                file.removed += 1;
                before = before.saturating_sub(1);
                Kind::Removed
            }
            // "\ No newline at end of file"
            Some(b'\\') if is_content => Kind::Note,
            _ if is_content => {
                (before, after) = (before.saturating_sub(1), after.saturating_sub(1));
                Kind::Text
            }
            _ => {
                if let Some(path) = line.strip_prefix("+++ ").filter(|path| !path.starts_with("/dev/null")) {
                    path.strip_prefix("b/").unwrap_or(path).clone_into(&mut file.name);
                }
                file.is_binary |= line.starts_with("Binary files ") || line.starts_with("GIT binary patch");
                match hunk_lengths(line) {
                    Some(lengths) => {
                        (before, after) = lengths;
                        in_header = false;
                        Kind::Hunk
                    }
                    None => Kind::Note,
                }
            }
        };
        file.lines.push((kind, line));
    }
    files
}

/// The name of a file by the first line of its header.
fn name(line: &str) -> String {
    let git = line.strip_prefix("diff --git a/").and_then(|rest| rest.split_once(" b/"));
    let plain = || line.strip_prefix("--- ").map(|path| path.strip_prefix("a/").unwrap_or(path));
    git.map(|(path, _)| path).or_else(plain).unwrap_or("the beginning of the diff").to_owned()
}

/// The lengths of a hunk by its header, `@@ -<start>[,<length>] +<start>[,<length>] @@`.
fn hunk_lengths(line: &str) -> Option<(u64, u64)> {
    let (before, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(before)?, length(after)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "diff --git a/one.rs b/one.rs\nindex 1..2 100644\n--- a/one.rs\n+++ b/one.rs\n@@ -1,2 +1,2 @@\n a\n--- x\n+++ y\n--- a/two.rs\n+++ b/two.rs\n@@ -1 +1,2 @@\n-b\n+c\n+d\n";

    #[test]
    fn every_line_is_in_one_file() {
        let files = files(TWO);
        let names: Vec<(&str, usize, usize)> =
            files.iter().map(|file| (file.name.as_str(), file.added, file.removed)).collect();
        assert_eq!(names, [("one.rs", 1, 1), ("two.rs", 2, 1)], "a removed `-- x` is no header");
        let lines: Vec<&str> =
            files.iter().flat_map(|file| file.lines.iter().map(|(_, text)| *text)).collect();
        assert_eq!(lines.join("\n") + "\n", TWO);
        assert_eq!(files[0].lines[6], (Kind::Removed, "--- x"));
    }

    #[test]
    fn odd_diffs_lose_nothing_either() {
        for diff in ["", "x", "\n\n", "@@ -1,9 +1,9 @@\n+only", "Binary files a and b differ\n", "--- a\n"] {
            let lines: Vec<&str> =
                files(diff).iter().flat_map(|file| file.lines.iter().map(|(_, text)| *text)).collect();
            assert_eq!(lines.join("\n"), diff.strip_suffix('\n').unwrap_or(diff));
        }
        assert!(files("Binary files a and b differ\n")[0].is_binary);
    }

    #[test]
    fn a_deleted_file_keeps_its_name() {
        let diff = "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!((files(diff)[0].name.as_str(), files(diff).len()), ("gone", 1));
    }
}
