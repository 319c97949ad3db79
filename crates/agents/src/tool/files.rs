//! Files as the caller sees them.
//!
//! A keeper decides for callers in sandboxes, where another file may lie under the same path. What a caller names is therefore
//! looked up below the caller's own root, which its hook hands over as a descriptor. Whatever examines a call reads through
//! here; without a caller elsewhere, these are the files of this process. Nothing is waited for: a pipe or a device in the
//! place of a file is refused.
//!
//! A keeper under an account of its own may not look into folders that are closed to others. There it starts from the caller's
//! own folder, which its hook hands over too. What stays hidden is noted: it must not be taken for absent.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata},
    future::Future,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::fs::{Dir, FileType, Mode, OFlags};

/// How often a look-up is repeated that something came in between of.
#[cfg(target_os = "linux")]
const RETRIES: usize = 8;

/// The root of a caller, with everything that is mounted below it.
#[derive(Debug, Clone)]
pub struct Root(Arc<Seen>);

/// What a caller has handed over, and what could not be seen in it.
#[derive(Debug)]
struct Seen {
    root: OwnedFd,
    folder: Option<Folder>,
    /// Whether the caller is another account, which may see more than this process, and must not see what is this one's.
    is_of_another: bool,
    /// What was hidden first.
    hidden: Mutex<Option<PathBuf>>,
}

/// The folder that a caller is in.
#[derive(Debug)]
pub struct Folder {
    /// What is open: looked into, and never written to.
    pub open: OwnedFd,
    /// Its path, as the caller says.
    pub path: PathBuf,
}

tokio::task_local! {
    static ROOT: Option<Root>;
}

impl Root {
    /// What a hook of this account has handed over, if it is a folder.
    pub fn new(root: OwnedFd) -> io::Result<Self> {
        Self::of_caller(root, None, false)
    }

    /// What a hook has handed over, if it is a folder: its root and its own folder. `is_of_another` says whether it runs under
    /// another account than this process.
    pub fn of_caller(root: OwnedFd, folder: Option<Folder>, is_of_another: bool) -> io::Result<Self> {
        let found = rustix::fs::fstat(&root)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                Ok(Self(Arc::new(Seen { root, folder, is_of_another, hidden: Mutex::default() })))
            }
            _ => Err(io::Error::other("the root is no folder")),
        }
    }

    /// The root of this process, to be handed over.
    pub fn of_this_process() -> io::Result<OwnedFd> {
        Self::handed_over("/")
    }

    /// The folder of this process, to be handed over.
    pub fn folder_of_this_process() -> io::Result<OwnedFd> {
        Self::handed_over(".")
    }

    fn handed_over(path: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty())?)
    }

    /// Everything that a future reads through this module, it reads below this root.
    pub async fn seen_by<T>(self, future: impl Future<Output = T>) -> T {
        ROOT.scope(Some(self), future).await
    }
}

/// What another account sees and this one could not be shown, if there was anything: the nearest folder that is closed, or the
/// file. What follows from its absence is not certain.
pub fn hidden() -> Option<PathBuf> {
    let path = root()?.0.hidden.lock().clone()?;
    path.ancestors().find(|part| symlink_metadata(part).is_ok()).map(Path::to_owned)
}

/// Looks at the files of this process, whoever has called: at what decides, not at what is decided about.
pub fn of_this_process<T>(look: impl FnOnce() -> T) -> T {
    ROOT.sync_scope(None, look)
}

/// What is known of a file. Links are followed.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    match root() {
        None => fs::metadata(path),
        Some(root) => File::from(root.open(path, OFlags::PATH)?).metadata(),
    }
}

/// What is known of a file, or of the link in its place.
pub fn symlink_metadata(path: &Path) -> io::Result<Metadata> {
    match root() {
        None => fs::symlink_metadata(path),
        Some(root) => File::from(root.open(path, OFlags::PATH | OFlags::NOFOLLOW)?).metadata(),
    }
}

/// Where a link leads.
pub fn read_link(path: &Path) -> io::Result<PathBuf> {
    match root() {
        None => fs::read_link(path),
        Some(root) => target(&root.open(path, OFlags::PATH | OFlags::NOFOLLOW)?, ""),
    }
}

/// The path of a file that exists, without links.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    match root() {
        None => fs::canonicalize(path),
        Some(root) => root.canonicalize(path),
    }
}

/// Whether something is there.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether a regular file is there.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|found| found.is_file())
}

/// Whether a folder is there.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|found| found.is_dir())
}

