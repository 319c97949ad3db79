//! Where hosts look for their settings.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    platform::MANAGED,
    tool::exit::{Exit, Failure},
};

/// The folders that the folders of hosts are in, whether they exist or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The folder of the user.
    pub home: PathBuf,
    /// The folder of the user's settings, `~/.config`.
    pub config: PathBuf,
    /// What every user of the machine shares: `/etc` on Linux.
    pub managed: PathBuf,
    /// Variables with an absolute path.
    variables: BTreeMap<OsString, PathBuf>,
}

/// The text of a file, if there is one.
pub fn there(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Places {
    /// The folders of the current user.
    pub fn of_user() -> Result<Self, Failure> {
        Self::by(env::vars_os()).ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "there is no home folder: HOME is not set, or not an absolute path")
                .next("set HOME, and try again")
        })
    }

    /// The folders by some variables; `None` without a home.
    pub fn by(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Option<Self> {
        let paths = variables.into_iter().map(|(name, value)| (name, PathBuf::from(value)));
        let variables: BTreeMap<OsString, PathBuf> = paths.filter(|(_, path)| path.is_absolute()).collect();
        let path = |name: &str| variables.get(OsString::from(name).as_os_str()).cloned();
        let home = path("HOME")?;
        let config = path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(Self { home, config, managed: PathBuf::from(MANAGED), variables })
    }

    /// With another folder of the user.
    #[must_use]
    pub fn with_home(self, home: &Path) -> Self {
        Self { home: home.to_owned(), ..self }
    }

    /// Every folder below one, for tests and trials.
    pub fn under(root: &Path) -> Self {
        let home = root.join("home");
        Self { config: home.join(".config"), home, managed: root.join("etc"), variables: BTreeMap::new() }
    }

    /// The absolute path in a variable.
    pub fn variable(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(OsString::from(name).as_os_str()).cloned()
    }
}
