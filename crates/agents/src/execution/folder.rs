//! A folder that is bound with a command: every regular file below it, by its digest.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use countersign_wire::hash::Sha256Hex;

use super::held::Difference;
use crate::{examine::file::Examined, tool::files};

/// More files than this are a mistake, or too many to look at.
const MAX_FILES: usize = 2_000;

/// Files and folders: a tree of empty folders has an end, too.
const MAX_ENTRIES: usize = 20_000;

/// More bytes than this take too long to compare.
const MAX_BYTES: u64 = 64 << 20;

/// The files below a folder, by their paths, sorted. What is below `.git` is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    /// The files with their digests and sizes.
    pub files: Vec<(PathBuf, Sha256Hex, u64)>,
}

/// What has been looked at so far.
#[derive(Debug, Default)]
struct Measure {
    entries: usize,
    bytes: u64,
}

/// Why a folder can't be bound.
#[derive(Debug)]
pub enum FolderError {
    /// It has more files or bytes than can be bound.
    TooLarge(PathBuf),
    /// Something in it leads out of it, or is neither a file nor a folder.
    LeadsOut(PathBuf),
    /// Something in it can't be read.
    Unreadable(PathBuf, io::Error),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(path) => write!(
                f,
                "{} has more than {MAX_FILES} files or {} MB; name a smaller folder",
                path.display(),
                MAX_BYTES >> 20
            ),
            Self::LeadsOut(path) => {
                write!(f, "{} leads out of the folder, so what it names can't be bound", path.display())
            }
            Self::Unreadable(path, error) => write!(f, "{} can't be read: {error}", path.display()),
        }
    }
}

impl Folder {
    /// Reads all files below a folder.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let unreadable = |error| FolderError::Unreadable(path.to_owned(), error);
        let root = files::canonicalize(path).map_err(unreadable)?;
        let mut folder = Self { path: root.clone(), files: Vec::new() };
        folder.collect(&root, &mut Measure::default())?;
        folder.files.sort();
        Ok(folder)
    }

    fn collect(&mut self, folder: &Path, measure: &mut Measure) -> Result<(), FolderError> {
        let unreadable = |error| FolderError::Unreadable(folder.to_owned(), error);
        for entry in files::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path;
            measure.entries += 1;
            if measure.entries > MAX_ENTRIES {
                return Err(FolderError::TooLarge(self.path.clone()));
            }
            let facts = files::symlink_metadata(&path).map_err(unreadable)?;
            if facts.is_dir() {
                if path.file_name().is_none_or(|name| name != ".git") {
                    self.collect(&path, measure)?;
                }
                continue;
            }
            let real = files::canonicalize(&path).unwrap_or_else(|_| path.clone());
            // A link to a folder inside is found there; one to a file inside counts as that file.
            if facts.is_symlink() && real.starts_with(&self.path) && files::is_dir(&real) {
                continue;
            }
            if !real.starts_with(&self.path) || !files::is_file(&real) {
                return Err(FolderError::LeadsOut(path));
            }
            measure.bytes += files::metadata(&real).map_err(unreadable)?.len();
            if self.files.len() == MAX_FILES || measure.bytes > MAX_BYTES {
                return Err(FolderError::TooLarge(self.path.clone()));
            }
            let examined =
                Examined::read(&real).map_err(|error| FolderError::Unreadable(path.clone(), error))?;
            self.files.push((path, examined.digest, examined.size));
        }
        Ok(())
    }

    /// What is other than it was: files that have changed, are gone, or are new.
    pub fn differences(&self) -> Vec<Difference> {
        let difference = |what: &Path, approved: &str, now: &str| Difference {
            what: what.display().to_string(),
            approved: approved.to_owned(),
            now: now.to_owned(),
        };
        let now = match Self::read(&self.path) {
            Ok(now) => now,
            Err(error) => return vec![difference(&self.path, "a folder that was bound", &error.to_string())],
        };
        let find = |files: &[(PathBuf, Sha256Hex, u64)], path: &Path| {
            files.iter().find(|(it, ..)| it == path).map(|(_, digest, _)| *digest)
        };
        let changed = self.files.iter().filter_map(|(path, digest, _)| match find(&now.files, path) {
            Some(other) if other == *digest => None,
            Some(_) => Some(difference(path, "its content", "another content")),
            None => Some(difference(path, "a file", "none")),
        });
        let new = now.files.iter().filter(|(path, ..)| find(&self.files, path).is_none());
        changed.chain(new.map(|(path, ..)| difference(path, "no file", "a new one"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_change_below_a_folder_is_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        for name in ["a", "sub/b", ".git/c"] {
            fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let bound = Folder::read(folder.path()).unwrap();
        assert_eq!(bound.files.len(), 3);
        assert!(bound.differences().is_empty());
        fs::write(at("sub/new"), "x").unwrap();
        assert_eq!(bound.differences()[0].now, "a new one");
        fs::remove_file(at("sub/new")).unwrap();
        fs::write(at("a"), "x").unwrap();
        assert_eq!(bound.differences().len(), 2, "the file, and the link to it");
        fs::remove_file(at("a")).unwrap();
        assert!(!bound.differences().is_empty());
    }

    #[test]
    fn what_leads_out_and_what_is_too_much_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hosts", folder.path().join("link")).unwrap();
        assert!(matches!(Folder::read(folder.path()), Err(FolderError::LeadsOut(_))));
        fs::remove_file(folder.path().join("link")).unwrap();
        for number in 0..=MAX_FILES {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        assert!(matches!(Folder::read(folder.path()), Err(FolderError::TooLarge(_))));
    }
}