/// Opens a regular file to read it.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for somebody who writes into it.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match root() {
        None => {
            let flags = i32::try_from(flags.bits()).unwrap_or_default();
            fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?
        }
        Some(root) => File::from(root.open(path, flags)?),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The content of a regular file of at most `max` bytes.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = open(path)?.take(max.saturating_add(1)).read_to_end(&mut content)?;
    match u64::try_from(read).is_ok_and(|read| read <= max) {
        true => Ok(content),
        false => Err(io::Error::other(format!("it has more than {max} bytes"))),
    }
}

/// As [`read`], for a file of UTF-8 text.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read(path, max)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the folder.
    pub name: OsString,
    /// The folder's path with its name.
    pub path: PathBuf,
    /// Whether it is a folder itself. A link is none.
    pub is_dir: bool,
}

/// What is in a folder, in no order.
pub fn read_dir(path: &Path) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
    use std::os::unix::ffi::OsStringExt as _;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match root() {
        None => rustix::fs::open(path, flags, Mode::empty())?,
        Some(root) => root.open(path, flags)?,
    };
    let path = path.to_owned();
    let entry = move |entry: rustix::fs::DirEntry| {
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let path = path.join(&name);
        let is_dir = match entry.file_type() {
            FileType::Unknown => symlink_metadata(&path)?.is_dir(),
            kind => kind == FileType::Directory,
        };
        Ok(Entry { name, path, is_dir })
    };
    let is_named = |entry: &rustix::io::Result<rustix::fs::DirEntry>| {
        !entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    };
    Ok(Dir::new(folder)?.filter(is_named).map(move |found| entry(found?)))
}

/// The root to look below; `None` for that of this process.
fn root() -> Option<Root> {
    ROOT.try_with(Clone::clone).ok().flatten()
}

/// Where a link leads that is open, or that is in an open folder.
fn target(folder: &OwnedFd, name: &str) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

#[cfg(target_os = "linux")]
impl Root {
    /// Opens what the caller would. What the system makes up for whoever reads it would be ours, not the caller's; and what
    /// belongs to an account of our own is nobody else's to read.
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        use rustix::fs::PROC_SUPER_MAGIC;
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no absolute path"));
        }
        let opened = self.found(path, flags).map_err(|error| self.noted(path, error))?;
        if rustix::fs::fstatfs(&opened)?.f_type == PROC_SUPER_MAGIC {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it differs for whoever reads it"));
        }
        let is_read = self.0.is_of_another && !flags.contains(OFlags::PATH);
        if is_read && rustix::fs::fstat(&opened)?.st_uid == rustix::process::geteuid().as_raw() {
            return Err(self.noted(path, rustix::io::Errno::ACCESS));
        }
        Ok(opened)
    }

    /// Looks a path up from the root; where that is not permitted, from the caller's own folder.
    fn found(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        use rustix::{fs::ResolveFlags, io::Errno};
        match below(&self.0.root, path, flags, ResolveFlags::IN_ROOT) {
            Err(Errno::ACCESS) => self.found_from_folder(path, flags).unwrap_or(Err(Errno::ACCESS)),
            found => found,
        }
    }

    /// Looks a path up from the folder, or from the nearest around it that the path does not leave.
    fn found_from_folder(&self, path: &Path, flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
        let folder = self.0.folder.as_ref()?;
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
        let (real, root) = (name_of(&open).ok()?, name_of(&self.0.root).ok()?);
        (Path::new("/").join(real.strip_prefix(root).ok()?) == base).then_some(())?;
        let rest = path.strip_prefix(base).ok().filter(|rest| !rest.as_os_str().is_empty());
        Some(below(&open, rest.unwrap_or(Path::new(".")), flags, ResolveFlags::BENEATH))
    }

    /// Notes what could not be seen.
    fn noted(&self, path: &Path, error: rustix::io::Errno) -> io::Error {
        if self.0.is_of_another && error == rustix::io::Errno::ACCESS {
            self.0.hidden.lock().get_or_insert_with(|| path.to_owned());
        }
        error.into()
    }

    /// The system knows the path of what is open. It counts only if the same file is there.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        use std::os::unix::fs::MetadataExt as _;
        let opened = self.open(path, OFlags::PATH)?;
        let (real, root) = (name_of(&opened)?, name_of(&self.0.root)?);
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
#[cfg(target_os = "linux")]
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
#[cfg(target_os = "linux")]
fn name_of(open: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
impl Root {
    fn open(&self, _: &Path, _: OFlags) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn canonicalize(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests;
