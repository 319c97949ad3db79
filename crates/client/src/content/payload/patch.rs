//! The payload of `patch.review`: a unified diff, and what it does to each file.

use countersign_wire::{Error, FromMembers, Members, hash::Sha256Hex};
use serde::Serialize;

use super::{
    context::Context,
    effect::Effect,
    part::{Text, count, text},
    visible::visible_code,
};
use crate::json::vocabulary;

/// A change of files before it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// The whole change as a unified diff.
    pub diff: String,
    /// Every file that it changes; the lines of all of them together are those of the diff.
    pub files: Vec<PatchFile>,
    /// What it does; absent if the enforcer has not examined it, empty if it has found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// The call behind it, and who asks.
    #[serde(flatten)]
    pub context: Context,
}

vocabulary! {
    /// What happens to a file.
    pub enum FileStatus {
        /// It is new, and nothing was at its path.
        Added = "added",
        /// Its content or its mode changes.
        Modified = "modified",
        /// It is removed, with its content.
        Deleted = "deleted",
        /// It gets another path, and perhaps another content.
        Renamed = "renamed",
        /// It is new, from the content of another.
        Copied = "copied",
    }
}

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchFile {
    /// Where it is afterwards; of a deleted file, where it was.
    pub path: String,
    /// What happens to it.
    pub status: FileStatus,
    /// Where it was, of a renamed or copied one; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_path: Option<String>,
    /// Lines that are added; 0 if the file is binary.
    pub added: u64,
    /// Lines that are removed; 0 if the file is binary.
    pub removed: u64,
    /// SHA-256 of the content that the patch expects; absent if the file is new, required otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_digest: Option<Sha256Hex>,
    /// SHA-256 of the content after the patch; absent if the file is deleted, required otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<Sha256Hex>,
}

impl Patch {
    /// A patch of which nothing but the change is known.
    pub fn new(diff: impl Into<String>, files: Vec<PatchFile>) -> Self {
        Self { diff: diff.into(), files, effects: None, context: Context::default() }
    }

    /// Lines that are added and removed in all files.
    pub fn lines(&self) -> (u64, u64) {
        self.files.iter().fold((0, 0), |(added, removed), file| {
            (u64::saturating_add(added, file.added), u64::saturating_add(removed, file.removed))
        })
    }

    /// The folder that all files are in; empty if there is none but the root.
    pub(super) fn place(&self) -> String {
        common_folder(&self.files)
    }

    /// How much changes, and where.
    pub(super) fn headline(&self) -> String {
        let (added, removed) = self.lines();
        let count = match self.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let place = match self.files.as_slice() {
            [only] => only.path.clone(),
            files => common_folder(files),
        };
        let place = if place.is_empty() { place } else { format!(" in {}", visible_code(&place)) };
        format!("{count}, +{added} −{removed}{place}")
    }

    /// Takes the members after the marker.
    pub(super) fn from_members(members: &mut Members<'_>, context: Context) -> Result<Self, Error> {
        let patch = Self {
            diff: text(members, "diff")?,
            files: members.required("files")?,
            effects: members.optional("effects")?,
            context,
        };
        if patch.files.is_empty() {
            return Err(Error::breaks("files", "must not be empty"));
        }
        // The list is read first, and must not play down what follows.
        let hunks = patch.hunks();
        let lines =
            hunks.iter().fold((0, 0), |(added, removed), it| (added + it.added, removed + it.removed));
        if lines != patch.lines() {
            return Err(Error::breaks("files", "have other numbers of lines than the diff"));
        }
        Ok(patch)
    }
}

/// The folder that all files are in; empty if there is none but the root.
fn common_folder(files: &[PatchFile]) -> String {
    let folder = |path: &'_ str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let mut folders = files.iter().map(|file| folder(&file.path));
    let first = folders.next().unwrap_or_default();
    folders.fold(first, |shared, other| {
        let same = shared.split('/').zip(other.split('/')).take_while(|(one, other)| one == other);
        same.map(|(part, _)| part).collect::<Vec<_>>().join("/")
    })
}

