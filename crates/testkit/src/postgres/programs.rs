//! The location of PostgreSQL's programs, and the user that they run as.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::child_process::output;

/// Debian keeps each major version in a folder of its own, outside of `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// PostgreSQL refuses to run as root; Debian's package brings this user for it.
const USER: &str = "postgres";

/// The programs of one installed PostgreSQL version.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    as_root: bool,
}

impl Programs {
    /// The newest of Debian's, else those in `PATH`.
    pub(super) fn find() -> Self {
        let folder = newest_of_debian().or_else(in_path).unwrap_or_else(|| {
            panic!("no PostgreSQL in {DEBIAN} or PATH: install Debian's package postgresql");
        });
        let as_root = fs::metadata("/proc/self").expect("/proc is mounted").uid() == 0;
        Self { folder, as_root }
    }

    /// The installed version, for example `17.6`.
    pub(super) fn version(&self) -> String {
        let version = output(Command::new(self.path("postgres")).arg("--version"));
        // postgres (PostgreSQL) 17.6 (Debian 17.6-0+deb13u1)
        version.split_whitespace().nth(2).unwrap_or_else(|| panic!("not a version: {version}")).to_owned()
    }

    pub(super) fn path(&self, program: &str) -> PathBuf {
        self.folder.join(program)
    }

    /// A command that runs `program` in `folder`, as a user that PostgreSQL accepts. It gets the signal `QUIT` when
    /// the thread that starts it ends; this stops a server at once and leaves nothing behind.
    pub(super) fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = self.command_for("QUIT", &self.path(program));
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn command_for(&self, signal: &str, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", signal]);
        if self.as_root {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        command.arg("--").arg(program);
        command
    }

    /// Makes the user that the programs run as the owner of this folder.
    pub(super) fn hand_over(&self, folder: &Path) {
        if self.as_root {
            output(Command::new("chown").arg(format!("{USER}:{USER}")).arg(folder));
        }
    }
}

/// The folder of PostgreSQL's programs.
///
/// # Panics
///
/// Where there is no PostgreSQL.
pub fn programs_folder() -> PathBuf {
    Programs::find().folder
}

/// A command that runs `program`, such as a supervisor of PostgreSQL, as a user that PostgreSQL accepts. It gets this signal
/// when the thread that starts it ends.
///
/// # Panics
///
/// As [`programs_folder`].
pub fn command_as_server_user(signal: &str, program: &Path) -> Command {
    Programs::find().command_for(signal, program)
}

/// Makes the user that PostgreSQL runs as the owner of this folder or file.
///
/// # Panics
///
/// As [`programs_folder`], and when there is no such folder.
pub fn hand_over_to_server_user(folder: &Path) {
    Programs::find().hand_over(folder);
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).ok()?.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let major: u32 = folder.file_name().and_then(OsStr::to_str)?.parse().ok()?;
        let programs = folder.join("bin");
        has_server(&programs).then_some((major, programs))
    });
    versions.max().map(|(_, programs)| programs)
}

fn in_path() -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).find(|folder| has_server(folder))
}

fn has_server(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}
