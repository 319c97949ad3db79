//! A file whose content can't change any more.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek as _, Write as _},
    os::fd::{AsFd as _, AsRawFd as _},
    path::{Path, PathBuf},
};

use countersign_agents::{examine::file::copy, tool::files};
use countersign_wire::hash::Sha256Hex;
use rustix::{
    fs::{Access, MemfdFlags, SealFlags},
    io::FdFlags,
};
use sha2::{Digest as _, Sha256};

/// A file is not what was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs, such as a path.
    pub what: String,
    /// What it was when it was approved.
    pub approved: String,
    /// What it is now.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: approved {}, now {}", self.what, self.approved, self.now)
    }
}

/// An open file with the approved content, which nobody can change: the system's own file if this user can't write it,
/// else a sealed copy in memory.
#[derive(Debug)]
pub struct Held {
    file: File,
}

impl Held {
    /// Opens the file and compares its content with what was approved.
    pub fn open(path: &Path, approved: Sha256Hex) -> Result<Self, Difference> {
        let unreadable = |error: io::Error| Difference {
            what: path.display().to_string(),
            approved: short(approved),
            now: error.to_string(),
        };
        let (file, digest) = hold(path).map_err(unreadable)?;
        match digest == approved {
            true => Ok(Self { file }),
            false => Err(Difference {
                what: path.display().to_string(),
                approved: short(approved),
                now: short(digest),
            }),
        }
    }

    /// Bytes that are held from the start, such as the standard input.
    pub fn of(reader: &mut dyn Read, tick: &mut dyn FnMut(u64)) -> io::Result<(Self, Sha256Hex, u64)> {
        let (file, digest, size) = sealed_copy(reader, tick)?;
        Ok((Self { file }, digest, size))
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
}

/// Enough of a digest to tell two files apart on a screen.
fn short(digest: Sha256Hex) -> String {
    format!("SHA-256 {}…", digest.to_string().chars().take(16).collect::<String>())
}

fn hold(path: &Path) -> io::Result<(File, Sha256Hex)> {
    let mut file = files::open(path)?;
    if can_change(path, &file)? {
        let (copy, digest, _) = sealed_copy(&mut file, &mut |_| ())?;
        return Ok((copy, digest));
    }
    let mut hash = Sha256::new();
    copy(&mut file, |chunk| {
        hash.update(chunk);
        Ok(())
    })?;
    Ok((file, Sha256Hex::from_bytes(hash.finalize().into())))
}

/// Whether this user can write the file, or give themselves the right to.
fn can_change(path: &Path, file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid();
    let is_owner = file.metadata()?.uid() == user.as_raw();
    Ok(user.is_root() || is_owner || rustix::fs::access(path, Access::WRITE_OK).is_ok())
}

/// A copy in memory that nobody can write to, cut or extend.
fn sealed_copy(reader: &mut dyn Read, tick: &mut dyn FnMut(u64)) -> io::Result<(File, Sha256Hex, u64)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut memory = File::from(rustix::fs::memfd_create("countersign", flags)?);
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    copy(reader, |chunk| {
        hash.update(chunk);
        size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        tick(size);
        memory.write_all(chunk)
    })?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&memory, seals)?;
    Ok((memory, Sha256Hex::from_bytes(hash.finalize().into()), size))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_held_stays_whatever_happens_to_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        let approved = Sha256Hex::digest(b"good");
        for (name, tamper) in [
            ("written in place", (|path: &Path| fs::write(path, b"evil")) as fn(&Path) -> io::Result<()>),
            ("removed", |path| fs::remove_file(path)),
            ("replaced by a rename", |path| {
                let other = path.with_extension("new");
                fs::write(&other, b"evil")?;
                fs::rename(other, path)
            }),
            ("replaced by a link", |path| {
                let other = path.with_extension("other");
                fs::write(&other, b"evil")?;
                fs::remove_file(path)?;
                std::os::unix::fs::symlink(other, path)
            }),
        ] {
            drop(fs::remove_file(&path));
            fs::write(&path, b"good").unwrap();
            let held = Held::open(&path, approved).unwrap();
            tamper(&path).unwrap();
            assert_eq!(fs::read(held.path()).unwrap(), b"good", "{name}");
            assert!(fs::write(held.path(), b"evil").is_err(), "the copy is sealed");
        }
    }

    #[test]
    fn another_content_is_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, b"evil").unwrap();
        let difference = Held::open(&path, Sha256Hex::digest(b"good")).unwrap_err();
        assert!(difference.to_string().contains("script: approved SHA-256"), "{difference}");
        fs::remove_file(&path).unwrap();
        assert!(Held::open(&path, Sha256Hex::digest(b"good")).unwrap_err().now.contains("No such file"));
        assert!(Held::open(folder.path(), Sha256Hex::digest(b"")).is_err(), "a folder is no file");
    }
}
