//! A process in the background, where the system has no services for users.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use countersign_agents::platform::has_argument;
use rustix::process::{Pid, Signal, kill_process};

/// Starts it with this log, and keeps its number in its folder.
pub(super) fn spawn(command: &[OsString], folder: &Path, log: &Path) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let log = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Not in the terminal's group: Ctrl-C in the terminal is not for it.
        .process_group(0)
        .spawn()?;
    fs::write(pid_file(folder), child.id().to_string())?;
    Ok(child)
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("pid")
}

/// A process that was started here before.
pub(super) struct Running<'a> {
    pid: Pid,
    /// An argument that no other process has.
    mark: &'a OsStr,
    file: PathBuf,
}

impl<'a> Running<'a> {
    /// The one whose number is in this folder, if it runs.
    pub(super) fn find(folder: &Path, mark: Option<&'a OsString>) -> Option<Self> {
        let file = pid_file(folder);
        let pid = Pid::from_raw(fs::read_to_string(&file).ok()?.trim().parse().ok()?)?;
        Some(Self { pid, mark: mark?, file }).filter(Self::lives)
    }

    /// Whether it runs, and is not another one that has its number now.
    pub(super) fn lives(&self) -> bool {
        u32::try_from(self.pid.as_raw_pid()).is_ok_and(|id| has_argument(id, self.mark))
    }

    pub(super) fn terminate(&self) -> io::Result<()> {
        Ok(kill_process(self.pid, Signal::TERM)?)
    }

    /// Removes its number, when it has ended.
    pub(super) fn forget(self) -> io::Result<()> {
        fs::remove_file(self.file)
    }
}

impl fmt::Display for Running<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.pid.as_raw_nonzero())
    }
}
