//! Built in: commands that only read, with the options that keep them so. An option that is not listed asks.

use super::{
    git_config::{self, UserFiles},
    search,
    site::{Site, Target},
    texts::Part,
};
use crate::programs;

/// Whether a command only reads inside of the repository: the name of what allows it, or why it does not. `git` are the files of
/// Git that are not the repository's.
pub(super) fn covers(part: &Part, site: &Site, git: &UserFiles) -> Result<String, Option<String>> {
    let mut words: Vec<&str> = part.words.iter().map(String::as_str).collect();
    if words.starts_with(&["git", "--no-pager"]) {
        words.remove(1);
    }
    let Some((reading, named)) = programs::reading_of(&words) else { return Err(None) };
    let name = words[0];
    let reads = reading
        .of(&words[named..])
        .map_err(|word| Some(format!("`{word}` is not among the options that keep `{name}` harmless")))?;
    if part.places.is_empty() {
        return Err(Some("it is not known where it runs after `cd`".to_owned()));
    }
    for place in &part.places {
        let start = Target::of(place, "");
        if !site.can_enter(&start) {
            return Err(Some("it does not run inside of a repository".to_owned()));
        }
        for path in &reads.paths {
            may_read(&Target::of(place, path), path, site)?;
            // Git means a file in a commit by `HEAD:path`.
            if let Some((_, file)) = path.rsplit_once(':').filter(|_| name == "git") {
                may_read(&Target::of(place, file), path, site)?;
            }
            if reads.searches {
                search::may_search(&Target::of(place, path)).map_err(Some)?;
            }
        }
        if reads.searches && reads.paths.is_empty() {
            search::may_search(&start).map_err(Some)?;
        }
        if name == "git" {
            git_config::runs_nothing(git, site, place).map_err(Some)?;
        }
    }
    Ok(format!("built in: `{}` only reads", words[..named].join(" ")))
}

fn may_read(target: &Target, word: &str, site: &Site) -> Result<(), Option<String>> {
    if !site.is_inside(target) {
        return Err(Some(format!("{word} is outside of the repository")));
    }
    if target.is_secret() {
        return Err(Some(format!("{word} may hold secrets")));
    }
    Ok(())
}
