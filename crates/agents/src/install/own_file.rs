//! A file that is ours from its first line to its last.

use std::path::Path;

use super::settings_file::{Change, SettingsFile};
use crate::tool::exit::{Exit, Failure};

/// What every such file has in its first line.
pub const MARK: &str = "Written by `countersign install";

/// Writes the file, unless somebody else's is there.
pub fn put(path: &Path, content: String, new_mode: u32) -> Result<Change, Failure> {
    let file = SettingsFile::read(path)?;
    match file.text() {
        Some(text) if !is_ours(text) => Err(not_ours(path)),
        _ => Ok(Change { file, after: Some(content), new_mode }),
    }
}

/// Removes the file if there is one.
pub fn take(path: &Path) -> Result<Option<Change>, Failure> {
    let file = SettingsFile::read(path)?;
    match file.text() {
        None => Ok(None),
        Some(text) if !is_ours(text) => Err(not_ours(path)),
        Some(_) => Ok(Some(Change { file, after: None, new_mode: 0o600 })),
    }
}

fn is_ours(text: &str) -> bool {
    text.lines().next().is_some_and(|first| first.contains(MARK))
}

fn not_ours(path: &Path) -> Failure {
    let what = format!("{} was not written by this tool; it was left alone", path.display());
    Failure::new(Exit::Failed, what).next("move it away, and try again")
}
