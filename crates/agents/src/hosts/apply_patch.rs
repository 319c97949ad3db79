//! The patch format of `apply_patch`: files by name, and changed lines with some lines around them instead of numbers.
//!
//! What is shown must be what the host writes, so this follows the search of Codex (its crate apply-patch): lines that are
//! equal come first, and only without any it looks for lines that are nearly so. A hunk with `*** End of File` is looked for at
//! the end alone. Wherever versions of Codex, its two ways to treat line ends, or OpenCode could differ, the result is `None`:
//! the call is then shown as it is.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::input::content;
use crate::{calls::call::FileChange, tool::files};

/// What a patch does to each file; `None` if it is not certain, such as when its lines are not where it says.
pub fn changes(text: &str, cwd: &Path) -> Option<Vec<FileChange>> {
    // Line ends of two characters are kept by some and replaced by others.
    if text.contains('\r') {
        return None;
    }
    let mut lines = text.trim_end().lines().peekable();
    if lines.next()?.trim() != "*** Begin Patch" {
        return None;
    }
    let mut changes = Vec::new();
    loop {
        let line = lines.next()?;
        if line.trim() == "*** End Patch" {
            break;
        }
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| !is_header(line)) {
            body.push(line);
        }
        if let Some(path) = line.strip_prefix("*** Add File: ") {
            let path = file(path, cwd)?;
            let added: Option<Vec<&str>> = body.iter().map(|line| line.strip_prefix('+')).collect();
            let after: String = added?.iter().flat_map(|line| [*line, "\n"]).collect();
            if body.is_empty() {
                return None;
            }
            changes.push(FileChange { before: text_of(&path).ok()?, after: Some(after.into_bytes()), path });
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            let path = file(path, cwd)?;
            changes.push(FileChange { before: Some(text_of(&path).ok()??), after: None, path });
            if !body.is_empty() {
                return None;
            }
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            changes.extend(update(&file(path, cwd)?, &body, cwd)?);
        } else {
            return None;
        }
    }
    // A file that is changed twice is changed one time after the other, and here each change is of what is there now.
    let files: BTreeSet<PathBuf> = changes.iter().map(|change| real(&change.path)).collect();
    (!changes.is_empty() && files.len() == changes.len() && lines.next().is_none()).then_some(changes)
}

fn is_header(line: &str) -> bool {
    ["*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** End Patch"]
        .iter()
        .any(|header| line.starts_with(header))
}

/// The file that a header names; `None` for names that hosts read differently.
fn file(name: &str, cwd: &Path) -> Option<PathBuf> {
    let name = name.trim_end();
    let is_odd = |char: char| char.is_control() || matches!(char, '%' | '\\');
    let is_plain = !name.is_empty() && !name.starts_with(char::is_whitespace) && !name.contains(is_odd);
    is_plain.then(|| cwd.join(name))
}

/// The file with links followed, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let of_folder = || Some(files::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    files::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_owned())
}

/// Nobody can show what is in a file.
struct NotText;

/// What is in a file, if it is text; `None` if there is no file.
fn text_of(path: &Path) -> Result<Option<Vec<u8>>, NotText> {
    let content = content(path).map_err(|_| NotText)?;
    match content.as_ref().is_none_or(|bytes| std::str::from_utf8(bytes).is_ok()) {
        true => Ok(content),
        false => Err(NotText),
    }
}

/// A changed file, which may get another name.
fn update(path: &Path, body: &[&str], cwd: &Path) -> Option<Vec<FileChange>> {
    let before = text_of(path).ok()??;
    let text = std::str::from_utf8(&before).ok()?;
    let (target, body) = match body.split_first() {
        Some((first, rest)) if first.starts_with("*** Move to: ") => {
            (Some(file(&first["*** Move to: ".len()..], cwd)?), rest)
        }
        _ => (None, body),
    };
    // Whether a last line without an end gets one, and which line ends are kept, is not the same everywhere.
    if text.contains('\r') || !(text.is_empty() || text.ends_with('\n')) {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let after = apply(&lines, &hunks(body)?)?;
    // Empty lines at the end are lost by some and kept by others.
    if after.last().is_some_and(|line| line.is_empty()) {
        return None;
    }
    let after: String = after.iter().flat_map(|line| [*line, "\n"]).collect();
    let after = Some(after.into_bytes());
    Some(match target {
        None => vec![FileChange { path: path.to_owned(), before: Some(before), after }],
        Some(target) => {
            let moved = FileChange { before: text_of(&target).ok()?, path: target, after };
            vec![FileChange { path: path.to_owned(), before: Some(before), after: None }, moved]
        }
    })
}

/// Lines that are replaced by others.
#[derive(Debug, Default)]
struct Hunk<'a> {
    /// A line after which it is looked for.
    anchor: Option<&'a str>,
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    is_at_end: bool,
}

impl Hunk<'_> {
    fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }
}

