//! Files with a version: what a newer program has written is refused and not guessed.

use std::path::Path;

use countersign_wire::{FromMembers, RawObject};

use super::error::ProfileError;
use crate::json::Count;

/// The object in a file of this version, or of an earlier one.
pub(super) fn parse<'a>(path: &Path, content: &'a [u8], known: u64) -> Result<RawObject<'a>, ProfileError> {
    let raw = RawObject::parse(content).map_err(ProfileError::damaged(path))?;
    let version = raw.members().and_then(|mut members| members.required::<Count>("version"));
    match version.map_err(ProfileError::damaged(path))? {
        Count(version) if (1..=known).contains(&version) => Ok(raw),
        Count(version) => Err(ProfileError::NewerVersion { path: path.to_owned(), version }),
    }
}

/// The typed content of a file of this version, or of an earlier one.
pub(super) fn read<'a, T: FromMembers<'a>>(
    path: &Path,
    content: &'a [u8],
    known: u64,
) -> Result<T, ProfileError> {
    let view = parse(path, content, known)?.view::<T>();
    view.map(countersign_wire::Verbatim::into_view).map_err(ProfileError::damaged(path))
}
