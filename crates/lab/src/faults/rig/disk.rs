//! A small disk in memory for a database, which can be filled up.

use std::{
    env,
    fs::{self, File, Permissions},
    io::{ErrorKind, Write as _},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::Failure;

/// What fills a disk is written in pieces of this many bytes, and then of fewer.
const PIECE: usize = 1 << 20;

/// A folder for the data of one database: a disk of its own where we may mount one.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    is_mounted: bool,
}

/// Set in a process whose mounts are its own.
const OWN_MOUNTS: &str = "COUNTERSIGN_LAB_OWN_MOUNTS";

/// Whether this process may mount a disk.
pub(super) fn may_mount() -> bool {
    env::var_os(OWN_MOUNTS).is_some()
}

/// As root, replaces this process by one with the same arguments whose mounts nobody else sees. They are gone when it ends,
/// however it ends.
pub(crate) fn in_own_mounts() -> Result<(), Failure> {
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    if !is_root || may_mount() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--"]).arg(env::current_exe()?).args(env::args_os().skip(1));
    // Returns only if it fails.
    Err(command.env(OWN_MOUNTS, "1").exec().into())
}

impl Disk {
    /// Makes `folder`, and mounts a disk of `mebibytes` there if this process may.
    pub(crate) fn new(folder: PathBuf, mebibytes: u64) -> Result<Self, Failure> {
        fs::create_dir(&folder)?;
        let mut disk = Self { folder, is_mounted: false };
        if may_mount() {
            let size = format!("size={mebibytes}m,mode=0711");
            let mut mount = Command::new("mount");
            run(mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&disk.folder))?;
            disk.is_mounted = true;
        } else {
            fs::set_permissions(&disk.folder, Permissions::from_mode(0o711))?;
        }
        Ok(disk)
    }

    /// A new folder on it.
    pub(crate) fn new_folder(&self) -> Result<TempDir, Failure> {
        Ok(TempDir::new_in(&self.folder)?)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Whether it can be filled without filling anything else.
    pub(crate) fn can_be_filled(&self) -> bool {
        self.is_mounted
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Leaves no byte free. Does nothing where it is not a disk of its own.
    pub(crate) fn fill(&self) -> Result<(), Failure> {
        if !self.is_mounted {
            return Ok(());
        }
        let mut file = File::options().create(true).append(true).open(self.filler())?;
        let mut size = PIECE;
        while size > 0 {
            match file.write_all(&vec![0; size]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => size /= 16,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes what [`Disk::fill`] has written.
    pub(crate) fn free(&self) -> Result<(), Failure> {
        match fs::remove_file(self.filler()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            drop(Command::new("umount").arg(&self.folder).output());
        }
    }
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let done = command.output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)).into()),
    }
}
