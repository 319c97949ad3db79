//! Where a path leads.

use std::path::{Component, Path, PathBuf};

use crate::tool::files;

/// More links than this are a circle.
const MAX_LINKS: usize = 40;

/// The path with links followed, also where the file is not there yet. Of a circle of links, the path as it is.
pub fn real_path(path: &Path) -> PathBuf {
    follow(path, MAX_LINKS).unwrap_or_else(|| path.to_owned())
}

fn follow(path: &Path, links: usize) -> Option<PathBuf> {
    if let Ok(real) = files::canonicalize(path) {
        return Some(real);
    }
    let links = links.checked_sub(1)?;
    let parent = path.parent()?;
    if let Ok(target) = files::read_link(path) {
        return follow(&parent.join(target), links);
    }
    let real = follow(parent, links)?;
    match path.components().next_back()? {
        Component::Normal(name) => Some(real.join(name)),
        Component::ParentDir => real.parent().map(Path::to_owned),
        _ => Some(real),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use std::fs;

    use super::*;

    #[test]
    fn links_are_followed_also_to_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(base.join("in/deep")).unwrap();
        symlink(base.join("out/profile"), base.join("in/notes.md")).unwrap();
        symlink("../in/deep", base.join("in/near")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for (path, real) in [
            ("in/notes.md", "out/profile"),
            ("in/near/new/file", "in/deep/new/file"),
            ("in/near/..", "in"),
            ("nothing/here", "nothing/here"),
            ("loop", "loop"),
        ] {
            assert_eq!(real_path(&base.join(path)), base.join(real), "{path}");
        }
    }
}
