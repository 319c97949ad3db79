//! The files that Git follows, by its index. Only the usual format is read: versions 2 and 3 with SHA-1, whole and in one file.

/// Bytes of an entry before its flags.
const FIXED: usize = 60;

/// Where the mode is in an entry.
const MODE: usize = 24;

/// The mode of an entry that is another repository.
const REPOSITORY: u32 = 0o160_000;

/// The flag of an entry with two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// Bytes of the hash at the end.
const TRAILER: usize = 20;

/// A file in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path from the root of the repository.
    pub path: &'a [u8],
    /// Whether it is a submodule.
    pub is_repository: bool,
}

/// Every entry of an index. `None` if it is of another format, or goes on in another file.
pub fn entries(index: &[u8]) -> Option<Vec<Entry<'_>>> {
    let version = number(index, 4)?;
    if !index.starts_with(b"DIRC") || !matches!(version, 2 | 3) {
        return None;
    }
    let count = number(index, 8)?;
    let mut rest = index.get(12..)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let flags = u16::from_be_bytes(rest.get(FIXED..FIXED + 2)?.try_into().ok()?);
        let start = match (flags & EXTENDED != 0, version) {
            (true, 2) => return None,
            (true, _) => FIXED + 4,
            (false, _) => FIXED + 2,
        };
        let length = rest.get(start..)?.iter().position(|byte| *byte == 0)?;
        entries.push(Entry {
            path: rest.get(start..start + length)?,
            is_repository: number(rest, MODE)? == REPOSITORY,
        });
        // An entry is filled up to a multiple of eight with one to eight zeros.
        rest = rest.get((start + length + 8) / 8 * 8..)?;
    }
    is_whole(rest).then_some(entries)
}

/// Whether what follows the entries are extensions that a reader may leave out: their names begin with a capital.
fn is_whole(mut rest: &[u8]) -> bool {
    while rest.len() > TRAILER {
        let size = number(rest, 4).and_then(|size| usize::try_from(size).ok());
        let next = size.and_then(|size| rest.get(size.checked_add(8)?..));
        match next {
            Some(next) if rest[0].is_ascii_uppercase() => rest = next,
            _ => return false,
        }
    }
    rest.len() == TRAILER
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use super::*;

    fn git(root: &Path, words: &[&str]) {
        let output = Command::new("git").arg("-C").arg(root).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    #[test]
    fn entries_are_those_that_git_has_added() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q"]);
        let mut names: Vec<String> = (1..20).map(|length| "x".repeat(length)).collect();
        names.push("sub/.gitattributes".to_owned());
        fs::create_dir(root.join("sub")).unwrap();
        for name in &names {
            fs::write(root.join(name), name).unwrap();
        }
        git(root, &["add", "."]);
        let index = || fs::read(root.join(".git/index")).unwrap();
        let paths = |index: &[u8]| -> Vec<String> {
            let entries = entries(index).unwrap();
            entries.iter().map(|entry| String::from_utf8(entry.path.to_vec()).unwrap()).collect()
        };
        names.sort();
        assert_eq!(paths(&index()), names);
        // An entry with more flags makes it version 3.
        fs::write(root.join("later"), "").unwrap();
        git(root, &["add", "--intent-to-add", "later"]);
        assert_eq!(number(&index(), 4), Some(3));
        assert_eq!(paths(&index()).len(), names.len() + 1);
        let commit = "0123456789abcdef0123456789abcdef01234567";
        git(root, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},module")]);
        let bytes = index();
        let modules: Vec<Entry<'_>> =
            entries(&bytes).unwrap().into_iter().filter(|entry| entry.is_repository).collect();
        assert_eq!(modules, [Entry { path: b"module", is_repository: true }]);
        for cut in 0..bytes.len() {
            assert_eq!(entries(&bytes[..cut]), None, "{cut}");
        }
        git(root, &["update-index", "--index-version", "4"]);
        assert_eq!(entries(&index()), None);
        git(root, &["update-index", "--index-version", "2"]);
        git(root, &["update-index", "--split-index"]);
        assert_eq!(entries(&index()), None, "it goes on in another file");
    }
}
