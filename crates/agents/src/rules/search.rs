//! Whether a search through a folder can come upon secrets.

use super::site::Target;
use crate::{examine::effects, tool::files};

/// A folder with more entries is not checked: a hook runs before each call, and must be quick.
const MAX_ENTRIES: usize = 2_000;

/// Says why a folder must not be searched without asking. Links are not followed, as programs that search do not.
pub(super) fn may_search(target: &Target) -> Result<(), String> {
    let Some(real) = &target.real else { return Err("it can't be said what is searched".to_owned()) };
    let mut folders = match files::is_dir(real) {
        true => vec![real.clone()],
        false => return Ok(()),
    };
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        let unreadable = |_| format!("{} can't be checked for secrets", folder.display());
        for entry in files::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            count += 1;
            if count > MAX_ENTRIES {
                return Err("it searches a folder that is too large to be checked for secrets".to_owned());
            }
            let path = entry.path;
            if effects::is_secret_path(&path.to_string_lossy()) {
                return Err(format!("it searches a folder with {}, which may hold secrets", path.display()));
            }
            if entry.is_dir && entry.name != ".git" {
                folders.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_with_secrets_or_too_much_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let target = |name: &str| {
            let path = folder.path().join(name);
            Target { named: path.clone(), real: Some(path) }
        };
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/x.rs"), "x").unwrap();
        may_search(&target("")).unwrap();
        fs::write(folder.path().join("a/b/server.key"), "x").unwrap();
        assert!(may_search(&target("")).unwrap_err().contains("server.key"));
        may_search(&target("a/b/x.rs")).unwrap();
        fs::create_dir(folder.path().join("many")).unwrap();
        for number in 0..=MAX_ENTRIES {
            fs::write(folder.path().join(format!("many/{number}")), "").unwrap();
        }
        assert!(may_search(&target("many")).unwrap_err().contains("too large"));
    }
}
