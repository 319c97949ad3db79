//! The servers that are measured, each a process of its own, gone with us.

pub(crate) mod gateway;
pub(crate) mod in_memory;
pub(crate) mod nchan;

use std::{ffi::OsStr, fs, process::Command};

use crate::Failure;

/// A program that gets this signal when we end, however we do. To be started from the main thread, since
/// the signal comes when the thread ends that started it.
fn bound_to_us(signal: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]).arg(program);
    command
}

/// What processes hold in memory, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resident {
    /// Every page that is there, also if it is another's too.
    pub(crate) rss: u64,
    /// Shared pages by their share.
    pub(crate) pss: u64,
}

/// What all of these processes hold together.
pub(crate) fn resident(processes: &[u32]) -> Result<Resident, Failure> {
    let mut sum = Resident::default();
    for process in processes {
        let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
        let bytes = |name: &str| -> Result<u64, Failure> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("not a smaps_rollup")?;
            Ok(kib.parse::<u64>()? * 1_024)
        };
        sum = Resident { rss: sum.rss + bytes("Rss:")?, pss: sum.pss + bytes("Pss:")? };
    }
    Ok(sum)
}
