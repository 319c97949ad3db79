//! Bytes that nobody can change any more: memory with seals.

use std::{
    fs::File,
    io::{self, Seek as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, MemfdFlags, SealFlags},
    io::FdFlags,
};

/// An open file whose content stays as it is.
#[derive(Debug)]
pub struct Kept {
    file: File,
}

impl Kept {
    /// The system's own file, which this user can't change.
    pub fn in_place(file: File, _path: &Path) -> io::Result<Self> {
        Ok(Self { file })
    }

    /// A copy that nobody can write to, cut or extend; `fill` writes it. A program has a path, whose last name it keeps where
    /// that matters.
    pub fn copy(_path: Option<&Path>, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut memory = File::from(rustix::fs::memfd_create("countersign", flags)?);
        fill(&mut memory)?;
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        rustix::fs::fcntl_add_seals(&memory, seals)?;
        Ok(Self { file: memory })
    }

    /// The path under which this process and its children find it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Lets children inherit it: an interpreter opens its script after it was started.
    pub fn inherit(&self) -> io::Result<()> {
        Ok(rustix::io::fcntl_setfd(self.file.as_fd(), FdFlags::empty())?)
    }

    /// The file itself, from its start.
    pub fn into_file(mut self) -> io::Result<File> {
        self.file.rewind()?;
        Ok(self.file)
    }

    /// What has to be compared again right before the start; `None` where nobody could have changed it.
    pub fn again(&self) -> Option<io::Result<File>> {
        None
    }
}

/// Whether this user can write a file, or give themselves the right to.
pub fn can_change(path: &Path, file: &File) -> io::Result<bool> {
    let user = rustix::process::geteuid();
    let is_owner = file.metadata()?.uid() == user.as_raw();
    Ok(user.is_root() || is_owner || rustix::fs::access(path, Access::WRITE_OK).is_ok())
}

/// A file in memory, from its start. `is_inherited`: the next program gets it too.
pub fn in_memory(name: &str, content: &[u8], is_inherited: bool) -> io::Result<File> {
    let flags = if is_inherited { MemfdFlags::empty() } else { MemfdFlags::CLOEXEC };
    let mut file = File::from(rustix::fs::memfd_create(name, flags)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}
