//! Places and names of files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What every user of the machine shares.
pub const MANAGED: &str = "/etc";

/// Where an administrator's settings of a host are, below [`MANAGED`].
pub fn managed_name(name: &str) -> PathBuf {
    name.into()
}

/// Whether a path is this folder or file, or below it.
pub fn is_at(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

/// Whether only administrators are in a group that is not the one of root.
pub fn is_administrators(_group: u32) -> bool {
    false
}

/// A path to the program that runs, whatever was put in its place.
pub fn own_program() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// The name of this machine.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether an agent can be put into a sandbox here.
pub fn has_sandbox() -> bool {
    true
}
