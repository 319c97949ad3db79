//! Signals to processes that we have started and not yet waited for, so that a pid can't belong to another one.

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;

/// Sends a signal. A process that has exited already gets none, and that is no error.
pub(crate) fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(i32::try_from(pid)?).ok_or("no process has the id 0")?;
    match kill_process(pid, signal) {
        Err(error) if error != rustix::io::Errno::SRCH => Err(error.into()),
        _ => Ok(()),
    }
}
