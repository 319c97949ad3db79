//! Where a call happens: what lies inside of the repository, with links followed.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use crate::{
    examine::{effects, repository},
    tool::files,
};

/// The working directory of a call, and the repository around it.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) cwd: PathBuf,
    root: Option<Root>,
}

#[derive(Debug, Clone)]
struct Root {
    /// The root as the working directory names it.
    named: PathBuf,
    /// The same folder without links.
    real: PathBuf,
}

/// A file or folder that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The absolute path without `.` and `..`, as it was written.
    pub(super) named: PathBuf,
    /// Where it is once links are followed; absent if that can't be said.
    pub(super) real: Option<PathBuf>,
}

impl Site {
    pub(super) fn of(cwd: &Path) -> Self {
        let cwd = effects::normal(cwd);
        let named = if cwd.is_absolute() { repository::root_of(&cwd) } else { None };
        let root = named.and_then(|named| Some(Root { real: files::canonicalize(&named).ok()?, named }));
        Self { cwd, root }
    }

    /// The root of the repository as the working directory names it.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_ref().map(|root| root.named.as_path())
    }

    /// The root of the repository with links followed.
    pub(super) fn real_root(&self) -> Option<&Path> {
        self.root.as_ref().map(|root| root.real.as_path())
    }

    /// Whether both the path as written and the path without links are in the repository.
    pub(super) fn is_inside(&self, target: &Target) -> bool {
        let Some(root) = &self.root else { return false };
        let is_named_inside = target.named.starts_with(&root.named) || target.named.starts_with(&root.real);
        is_named_inside && target.real.as_ref().is_some_and(|real| real.starts_with(&root.real))
    }

    /// Whether a folder is in this repository, in no other within it, and is what its name says.
    pub(super) fn can_enter(&self, target: &Target) -> bool {
        let (Some(root), Some(real)) = (&self.root, &target.real) else { return false };
        let named = target.named.strip_prefix(&root.named).or_else(|_| target.named.strip_prefix(&root.real));
        let is_same = named.is_ok() && named.ok() == real.strip_prefix(&root.real).ok();
        is_same && repository::root_of(real).is_some_and(|found| found == root.real)
    }

    /// Every way to name a target below the root.
    pub(super) fn names<'a>(&'a self, target: &'a Target) -> Vec<(&'a Path, Option<&'a Path>)> {
        let named = (target.named.as_path(), self.root());
        let real =
            target.real.as_deref().map(|real| (real, self.root.as_ref().map(|root| root.real.as_path())));
        [Some(named), real].into_iter().flatten().collect()
    }
}

impl Target {
    /// What a word means as a path in a folder.
    pub(super) fn of(folder: &Path, word: &str) -> Self {
        let path = folder.join(word);
        Self { named: effects::normal(&path), real: resolve(&path) }
    }

    /// Whether secrets are usually kept there, by either name.
    pub(super) fn is_secret(&self) -> bool {
        self.paths().any(|path| effects::is_secret_path(&path.to_string_lossy()))
    }

    /// Whether it lies in a folder of this name.
    pub(super) fn has_part(&self, name: &str) -> bool {
        self.paths().any(|path| path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(name)))
    }

    /// The path as written, and without links.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(self.named.as_path()), self.real.as_deref()].into_iter().flatten()
    }
}

/// Follows the links of the longest part of an absolute path that exists. `None` if a link leads nowhere or can't be read:
/// what is written through it would be somewhere else.
fn resolve(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(real.pop()),
            Component::RootDir | Component::Prefix(_) => real.push(part),
            Component::Normal(name) => {
                real.push(name);
                match files::symlink_metadata(&real) {
                    Ok(found) if found.is_symlink() => real = files::canonicalize(&real).ok()?,
                    Ok(_) => {}
                    Err(error) if is_absent(&error) => {
                        // What is not there has no parent to go up to.
                        let climbs = parts.clone().any(|part| part == Component::ParentDir);
                        return (!climbs).then(|| real.join(parts.as_path()));
                    }
                    Err(_) => return None,
                }
            }
        }
    }
    path.is_absolute().then_some(real)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use std::fs;

    use super::*;

    #[test]
    fn a_link_out_of_the_repository_is_outside() {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        let root = base.join("repo");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("vendor/lib/.git")).unwrap();
        fs::write(base.join("outside"), "x").unwrap();
        symlink(&base, root.join("out")).unwrap();
        symlink("src", root.join("same")).unwrap();
        symlink("/nonexistent/x", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let site = Site::of(&root.join("src"));
        let inside = |word: &str| site.is_inside(&Target::of(&site.cwd, word));
        for word in ["a.rs", "../b", ".", "", "../same/a.rs", "new/folder/file"] {
            assert!(inside(word), "{word}");
        }
        for word in [
            "../out/outside",
            "../../outside",
            "/etc/hosts",
            "../dangling",
            "../dangling/x",
            "../loop",
            "no/../../../x",
        ] {
            assert!(!inside(word), "{word}");
        }
        // A program follows the link before it goes up.
        assert!(!inside("../out/../x"));
        let enters = |word: &str| site.can_enter(&Target::of(&site.cwd, word));
        assert!(enters("..") && enters(".") && enters(root.to_str().unwrap()));
        assert!(!enters("../same") && !enters("../out") && !enters("../vendor/lib") && !enters("../.."));
        // Through a link to the repository everything keeps its place.
        symlink(&root, base.join("link")).unwrap();
        let site = Site::of(&base.join("link/src"));
        assert!(
            site.is_inside(&Target::of(&site.cwd, "a.rs")) && site.can_enter(&Target::of(&site.cwd, ".."))
        );
        let outside = Site::of(&base);
        assert!(!outside.is_inside(&Target::of(&outside.cwd, "outside")));
    }
}
