//! A run that `countersign doctor` has started: everything is denied, and it is noted that the hook was asked.
//!
//! Whoever sets the variable can only make a hook say no: its value is a number, and the file is one that the doctor made.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{calls::verdict::Verdict, tool::caller::Caller};

/// The variable that has the number of the doctor's run.
pub const VARIABLE: &str = "COUNTERSIGN_CANARY";

/// The file in the hooks' folder to which hooks of this run add a line.
pub fn record(folder: &Path, run: u32) -> PathBuf {
    folder.join(format!("canary-{run}"))
}

/// The verdict in a run of the doctor; `None` in any other.
pub(super) fn verdict(folder: &Path, event: &str, caller: &Caller) -> Option<Verdict> {
    let run = caller.variable(VARIABLE).filter(|run| !run.is_empty())?;
    // If it can't be noted, the doctor says that the hook was not asked.
    if let Some(run) = run.to_str().and_then(|run| run.parse().ok()) {
        let noted = OpenOptions::new().append(true).open(record(folder, run));
        drop(noted.and_then(|mut file| writeln!(file, "{event}")));
    }
    Some(Verdict::deny("countersign doctor tries whether a refusal is obeyed"))
}
