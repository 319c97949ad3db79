//! Files as a caller elsewhere sees them: below the root that it has handed over.

use std::{
    fs::{self, File, Metadata},
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use super::super::folder::Folder;

/// How a file is opened that is only looked at.
pub const LOOK: OFlags = OFlags::PATH;

/// How often a look-up is repeated that something came in between of.
const RETRIES: usize = 8;

/// What a caller has handed over, and what could not be seen in it.
#[derive(Debug)]
pub struct Roots {
    root: OwnedFd,
    folder: Option<Folder>,
    /// Whether the caller is another account, which may see more than this process, and must not see what is this one's.
    is_of_another: bool,
    /// What was hidden first.
    hidden: Mutex<Option<PathBuf>>,
}

impl Roots {
    /// The root of a caller, and its own folder.
    pub fn new(root: OwnedFd, folder: Option<Folder>, is_of_another: bool) -> io::Result<Self> {
        Ok(Self { root, folder, is_of_another, hidden: Mutex::default() })
    }

    /// Whether the caller's files are those of this process, so that nothing need be looked up below its root.
    pub fn is_of_this_process(&self) -> bool {
        false
    }

    /// What another account sees and this one could not be shown, if there was anything.
    pub fn hidden(&self) -> Option<PathBuf> {
        self.hidden.lock().clone()
    }

    /// Opens what the caller would. What the system makes up for whoever reads it would be ours, not the caller's; and what
    /// belongs to an account of our own is nobody else's to read.
    pub fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        use rustix::fs::PROC_SUPER_MAGIC;
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no absolute path"));
        }
        let opened = self.found(path, flags).map_err(|error| self.noted(path, error))?;
        if rustix::fs::fstatfs(&opened)?.f_type == PROC_SUPER_MAGIC {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it differs for whoever reads it"));
        }
        let is_read = self.is_of_another && !flags.contains(OFlags::PATH);
        if is_read && rustix::fs::fstat(&opened)?.st_uid == rustix::process::geteuid().as_raw() {
            return Err(self.noted(path, rustix::io::Errno::ACCESS));
        }
        Ok(opened)
    }

    /// Looks a path up from the root; where that is not permitted, from the caller's own folder.
    fn found(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        use rustix::{fs::ResolveFlags, io::Errno};
        match below(&self.root, path, flags, ResolveFlags::IN_ROOT) {
            Err(Errno::ACCESS) => self.found_from_folder(path, flags).unwrap_or(Err(Errno::ACCESS)),
            found => found,
        }
    }

    /// Looks a path up from the folder, or from the nearest around it that the path does not leave.
    fn found_from_folder(&self, path: &Path, flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
        let folder = self.folder.as_ref()?;
        let bases = folder.path.ancestors().enumerate().filter(|(_, base)| path.starts_with(base));
        for (up, base) in bases {
            match self.found_from_base(folder, (up, base), path, flags)? {
                // A link leads out of it.
                Err(rustix::io::Errno::XDEV) => {}
                found => return Some(found),
            }
        }
        None
    }

    /// Looks a path up from a folder so many steps up; `None` if that can't be reached, or is not where the caller says.
    fn found_from_base(
        &self,
        folder: &Folder,
        (up, base): (usize, &Path),
        path: &Path,
        flags: OFlags,
    ) -> Option<rustix::io::Result<OwnedFd>> {
        use rustix::fs::ResolveFlags;
        let climbing = std::iter::repeat_n("..", up).chain(["."]).collect::<PathBuf>();
        let base_flags = OFlags::PATH | OFlags::DIRECTORY;
        let open = below(&folder.open, &climbing, base_flags, ResolveFlags::NO_SYMLINKS).ok()?;
        let (real, root) = (name_of(&open).ok()?, name_of(&self.root).ok()?);
        (Path::new("/").join(real.strip_prefix(root).ok()?) == base).then_some(())?;
        let rest = path.strip_prefix(base).ok().filter(|rest| !rest.as_os_str().is_empty());
        Some(below(&open, rest.unwrap_or(Path::new(".")), flags, ResolveFlags::BENEATH))
    }

    /// Notes what could not be seen.
    fn noted(&self, path: &Path, error: rustix::io::Errno) -> io::Error {
        if self.is_of_another && error == rustix::io::Errno::ACCESS {
            self.hidden.lock().get_or_insert_with(|| path.to_owned());
        }
        error.into()
    }

    /// The system knows the path of what is open. It counts only if the same file is there.
    pub fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        use std::os::unix::fs::MetadataExt as _;
        let opened = self.open(path, OFlags::PATH)?;
        let (real, root) = (name_of(&opened)?, name_of(&self.root)?);
        let real = Path::new("/").join(real.strip_prefix(root).map_err(io::Error::other)?);
        let identity = |found: Metadata| (found.dev(), found.ino());
        let there = File::from(self.open(&real, OFlags::PATH | OFlags::NOFOLLOW)?).metadata()?;
        match identity(there) == identity(File::from(opened).metadata()?) {
            true => Ok(real),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "its path can't be found")),
        }
    }
}

/// Opens what is at a path from a folder.
fn below(
    folder: &OwnedFd,
    path: &Path,
    flags: OFlags,
    within: rustix::fs::ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    use rustix::{fs::ResolveFlags, io::Errno};
    let within = within | ResolveFlags::NO_MAGICLINKS;
    let open = || rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), within);
    let is_passing = |error: &Errno| matches!(*error, Errno::WOULDBLOCK | Errno::INTR);
    // Something was renamed meanwhile. Whoever goes on renaming gets an error.
    let mut opened = open();
    for _ in 0..RETRIES {
        opened = match opened {
            Err(error) if is_passing(&error) => open(),
            opened => opened,
        };
    }
    opened
}

/// The path of what is open, as the system knows it.
fn name_of(open: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd()))
}
