//! A file whose content can't change any more.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use countersign_wire::hash::Sha256Hex;
use sha2::{Digest as _, Sha256};

use crate::{
    examine::file::copy,
    platform::{Kept, can_change},
    tool::files,
};

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

/// An open file with the approved content: the system's own file if this user can't write it, else a copy that nobody can change,
/// or that is compared again where the system can't promise that ([`Held::difference`]).
#[derive(Debug)]
pub struct Held {
    kept: Kept,
    path: PathBuf,
    digest: Sha256Hex,
}

impl Held {
    /// Opens the file and compares its content with what was approved.
    pub fn open(path: &Path, approved: Sha256Hex) -> Result<Self, Difference> {
        let unreadable = |error: io::Error| Difference {
            what: path.display().to_string(),
            approved: short(approved),
            now: error.to_string(),
        };
        let (kept, digest) = hold(path).map_err(unreadable)?;
        match digest == approved {
            true => Ok(Self { kept, path: path.to_owned(), digest }),
            false => Err(Difference {
                what: path.display().to_string(),
                approved: short(approved),
                now: short(digest),
            }),
        }
    }

    /// Bytes that are held from the start, such as the standard input.
    pub fn of(reader: &mut dyn Read, tick: &mut dyn FnMut(u64)) -> io::Result<(Self, Sha256Hex, u64)> {
        let (kept, digest, size) = kept_copy(None, reader, tick)?;
        Ok((Self { kept, path: PathBuf::new(), digest }, digest, size))
    }

    /// The path under which this process and its children find it.
    pub fn path(&self) -> PathBuf {
        self.kept.path()
    }

    /// Lets children inherit it: an interpreter opens its script after it was started.
    pub fn inherit(&self) -> io::Result<()> {
        self.kept.inherit()
    }

    /// What is other than it was, right before the start. Where nobody could have changed it, nothing is read again.
    pub fn difference(&self) -> Option<Difference> {
        let now = match self.kept.again()?.and_then(|mut file| digest_of(&mut file)) {
            Ok(digest) if digest == self.digest => return None,
            Ok(digest) => short(digest),
            Err(error) => error.to_string(),
        };
        Some(Difference { what: self.path.display().to_string(), approved: short(self.digest), now })
    }

    /// The file itself, from its start.
    pub fn into_file(self) -> io::Result<File> {
        self.kept.into_file()
    }
}

/// Enough of a digest to tell two files apart on a screen.
fn short(digest: Sha256Hex) -> String {
    format!("SHA-256 {}…", digest.to_string().chars().take(16).collect::<String>())
}

fn hold(path: &Path) -> io::Result<(Kept, Sha256Hex)> {
    let mut file = files::open(path)?;
    if can_change(path, &file)? {
        let (kept, digest, _) = kept_copy(Some(path), &mut file, &mut |_| ())?;
        return Ok((kept, digest));
    }
    let digest = digest_of(&mut file)?;
    Ok((Kept::in_place(file, path)?, digest))
}

fn digest_of(reader: &mut dyn Read) -> io::Result<Sha256Hex> {
    let mut hash = Sha256::new();
    copy(reader, |chunk| {
        hash.update(chunk);
        Ok(())
    })?;
    Ok(Sha256Hex::from_bytes(hash.finalize().into()))
}

/// A copy, its digest and its size. What has a path can be started.
fn kept_copy(
    path: Option<&Path>,
    reader: &mut dyn Read,
    tick: &mut dyn FnMut(u64),
) -> io::Result<(Kept, Sha256Hex, u64)> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    let kept = Kept::copy(path, |kept| {
        copy(reader, |chunk| {
            hash.update(chunk);
            size += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            tick(size);
            kept.write_all(chunk)
        })
    })?;
    Ok((kept, Sha256Hex::from_bytes(hash.finalize().into()), size))
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
            assert_eq!(held.difference(), None);
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
