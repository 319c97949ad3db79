//! The change that puts our entries into a host's settings, and the one that takes them out again.

use std::path::Path;

use super::{
    hook_entries::{Entries, Format},
    settings_file::{Change, SettingsFile},
};
use crate::tool::exit::{Exit, Failure};

/// Puts the entries in. It is refused where they could not be taken out again to the byte.
pub fn put(format: Format, path: &Path, entries: &Entries, new_mode: u32) -> Result<Change, Failure> {
    let file = SettingsFile::read(path)?;
    let malformed = |problem| file.malformed(&problem);
    let after = format.put(file.text(), entries).map_err(malformed)?;
    if let Some(text) = file.text()
        && !text.trim().is_empty()
        && format.find(text).map_err(malformed)?.is_empty()
        && format.take(&after).map_err(malformed)? != text
    {
        let what = format!(
            "{} is formatted in a way that could not be restored exactly; nothing was changed",
            path.display()
        );
        return Err(Failure::new(Exit::Failed, what).next("format it with an editor, and try again"));
    }
    Ok(Change { file, after: Some(after), new_mode })
}

/// Takes our entries out. `None` if there are none.
pub fn take(format: Format, path: &Path) -> Result<Option<Change>, Failure> {
    let file = SettingsFile::read(path)?;
    let Some(text) = file.text() else { return Ok(None) };
    let after = format.take(text).map_err(|problem| file.malformed(&problem))?;
    if after == text {
        return Ok(None);
    }
    let after = match after == format.skeleton {
        true => what_was_there(format, &file),
        false => Some(after),
    };
    Ok(Some(Change { file, after, new_mode: 0o600 }))
}

/// What the newest backup without our entries says was there when only the empty frame is left. Without such a backup
/// there was no file.
fn what_was_there(format: Format, file: &SettingsFile) -> Option<String> {
    let is_from_before = |text: &String| format.find(text).is_ok_and(|found| found.is_empty());
    let before = file.backups().into_iter().find(is_from_before)?;
    match before.trim().is_empty() {
        true => Some(before),
        false => Some(format.skeleton.to_owned()),
    }
}
