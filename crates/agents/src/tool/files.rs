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
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{Dir, FileType, Mode, OFlags};

pub use crate::platform::Folder;
use crate::platform::{LOOK, Roots};

/// The root of a caller, with everything that is mounted below it.
#[derive(Debug, Clone)]
pub struct Root(Arc<Roots>);

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
            FileType::Directory => Ok(Self(Arc::new(Roots::new(root, folder, is_of_another)?))),
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
        let flags = LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC;
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
    let path = root()?.hidden()?;
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
        Some(root) => File::from(root.open(path, LOOK)?).metadata(),
    }
}

/// What is known of a file, or of the link in its place.
pub fn symlink_metadata(path: &Path) -> io::Result<Metadata> {
    match root() {
        None => fs::symlink_metadata(path),
        Some(root) => File::from(root.open(path, LOOK | OFlags::NOFOLLOW)?).metadata(),
    }
}

/// Where a link leads.
pub fn read_link(path: &Path) -> io::Result<PathBuf> {
    match root() {
        None => fs::read_link(path),
        Some(root) => target(&root.open(path, LOOK | OFlags::NOFOLLOW)?, ""),
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
fn root() -> Option<Arc<Roots>> {
    let root = ROOT.try_with(Clone::clone).ok().flatten()?;
    (!root.0.is_of_this_process()).then_some(root.0)
}

/// Where a link leads that is open, or that is in an open folder.
fn target(folder: &OwnedFd, name: &str) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

#[cfg(test)]
impl Root {
    /// What something sees that is not a future, below this root.
    pub(crate) fn shows<T>(self, look: impl FnOnce() -> T) -> T {
        ROOT.sync_scope(Some(self), look)
    }
}
