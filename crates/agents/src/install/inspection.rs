//! The facts about one place in which the hook is installed.

use std::{path::PathBuf, time::Duration};

use crate::{
    hook_line::{HookLine, host_name::HostName, keeper::KeeperPlace, mode::Mode},
    tool::finding::Finding,
};

/// One place in which the hook is installed, or was.
#[derive(Debug, Clone)]
pub struct Inspection {
    pub host: HostName,
    /// For every user of the machine.
    pub is_managed: bool,
    /// The file that names our program.
    pub file: PathBuf,
    /// One for each event, as the file has them.
    pub hooks: Vec<InstalledHook>,
    pub findings: Vec<Finding>,
}

/// A hook as a host will run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledHook {
    pub event: String,
    /// The command line; `None` if somebody has changed it into one that we would not write.
    pub line: Option<HookLine>,
    /// How long the host waits.
    pub limit: Option<Duration>,
}

impl Inspection {
    /// When the hook asks a person, as far as the file says so.
    pub fn mode(&self) -> Option<Mode> {
        decides(&self.hooks).map(|line| line.mode)
    }

    /// Whom the hook asks, if it does not decide itself.
    pub fn keeper(&self) -> Option<KeeperPlace> {
        decides(&self.hooks)?.keeper
    }

    /// How long the host waits for a verdict.
    pub fn timeout(&self) -> Option<Duration> {
        decides(&self.hooks).map(|line| line.host_timeout)
    }
}

/// The line of the event that decides: the one with the longest time.
pub fn decides(hooks: &[InstalledHook]) -> Option<&HookLine> {
    hooks.iter().filter_map(|hook| hook.line.as_ref()).max_by_key(|line| line.host_timeout)
}