/// The hunks of an update; `None` if the text is not exactly of the format.
fn hunks<'a>(body: &[&'a str]) -> Option<Vec<Hunk<'a>>> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    for &line in body {
        let trimmed = line.trim_end();
        let anchor = trimmed.strip_prefix("@@ ");
        if trimmed == "@@" || anchor.is_some() {
            if hunks.last().is_some_and(Hunk::is_empty) {
                return None;
            }
            hunks.push(Hunk { anchor, ..Hunk::default() });
            continue;
        }
        if hunks.is_empty() {
            hunks.push(Hunk::default());
        }
        let hunk = hunks.last_mut()?;
        if hunk.is_at_end {
            return None;
        }
        match (line.chars().next(), line.get(1..)) {
            (None, _) => {
                hunk.old.push("");
                hunk.new.push("");
            }
            (Some(' '), Some(rest)) => {
                hunk.old.push(rest);
                hunk.new.push(rest);
            }
            (Some('+'), Some(rest)) => hunk.new.push(rest),
            (Some('-'), Some(rest)) => hunk.old.push(rest),
            _ if line == "*** End of File" && !hunk.is_empty() => hunk.is_at_end = true,
            _ => return None,
        }
    }
    (!hunks.is_empty() && !hunks.iter().any(Hunk::is_empty)).then_some(hunks)
}

