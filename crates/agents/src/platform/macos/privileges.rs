//! Other accounts, and what belongs to other processes: there is none of it here yet, and it is said.

use std::{
    fs::File,
    io,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
};

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, setrlimit},
};

fn none<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("{what} is only on Linux so far")))
}

/// Lets this process be another account for good.
pub fn become_account(_user: u32, _group: u32) -> io::Result<()> {
    none("a keeper under an account of its own")
}

/// A mode as a number: how wide it is differs.
pub fn mode_number(mode: Mode) -> u32 {
    u32::from(mode.as_raw_mode())
}

/// Leaves no image of the memory when this process fails. What a debugger may read, the system decides (docs/trust.md).
pub fn guard_memory() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Of the open files that are allowed at most, those that the system really gives: `OPEN_MAX`.
pub fn most_open_files(maximum: Option<u64>) -> Option<u64> {
    Some(maximum.unwrap_or(u64::MAX).min(10_240))
}

/// The command line of a process.
pub fn command_line(_process: i32) -> io::Result<Vec<u8>> {
    none("looking at another process")
}

/// Opens the memory of a process.
pub fn memory(_process: i32) -> io::Result<File> {
    none("reading another's memory")
}

/// Takes away what is mounted over a file.
pub fn uncover(_file: &Path) -> io::Result<()> {
    none("a mount over a file")
}

/// Listens at a name that is in no file system.
pub fn bind_abstract(_name: &str) -> io::Result<UnixListener> {
    none("a socket with an abstract name")
}

/// Calls whoever listens at such a name.
pub fn connect_abstract(_name: &str) -> io::Result<UnixStream> {
    none("a socket with an abstract name")
}
