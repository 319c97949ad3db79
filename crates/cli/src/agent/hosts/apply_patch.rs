//! The patch format of `apply_patch`: files by name, and changed lines with some lines around them instead of numbers.

use std::path::Path;

use super::input::content;
use crate::agent::call::FileChange;

/// What a patch does to each file; `None` if it is not certain, such as when its lines are not where it says.
pub(super) fn changes(text: &str, cwd: &Path) -> Option<Vec<FileChange>> {
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
            let path = cwd.join(path.trim());
            let added: Option<Vec<&str>> = body.iter().map(|line| line.strip_prefix('+')).collect();
            let after: String = added?.iter().flat_map(|line| [*line, "\n"]).collect();
            changes.push(FileChange { before: content(&path).ok()?, after: Some(after.into_bytes()), path });
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            let path = cwd.join(path.trim());
            changes.push(FileChange { before: Some(content(&path).ok()??), after: None, path });
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            changes.extend(update(&cwd.join(path.trim()), &body, cwd)?);
        } else {
            return None;
        }
    }
    (!changes.is_empty() && lines.next().is_none()).then_some(changes)
}

fn is_header(line: &str) -> bool {
    ["*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** End Patch"]
        .iter()
        .any(|header| line.starts_with(header))
}

/// A changed file, which may get another name.
fn update(path: &Path, body: &[&str], cwd: &Path) -> Option<Vec<FileChange>> {
    let before = content(path).ok()??;
    let text = std::str::from_utf8(&before).ok()?;
    let (target, body) = match body.split_first() {
        Some((first, rest)) if first.starts_with("*** Move to: ") => {
            (Some(cwd.join(first["*** Move to: ".len()..].trim())), rest)
        }
        _ => (None, body),
    };
    let mut lines: Vec<&str> = text.split('\n').collect();
    // The text after the last line break is no line.
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let after = apply(&lines, body)?;
    let after: String = after.iter().flat_map(|line| [*line, "\n"]).collect();
    let after = Some(after.into_bytes());
    Some(match target {
        None => vec![FileChange { path: path.to_owned(), before: Some(before), after }],
        Some(target) => {
            let moved = FileChange { before: content(&target).ok()?, path: target, after };
            vec![FileChange { path: path.to_owned(), before: Some(before), after: None }, moved]
        }
    })
}

/// Applies the hunks one after the other, each at the first place after the one before that has its lines, as the hosts do. A
/// hunk that only adds goes to the end.
fn apply<'a>(lines: &[&'a str], body: &[&'a str]) -> Option<Vec<&'a str>> {
    let (mut result, mut position) = (Vec::new(), 0);
    let mut hunks: Vec<(Option<&str>, Vec<&'a str>)> = Vec::new();
    for line in body {
        match line.strip_prefix("@@") {
            Some(anchor) => hunks.push((Some(anchor.trim()).filter(|it| !it.is_empty()), Vec::new())),
            None if *line == "*** End of File" => {}
            None => {
                if hunks.is_empty() {
                    hunks.push((None, Vec::new()));
                }
                hunks.last_mut()?.1.push(line);
            }
        }
    }
    for (anchor, hunk) in hunks {
        let start = match anchor {
            Some(anchor) => position + first(lines.get(position..)?, &[anchor])? + 1,
            None => position,
        };
        let side = |other: char| -> Option<Vec<&'a str>> {
            hunk.iter()
                .filter(|line| !line.starts_with(other))
                .map(|line| match line.chars().next() {
                    None => Some(""),
                    Some(' ' | '+' | '-') => Some(&line[1..]),
                    Some(_) => None,
                })
                .collect()
        };
        let (old, new) = (side('+')?, side('-')?);
        let rest = lines.get(start..)?;
        let found = start + if old.is_empty() { rest.len() } else { first(rest, &old)? };
        result.extend_from_slice(&lines[position..found]);
        result.extend(new);
        position = found + old.len();
    }
    result.extend_from_slice(&lines[position..]);
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
}
