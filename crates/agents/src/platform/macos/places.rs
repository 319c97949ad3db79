//! Places and names of files.

use std::{
    env, io,
    path::{Path, PathBuf},
};

/// What every user of the machine shares.
pub const MANAGED: &str = "/";

/// The number of the group `admin`, whose members may become root.
const ADMIN: u32 = 80;

/// Where an administrator's settings of a host are, below [`MANAGED`], by the name that they have in `/etc` of Linux.
pub fn managed_name(name: &str) -> PathBuf {
    match name {
        "claude-code" => "Library/Application Support/ClaudeCode".into(),
        "gemini-cli" => "Library/Application Support/GeminiCli".into(),
        "opencode" => "Library/Application Support/opencode".into(),
        _ => Path::new("etc").join(name),
    }
}

/// Whether a path is this folder or file, or below it. Most volumes don't tell upper from lower case.
pub fn is_at(path: &Path, folder: &Path) -> bool {
    let lower = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
    lower(path).starts_with(lower(folder))
}

/// Whether only administrators are in a group that is not the one of root. Homebrew's folders belong to it.
pub fn is_administrators(group: u32) -> bool {
    group == ADMIN
}

/// A path to the program that runs. Who can put another one there has the next hook too.
pub fn own_program() -> io::Result<PathBuf> {
    env::current_exe()
}

/// The name of this machine, without the ending that it has in the local network.
pub fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    name.strip_suffix(".local").unwrap_or(&name).to_owned()
}

/// Whether an agent can be put into a sandbox here.
pub fn has_sandbox() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_settings_are_where_hosts_look_for_them() {
        for (name, expected) in [
            ("claude-code", "/Library/Application Support/ClaudeCode"),
            ("codex", "/etc/codex"),
            ("gemini-cli", "/Library/Application Support/GeminiCli"),
            ("opencode", "/Library/Application Support/opencode"),
        ] {
            assert_eq!(Path::new(MANAGED).join(managed_name(name)), Path::new(expected));
        }
    }

    #[test]
    fn names_count_in_upper_and_lower_case() {
        let own = Path::new("/Users/ada/Library/Application Support/Countersign");
        for (path, expected) in [
            ("/Users/ada/library/APPLICATION support/countersign/rules.toml", true),
            ("/users/ada/Library/Application Support/Countersign", true),
            ("/Users/ada/Library/Application Support/Countersigned", false),
        ] {
            assert_eq!(is_at(Path::new(path), own), expected, "{path}");
        }
    }

    #[test]
    fn of_groups_only_the_administrators_are_trusted() {
        assert!(is_administrators(80) && !is_administrators(20), "20 is staff, in which everybody is");
        assert!(!has_sandbox());
        assert!(own_program().unwrap().is_file());
        assert!(!host_name().is_empty() && !host_name().contains(".local"));
    }
}
