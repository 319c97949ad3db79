//! Where hosts look for their settings.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::exit::{Exit, Failure};

/// The folders of the hosts, whether they exist or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub claude: PathBuf,
    pub codex: PathBuf,
    pub gemini: PathBuf,
    pub opencode: PathBuf,
    pub copilot: PathBuf,
    /// What every user of the machine shares, `/etc`.
    pub managed: PathBuf,
}

impl Places {
    /// The folders of the current user, by the variables that the hosts themselves read.
    pub fn of_user() -> Result<Self, Failure> {
        Self::by(|name| env::var_os(name)).ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "there is no home folder: HOME is not set, or not an absolute path")
                .next("set HOME, and try again")
        })
    }

    fn by(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = path("HOME")?;
        let config = path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(Self {
            claude: path("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude")),
            // Codex keeps trust by this path, in which it resolves links only if it comes from its variable.
            codex: path("CODEX_HOME")
                .map_or_else(|| home.join(".codex"), |folder| folder.canonicalize().unwrap_or(folder)),
            gemini: path("GEMINI_CLI_HOME").unwrap_or_else(|| home.clone()).join(".gemini"),
            opencode: path("OPENCODE_CONFIG_DIR").unwrap_or_else(|| config.join("opencode")),
            copilot: path("COPILOT_HOME").unwrap_or_else(|| home.join(".copilot")),
            managed: PathBuf::from("/etc"),
        })
    }

    /// Every folder below one, for tests and trials.
    pub fn under(root: &Path) -> Self {
        let home = root.join("home");
        Self {
            claude: home.join(".claude"),
            codex: home.join(".codex"),
            gemini: home.join(".gemini"),
            opencode: home.join(".config/opencode"),
            copilot: home.join(".copilot"),
            managed: root.join("etc"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(variables: &[(&str, &str)]) -> Option<Places> {
        Places::by(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn the_variables_of_the_hosts_are_read_as_the_hosts_read_them() {
        assert_eq!(by(&[]), None);
        let usual = by(&[("HOME", "/home/ada")]).unwrap();
        assert_eq!(usual.claude, Path::new("/home/ada/.claude"));
        assert_eq!(usual.opencode, Path::new("/home/ada/.config/opencode"));
        let moved = by(&[
            ("HOME", "/home/ada"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/no/such/x"),
            ("GEMINI_CLI_HOME", "/g"),
            ("XDG_CONFIG_HOME", "/xdg"),
            ("COPILOT_HOME", "relative"),
        ])
        .unwrap();
        assert_eq!(moved.claude, Path::new("/c"));
        assert_eq!(moved.codex, Path::new("/no/such/x"));
        assert_eq!(moved.gemini, Path::new("/g/.gemini"));
        assert_eq!(moved.opencode, Path::new("/xdg/opencode"));
        assert_eq!(moved.copilot, Path::new("/home/ada/.copilot"));
    }
}
