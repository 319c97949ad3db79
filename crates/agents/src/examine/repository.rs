//! The repository around a working directory.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::git::folder::GitFolder;
use crate::tool::{
    exit::{Exit, Failure},
    files,
};

/// The root of the repository that a folder belongs to.
pub fn root_of(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| files::exists(&folder.join(".git"))).map(Path::to_owned)
}

/// The folder that a person names, else the working directory, as an absolute path.
pub fn folder(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("the working directory can't be found: {error}"));
    let here = env::current_dir().map_err(failed)?;
    Ok(named.map_or(here.clone(), |folder| here.join(folder)))
}

/// What people call the place: the end of the repository's origin, else its folder, else the folder itself.
pub fn name_of(folder: &Path) -> String {
    let Some(root) = root_of(folder) else { return folder_name(folder) };
    let origin = GitFolder::of(&root).and_then(|folder| folder.remote("origin"));
    origin.as_deref().and_then(name_of_url).unwrap_or_else(|| folder_name(&root))
}

/// The commit that is checked out in a repository; absent before the first, and where it can't be read.
pub fn revision_of(root: &Path) -> Option<String> {
    GitFolder::of(root)?.revision()
}

/// The branch that is checked out in a repository; absent where a commit is, and where it can't be read.
pub fn branch_of(root: &Path) -> Option<String> {
    GitFolder::of(root)?.branch()
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The last two parts of a URL, such as `acme/widgets`, without anything secret that may be before them.
fn name_of_url(url: &str) -> Option<String> {
    let path = url.trim_end_matches('/').trim_end_matches(".git");
    let path = path.rsplit_once([':', '@']).map_or(path, |(_, end)| end);
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let last = parts.next()?;
    Some(parts.next().map_or_else(|| last.to_owned(), |first| format!("{first}/{last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_end_of_the_origin() {
        for (url, name) in [
            ("git@example.org:acme/widgets.git", "acme/widgets"),
            ("https://user:secret@example.org/acme/widgets", "acme/widgets"),
            ("https://example.org/widgets.git/", "example.org/widgets"),
            ("/srv/git/widgets.git", "git/widgets"),
        ] {
            assert_eq!(name_of_url(url).as_deref(), Some(name), "{url}");
        }
    }
}
