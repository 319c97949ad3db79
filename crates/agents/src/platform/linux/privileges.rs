//! Other accounts, and what belongs to other processes.

use std::{
    fs::{self, File},
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::Path,
};

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::{
    fs::Mode,
    mount::{UnmountFlags, unmount},
    process::{DumpableBehavior, set_dumpable_behavior},
};

/// Lets this process be another account for good, with no group besides that one's own. Only root may.
pub fn become_account(user: u32, group: u32) -> io::Result<()> {
    setgroups(&[])?;
    setgid(Gid::from_raw(group))?;
    Ok(setuid(Uid::from_raw(user))?)
}

/// A mode as a number: how wide it is differs.
pub fn mode_number(mode: Mode) -> u32 {
    mode.as_raw_mode()
}

/// Keeps other processes of this user from reading the memory of this one.
pub fn guard_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Of the open files that are allowed at most, those that the system really gives.
pub fn most_open_files(maximum: Option<u64>) -> Option<u64> {
    maximum
}

/// The command line of a process, its words separated by zeros.
pub fn command_line(process: i32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{process}/cmdline"))
}

/// Opens the memory of a process.
pub fn memory(process: i32) -> io::Result<File> {
    File::open(format!("/proc/{process}/mem"))
}

/// Takes away what is mounted over a file.
pub fn uncover(file: &Path) -> io::Result<()> {
    Ok(unmount(file, UnmountFlags::DETACH)?)
}

/// Listens at a name that is in no file system.
pub fn bind_abstract(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Calls whoever listens at such a name.
pub fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
}