/// Applies the hunks, each at the first place after the one before that has its lines, or at the end if it says so. One that
/// only adds goes to the end.
fn apply<'a>(lines: &[&'a str], hunks: &[Hunk<'a>]) -> Option<Vec<&'a str>> {
    let (mut replaced, mut added, mut position) = (Vec::new(), Vec::new(), 0);
    for hunk in hunks {
        if let Some(anchor) = hunk.anchor {
            position += first(lines.get(position..)?, &[anchor])? + 1;
        }
        if hunk.old.is_empty() {
            // Before or after an empty last line: that is not the same everywhere.
            if lines.last().is_some_and(|line| line.is_empty()) {
                return None;
            }
            added.extend_from_slice(&hunk.new);
            continue;
        }
        let found = if hunk.is_at_end {
            let at = lines.len().checked_sub(hunk.old.len()).filter(|at| *at >= position)?;
            (lines[at..] == hunk.old[..]).then_some(at)?
        } else {
            position + first(lines.get(position..)?, &hunk.old)?
        };
        replaced.push((found, hunk));
        position = found + hunk.old.len();
    }
    let (mut result, mut position) = (Vec::new(), 0);
    for (found, hunk) in replaced {
        result.extend_from_slice(lines.get(position..found)?);
        result.extend_from_slice(&hunk.new);
        position = found + hunk.old.len();
    }
    result.extend_from_slice(lines.get(position..)?);
    result.extend(added);
    Some(result)
}

/// The first place at which these lines follow each other.
fn first(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    lines.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(content: &str, patch: &str) -> Option<Vec<(String, Option<String>)>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), content).unwrap();
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
        let name = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
        let found = changes(patch, folder.path())?;
        Some(found.into_iter().map(|it| (name(&it.path), text(it.after))).collect())
    }

    fn one(content: &str, hunk: &str) -> Option<String> {
        let patch = format!("*** Begin Patch\n*** Update File: a.txt\n{hunk}\n*** End Patch\n");
        let found = applied(content, &patch)?;
        assert_eq!(found.len(), 1);
        found[0].1.clone()
    }

    #[test]
    fn hunks_are_applied_where_their_lines_are() {
        assert_eq!(one("one\ntwo\n", "@@\n one\n-two\n+deux").as_deref(), Some("one\ndeux\n"));
        assert_eq!(one("a\nb\nc\nb\n", "@@ c\n-b\n+B").as_deref(), Some("a\nb\nc\nB\n"));
        assert_eq!(one("a\nb\n", "@@\n-a\n+A\n@@\n-b\n+B").as_deref(), Some("A\nB\n"));
        assert_eq!(one("a\nb\na\n", "@@\n-a\n+A").as_deref(), Some("A\nb\na\n"));
        assert_eq!(one("a\n", "@@\n+b").as_deref(), Some("a\nb\n"));
    }

    #[test]
    fn what_is_not_certain_is_not_applied() {
        assert_eq!(one("a\n", "@@\n-x\n+A"), None);
        assert_eq!(one("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A"), None);
        assert_eq!(one("a\n", "@@\n?a"), None);
        for patch in [
            "",
            "*** Begin Patch",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Erase File: a.txt\n*** End Patch",
            "*** Begin Patch\n*** Update File: none.txt\n@@\n-a\n+b\n*** End Patch",
            "*** Begin Patch\n*** Delete File: none.txt\n*** End Patch",
            "*** Begin Patch\n*** Add File: b.txt\nx\n*** End Patch",
            "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\nmore",
        ] {
            assert_eq!(applied("a\n", patch), None, "{patch}");
        }
    }

    #[test]
    fn files_are_added_deleted_and_moved() {
        let patch = "*** Begin Patch\n*** Add File: b.txt\n+x\n+y\n*** Delete File: a.txt\n*** End Patch";
        let expected = [("b.txt".to_owned(), Some("x\ny\n".to_owned())), ("a.txt".to_owned(), None)];
        assert_eq!(applied("a\n", patch).unwrap(), expected);
        let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n@@\n-a\n+A\n*** End Patch";
        let expected = [("a.txt".to_owned(), None), ("c.txt".to_owned(), Some("A\n".to_owned()))];
        assert_eq!(applied("a\n", patch).unwrap(), expected);
    }

    /// Codex looks for such a hunk at the end alone: the first place with these lines is another one.
    #[test]
    fn a_hunk_for_the_end_of_the_file_changes_the_end() {
        let hunk = "@@\n-b\n+B\n*** End of File";
        assert_eq!(one("b\na\nb\n", hunk).as_deref(), Some("b\na\nB\n"));
        assert_eq!(one("b\na\n", hunk), None, "it is not at the end");
        let two = "@@\n a\n-b\n+B\n@@\n-b\n+C\n*** End of File";
        assert_eq!(one("a\nb\nx\nb\nx\nb\n", two).as_deref(), Some("a\nB\nx\nb\nx\nC\n"));
        assert_eq!(one("a\nb\n", two), None, "the end belongs to the hunk before");
        assert_eq!(one("a\n", "@@\n+b\n*** End of File").as_deref(), Some("a\nb\n"));
        assert_eq!(one("a\nb\n", "@@\n-b\n+B\n*** End of File\n+c"), None);
    }

    /// Codex goes on to lines that differ in white space or in punctuation; which one it takes is its own matter.
    #[test]
    fn lines_that_are_only_nearly_equal_are_not_certain() {
        for content in ["a \nb\n", "  a\nb\n", "a\r\nb\r\n", "a\u{a0}\nb\n"] {
            assert_eq!(one(content, "@@\n-a\n+A"), None, "{content:?}");
        }
        assert_eq!(one("it\u{2019}s\n", "@@\n-it's\n+its"), None);
        // What is equal comes first, also after a place that is nearly so.
        assert_eq!(one("a \na\n", "@@\n-a\n+A").as_deref(), Some("a \nA\n"));
        assert_eq!(one(" c\nb\nc\nb\n", "@@ c\n-b\n+B").as_deref(), Some(" c\nb\nc\nB\n"));
    }

    #[test]
    fn what_hosts_do_differently_is_not_certain() {
        assert_eq!(one("a\nb", "@@\n-a\n+A"), None, "the last line has no end");
        assert_eq!(one("a\n\n", "@@\n-a\n+A"), None, "an empty line at the end");
        assert_eq!(one("a\n\n", "@@\n+b"), None);
        assert_eq!(one("a\nc\nb\n", "@@c\n-b\n+B"), None, "an anchor needs a space");
        assert_eq!(one("a\n", "@@\n@@\n-a\n+A"), None);
        assert_eq!(one("a\n", "@@\n-a\r\n+A"), None);
        // Adding goes to the end, wherever the other hunks are.
        assert_eq!(one("a\nb\n", "@@\n+c\n@@\n-a\n+A").as_deref(), Some("A\nb\nc\n"));
        for patch in [
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** Update File: a.txt\n@@\n-a\n+c\n*** End Patch",
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** Delete File: ./a.txt\n*** End Patch",
            "*** Begin Patch\n*** Update File: a.txt\n*** Move to: a.txt\n@@\n-a\n+b\n*** End Patch",
            "*** Begin Patch\n*** Update File:  a.txt\n@@\n-a\n+b\n*** End Patch",
            "*** Begin Patch\n*** Update File: %61.txt\n@@\n-a\n+b\n*** End Patch",
            "*** Begin Patch\n*** Delete File: a.txt\n-a\n*** End Patch",
            "*** Begin Patch\n*** Add File: b.txt\n*** End Patch",
            "*** Begin Patch\n*** Environment ID: x\n*** Delete File: a.txt\n*** End Patch",
            "*** Begin Patch\n*** Update File: a.txt\n*** End Patch",
        ] {
            assert_eq!(applied("a\n", patch), None, "{patch}");
        }
    }

    #[test]
    fn what_is_no_text_is_not_shown_as_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), b"a\n\xff\n").unwrap();
        for rest in
            ["*** Update File: a.txt\n@@\n-a\n+b", "*** Delete File: a.txt", "*** Add File: a.txt\n+b"]
        {
            let patch = format!("*** Begin Patch\n{rest}\n*** End Patch");
            assert!(changes(&patch, folder.path()).is_none(), "{rest}");
        }
    }
}
