//! As whom a command runs.

use rustix::{fs::Mode, process};
use serde::{Deserialize, Serialize};

use crate::platform::mode_number;

/// What the system goes by when a command opens or makes a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAs {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    umask: u32,
}

impl RunAs {
    /// What holds for this process.
    pub fn this_process() -> Self {
        let groups = process::getgroups().unwrap_or_default();
        Self {
            uid: process::getuid().as_raw(),
            gid: process::getgid().as_raw(),
            groups: groups.iter().map(|group| group.as_raw()).collect(),
            umask: umask(),
        }
    }

    /// The number of the user.
    pub fn user(&self) -> u32 {
        self.uid
    }
}

/// The mask of this process, which is read by setting it.
fn umask() -> u32 {
    let mask = process::umask(Mode::from_raw_mode(0o077));
    process::umask(mask);
    mode_number(mask)
}
