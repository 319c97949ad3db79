//! The end of whoever has started this process.

use std::io;

use rustix::process::{Signal, set_parent_process_death_signal};

/// From now on, the end of the parent asks this process to end too.
pub fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}
