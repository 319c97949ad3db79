//! Finished exchanges in a folder beside the journal, one file each. The name of a file begins with the time.

use std::{fs, path::Path};

use countersign_wire::timestamp::Timestamp;
use zeroize::Zeroizing;

use super::port::{JournalError, Retention};
use crate::identity::profile::{ProfileError, private_folder::PrivateFolder};

const ENDING: &str = ".json";

/// The name of a bundle, which sorts by time. `name` has only letters, digits, `-` and `_`.
pub(super) fn dated(name: &str, now: Timestamp) -> String {
    format!("{:020}-{name}", now.unix_micros().max(0))
}

/// How many of the oldest bundles are to be removed. They are given oldest first, with their sizes. The newest one stays.
pub(super) fn to_remove(bundles: &[(&str, usize)], retention: Retention, now: Timestamp) -> usize {
    let oldest = dated("", now.minus(retention.time));
    let mut bytes = bundles.iter().map(|(_, size)| u64::try_from(*size).unwrap_or(u64::MAX)).sum::<u64>();
    let mut removed = 0;
    for (name, size) in bundles.iter().take(bundles.len().saturating_sub(1)) {
        if *name >= oldest.as_str() && bytes <= retention.bytes {
            break;
        }
        bytes = bytes.saturating_sub(u64::try_from(*size).unwrap_or(u64::MAX));
        removed += 1;
    }
    removed
}

/// Writes a bundle and removes those that are too old or too many.
pub(super) fn keep(
    path: &Path,
    name: &str,
    text: &str,
    retention: Retention,
    now: Timestamp,
) -> Result<(), JournalError> {
    let folder = match PrivateFolder::create(path) {
        Err(ProfileError::Exists { .. }) => PrivateFolder::open(path)?,
        folder => folder?,
    };
    let locked = folder.lock()?;
    locked.write(&format!("{}{ENDING}", dated(name, now)), text.as_bytes())?;
    let names = names(path)?;
    let sized = names.iter().map(|name| (name.as_str(), size(&path.join(format!("{name}{ENDING}")))));
    let removed = to_remove(&sized.collect::<Vec<_>>(), retention, now);
    for name in names.iter().take(removed) {
        locked.remove(&format!("{name}{ENDING}"))?;
    }
    Ok(())
}

fn size(path: &Path) -> usize {
    fs::symlink_metadata(path).map_or(0, |found| usize::try_from(found.len()).unwrap_or(usize::MAX))
}

/// The names of all bundles, oldest first.
pub(super) fn names(path: &Path) -> Result<Vec<String>, JournalError> {
    let io = |source| JournalError::Io { path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(io)?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        names.extend(name.filter(|name| !name.starts_with('.')).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// One bundle; `None` if there is none of this name.
pub(super) fn read(path: &Path, name: &str) -> Result<Option<Zeroizing<String>>, JournalError> {
    // Only a name that was listed, so none can leave the folder.
    if !names(path)?.iter().any(|known| known == name) {
        return Ok(None);
    }
    let content = PrivateFolder::open(path)?.read(&format!("{name}{ENDING}"))?;
    let text =
        content.map(|content| std::str::from_utf8(&content).map(|text| Zeroizing::new(text.to_owned())));
    text.transpose().map_err(|_| JournalError::Record(name.to_owned()))
}
