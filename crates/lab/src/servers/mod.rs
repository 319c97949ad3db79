//! The measured servers, each in its own process, which ends with ours.

pub(crate) mod bare;
pub(crate) mod counted;
pub(crate) mod gateway;
pub(crate) mod in_memory;
pub(crate) mod nchan;
pub(crate) mod node;
pub(crate) mod on_postgres;

use std::{ffi::OsStr, fs, process::Command};

use crate::Failure;

/// A command whose process gets this signal when ours ends. Start it from the main thread: the kernel sends the
/// signal when the thread that started the process ends.
pub(crate) fn ends_with_us(signal: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal, "--"]).arg(program);
    command
}

/// Memory of processes, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Resident {
    /// Resident set size: every resident page, including shared ones.
    pub(crate) rss: u64,
    /// Proportional set size: shared pages are divided among their processes.
    pub(crate) pss: u64,
}

/// The sum over all of these processes.
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
