//! A run that `countersign doctor` has started: everything is denied, and it is noted that the hook was asked.
//!
//! Whoever sets the variable can only make a hook say no.

use std::{ffi::OsString, fs::OpenOptions, io::Write as _, path::PathBuf};

use crate::calls::verdict::Verdict;

/// The variable that names the file in which a hook notes that it was asked.
pub const VARIABLE: &str = "COUNTERSIGN_CANARY";

/// The verdict in a run of the doctor; `None` in any other.
pub(super) fn verdict(event: &str) -> Option<Verdict> {
    let file = std::env::var_os(VARIABLE).filter(|file: &OsString| !file.is_empty())?;
    // If it can't be noted, the doctor says that the hook was not asked.
    let noted = OpenOptions::new().create(true).append(true).open(PathBuf::from(file));
    drop(noted.and_then(|mut file| writeln!(file, "{event}")));
    Some(Verdict::deny("countersign doctor tries whether a refusal is obeyed"))
}