/// A part of a unified diff.
pub(super) struct Hunk<'a> {
    /// The file that it belongs to, as the header before it names it.
    pub(super) path: &'a str,
    /// The lines before the change.
    pub(super) before: String,
    /// The lines after it.
    pub(super) after: String,
    added: u64,
    removed: u64,
}

impl Patch {
    /// The hunks of the diff. Each says how long it is, so a removed line that looks like a header of a file is what it is.
    pub(super) fn hunks(&self) -> Vec<Hunk<'_>> {
        let mut hunks: Vec<Hunk<'_>> = Vec::new();
        let (mut path, mut last) = ("", b' ');
        // Lines of the current hunk that are still to come, before and after the change.
        let (mut before, mut after) = (0_u64, 0_u64);
        for line in self.diff.split('\n') {
            let hunk = match hunks.last_mut() {
                Some(hunk) if before > 0 || after > 0 || line.starts_with('\\') => hunk,
                _ => {
                    path = path_of_header(line).unwrap_or(path);
                    if let Some(lengths) = hunk_lengths(line) {
                        (before, after) = lengths;
                        let (added, removed) = (0, 0);
                        hunks.push(Hunk {
                            path,
                            before: String::new(),
                            after: String::new(),
                            added,
                            removed,
                        });
                    }
                    continue;
                }
            };
            match line.as_bytes().first() {
                Some(b'+') => {
                    hunk.added += 1;
                    after = after.saturating_sub(1);
                    push_line(&mut hunk.after, &line[1..]);
                }
                Some(b'-') => {
                    hunk.removed += 1;
                    before = before.saturating_sub(1);
                    push_line(&mut hunk.before, &line[1..]);
                }
                // "\ No newline at end of file"
                Some(b'\\') => {
                    for (side, other) in [(&mut hunk.before, b'+'), (&mut hunk.after, b'-')] {
                        if last != other && side.ends_with('\n') {
                            side.pop();
                        }
                    }
                }
                _ => {
                    before = before.saturating_sub(1);
                    after = after.saturating_sub(1);
                    let line = line.get(1..).unwrap_or_default();
                    push_line(&mut hunk.before, line);
                    push_line(&mut hunk.after, line);
                }
            }
            last = line.bytes().next().unwrap_or(b' ');
        }
        hunks
    }
}

/// The file in a line `+++ b/<path>`, or `--- a/<path>` if nothing is left of it.
fn path_of_header(line: &str) -> Option<&str> {
    line.strip_prefix("+++ b/").or_else(|| line.strip_prefix("--- a/"))
}

fn push_line(side: &mut String, line: &str) {
    side.push_str(line);
    side.push('\n');
}

/// The lengths of a hunk by its header, `@@ -<start>[,<length>] +<start>[,<length>] @@`.
fn hunk_lengths(line: &str) -> Option<(u64, u64)> {
    let (before, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(before)?, length(after)?))
}

impl FromMembers<'_> for PatchFile {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let previous_path: Option<Text> = members.optional("previousPath")?;
        let file = Self {
            path: text(members, "path")?,
            status: members.required("status")?,
            previous_path: previous_path.map(|text| text.0),
            added: count(members, "added")?,
            removed: count(members, "removed")?,
            base_digest: members.optional("baseDigest")?,
            result_digest: members.optional("resultDigest")?,
        };
        members.close()?;
        let (is_new, is_gone) = (file.status == FileStatus::Added, file.status == FileStatus::Deleted);
        let has_moved = matches!(file.status, FileStatus::Renamed | FileStatus::Copied);
        if file.base_digest.is_none() != is_new {
            return Err(Error::breaks("baseDigest", "must be there unless the file is added"));
        }
        if file.result_digest.is_none() != is_gone {
            return Err(Error::breaks("resultDigest", "must be there unless the file is deleted"));
        }
        if file.previous_path.is_some() != has_moved {
            return Err(Error::breaks("previousPath", "must be there if the file is renamed or copied"));
        }
        Ok(file)
    }
}
