//! Built in: what asks by itself need not be asked about first.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::texts::Part;
use crate::{platform::own_program, tool::files};

/// Commands of this tool that ask a person before anything happens.
const ASKING: &[&str] = &["exec", "ask"];

/// Options that would let it ask in the name of somebody else.
const OTHER_IDENTITY: &[&str] = &["--profile", "--home"];

/// This program, as the file that runs: a program of the same name or path that is another file is not it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnProgram {
    device: u64,
    inode: u64,
}

impl OwnProgram {
    /// The running program. Nobody can write a file that runs, so the same file has the same content.
    pub(super) fn running() -> Option<Self> {
        own_program().and_then(fs::metadata).ok().map(|found| Self::of(&found))
    }

    fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    fn at(path: &Path) -> Option<Self> {
        files::metadata(path).ok().map(|found| Self::of(&found))
    }

    /// Where a part of a text runs this program to ask; `None` if it does anything else.
    pub(super) fn asks_in(self, part: &Part, path: Option<&OsStr>) -> Option<String> {
        let (program, arguments) = part.words.split_first()?;
        let command = arguments.first().filter(|word| ASKING.contains(&word.as_str()))?;
        let own = arguments.iter().take_while(|word| *word != "--");
        let is_somebody_else = |word: &String| OTHER_IDENTITY.iter().any(|option| word.starts_with(option));
        let is_own =
            |place: &PathBuf| found(program, place, path).and_then(|path| Self::at(&path)) == Some(self);
        let is_certain = !part.places.is_empty() && part.places.iter().all(is_own);
        (is_certain && !own.into_iter().any(is_somebody_else))
            .then(|| format!("built in: `countersign {command}` asks by itself"))
    }
}

/// The file that a shell runs for a word.
fn found(word: &str, place: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(place.join(word));
    }
    let candidates = env::split_paths(path?).map(|folder| place.join(folder).join(word));
    candidates.into_iter().find(|candidate| files::is_file(candidate))
}
