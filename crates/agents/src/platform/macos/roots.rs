//! Files as a caller elsewhere sees them. Here no user can give a process another root, so whoever has the same one sees what this
//! process sees; everybody else is refused.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{OFlags, Stat, fstat, stat};

use super::super::folder::Folder;

/// How a folder is opened that is only looked at.
pub const LOOK: OFlags = OFlags::RDONLY;

/// A caller whose files are those of this process.
#[derive(Debug)]
pub struct Roots(());

impl Roots {
    /// The root of a caller of this account.
    pub fn new(root: OwnedFd, _folder: Option<Folder>, is_of_another: bool) -> io::Result<Self> {
        let identity = |found: Stat| (found.st_dev, found.st_ino);
        match !is_of_another && identity(fstat(root)?) == identity(stat("/")?) {
            true => Ok(Self(())),
            false => Err(unsupported()),
        }
    }

    /// Whether the caller's files are those of this process, so that nothing need be looked up below its root.
    pub fn is_of_this_process(&self) -> bool {
        true
    }

    /// Nothing is hidden from whoever runs under the same account.
    pub fn hidden(&self) -> Option<PathBuf> {
        None
    }

    /// Refused: whoever has the same files needs no look-up below its root.
    pub fn open(&self, _path: &Path, _flags: OFlags) -> io::Result<OwnedFd> {
        Err(unsupported())
    }

    /// Refused, for the same reason.
    pub fn canonicalize(&self, _path: &Path) -> io::Result<PathBuf> {
        Err(unsupported())
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "callers with other files are decided for on Linux only")
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, open};

    use super::*;

    #[test]
    fn only_a_caller_with_the_same_root_and_account_is_decided_for() {
        let folder = tempfile::tempdir().unwrap();
        let opened = |path: &Path| open(path, LOOK | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let root = Path::new("/");
        let own = Roots::new(opened(root), None, false).unwrap();
        assert!(own.is_of_this_process() && own.hidden().is_none());
        assert!(own.open(root, LOOK).is_err() && own.canonicalize(root).is_err());
        let of_folder = Folder { open: opened(folder.path()), path: folder.path().to_owned() };
        assert!(of_folder.path.is_absolute());
        Roots::new(of_folder.open, None, false).unwrap_err();
        Roots::new(opened(root), None, true).unwrap_err();
    }
}
