//! Builds a place with bubblewrap, which needs no privileges.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::AsRawFd as _,
    path::Path,
    process::Command,
};

use super::{
    filter,
    place::{Part, Place},
};
use crate::platform::in_memory;

/// Where distributions put it. A search path could name another one.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap"];

/// Namespaces of its own, no privileges in them, and an end with whoever has started it.
const ALWAYS: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--clearenv",
];

/// The program that builds sandboxes, if it is there.
pub fn program() -> Option<&'static Path> {
    PROGRAMS.iter().map(Path::new).find(|path| path.is_file())
}

/// A command in a place, and the files that it is built from: they are open for as long as this is kept.
#[derive(Debug)]
pub struct Sandboxed {
    /// What builds the place and starts the command.
    pub command: Command,
    _files: Vec<File>,
}

/// What starts a program in a place.
pub fn command(bubblewrap: &Path, place: &Place, argv: &[OsString]) -> io::Result<Sandboxed> {
    // A folder that whoever started this has left open would lead out.
    close_fds::set_fds_cloexec(3, &[]);
    let mut arguments: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
    let mut files = Vec::new();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(OsString::from));
    if !place.has_network {
        add(&["--unshare-net".as_ref()]);
    }
    let filter = passed(&filter::program())?;
    add(&["--seccomp".as_ref(), number(&filter).as_ref()]);
    files.push(filter);
    for part in &place.parts {
        match part {
            Part::Read(from, at) => add(&["--ro-bind".as_ref(), from.as_ref(), at.as_ref()]),
            Part::Write(from, at) => add(&["--bind".as_ref(), from.as_ref(), at.as_ref()]),
            Part::Link(target, at) => add(&["--symlink".as_ref(), target.as_ref(), at.as_ref()]),
            Part::Empty(at) => add(&["--tmpfs".as_ref(), at.as_ref()]),
            Part::Close(at) => add(&["--remount-ro".as_ref(), at.as_ref()]),
            Part::Text(at, text) => {
                let file = passed(text.as_bytes())?;
                add(&["--perms".as_ref(), "0444".as_ref()]);
                add(&["--ro-bind-data".as_ref(), number(&file).as_ref(), at.as_ref()]);
                files.push(file);
            }
        }
    }
    for (at, option) in [("/proc", "--proc"), ("/dev", "--dev")] {
        add(&[option.as_ref(), at.as_ref()]);
    }
    for (name, value) in &place.variables {
        add(&["--setenv".as_ref(), name, value]);
    }
    add(&["--remount-ro".as_ref(), "/".as_ref()]);
    add(&["--chdir".as_ref(), place.folder.as_ref(), "--".as_ref()]);
    let mut command = Command::new(bubblewrap);
    command.args(arguments).args(argv).env_clear();
    Ok(Sandboxed { command, _files: files })
}

/// A file in memory that the next program gets, too.
fn passed(content: &[u8]) -> io::Result<File> {
    in_memory("countersign", content, true)
}

fn number(file: &File) -> String {
    file.as_raw_fd().to_string()
}
