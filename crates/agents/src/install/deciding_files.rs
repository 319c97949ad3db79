//! The files that decide whether a hook runs, what it is asked, what an agent is told to do, and what runs by itself.
//!
//! Each host lists its own, one row for each place. Rules protect every row: the kind says how. A row that is one file also
//! names the parts of this crate that act on it: `install` writes it, `switches` reads what turns a hook off in it, `doctor`
//! looks whether it is as it was installed.

use std::path::{Path, PathBuf};

use super::places::Places;
use crate::platform::managed_name;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidingFile {
    /// One file, by its path.
    One(OneFile),
    /// All that a pattern stands for.
    Many(Pattern),
}

/// One file that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneFile {
    /// The folder in which it is.
    pub base: Base,
    /// Its name, perhaps with folders, and without stars.
    pub name: &'static str,
    /// How rules protect it depends on this.
    pub kind: Kind,
    /// Who acts on it.
    pub used_by: &'static [User],
}

/// Files or folders that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The folder in which they are.
    pub place: Place,
    /// Their name, perhaps with stars; `*` alone is the whole folder.
    pub name: &'static str,
    /// How rules protect them depends on this.
    pub kind: Kind,
}

/// A folder of which there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The host's folder of the user.
    User,
    /// The folder of the user.
    Home,
    /// This folder of a project.
    Project(&'static str),
    /// This folder below the one that administrators own, `/etc`.
    Managed(&'static str),
}

/// Folders of which there may be many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Every folder of this name, of users and of projects.
    Named(&'static str),
    /// Any folder at all.
    Anywhere,
    /// This folder below the one that administrators own, `/etc`, with all that is in it.
    ManagedFolder(&'static str),
    /// This folder of another system than Linux, with all that is in it.
    Absolute(&'static str),
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Settings, which name hooks and can switch them off.
    Settings,
    /// Hooks, plugins and what else the host runs by itself.
    Hooks,
    /// Instructions and tools that the host offers its agent.
    Skills,
    /// What may be done without asking.
    Rules,
    /// What a shell runs when it starts.
    StartUp,
}

/// A part of this crate that acts on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// It is read for what switches a hook off.
    Switches,
    /// It is written by `install`.
    Install,
    /// It is compared with what `install` has written.
    Doctor,
}

/// What decides whichever host runs: our own rules of a repository, and what shells run before a command.
pub const OF_EVERY_HOST: &[DecidingFile] = &[
    DecidingFile::Many(Pattern::new(Place::Named(".countersign"), "*", Kind::Rules)),
    start_up(".bashrc"),
    start_up(".bash_profile"),
    start_up(".bash_login"),
    start_up(".bash_aliases"),
    start_up(".bash_logout"),
    start_up(".profile"),
    start_up(".zshrc"),
    start_up(".zshenv"),
    start_up(".zprofile"),
    start_up(".zlogin"),
];

const fn start_up(name: &'static str) -> DecidingFile {
    DecidingFile::One(OneFile::new(Base::Home, name, Kind::StartUp, &[]))
}

impl Kind {
    /// Whether agents may not touch it at all. The others are changed if a person says so, and by no rule.
    pub fn is_denied(self) -> bool {
        matches!(self, Self::Settings | Self::Hooks | Self::Rules)
    }
}

impl Pattern {
    /// A row of the table.
    pub const fn new(place: Place, name: &'static str, kind: Kind) -> Self {
        Self { place, name, kind }
    }
}

impl OneFile {
    /// A row of the table.
    pub const fn new(base: Base, name: &'static str, kind: Kind, used_by: &'static [User]) -> Self {
        Self { base, name, kind, used_by }
    }

    /// Whether a part of this crate acts on it.
    pub fn is_used_by(&self, user: User) -> bool {
        self.used_by.contains(&user)
    }

    /// Where it is: `folder` is the host's folder of the user.
    pub fn path(&self, folder: &Path, places: &Places, project: &Path) -> PathBuf {
        let parent = match self.base {
            Base::User => folder.to_owned(),
            Base::Home => places.home.clone(),
            Base::Project(below) => project.join(below),
            Base::Managed(below) => places.managed.join(managed_name(below)),
        };
        parent.join(self.name)
    }
}

impl DecidingFile {
    /// How rules protect it depends on this.
    pub fn kind(&self) -> Kind {
        match self {
            Self::One(file) => file.kind,
            Self::Many(pattern) => pattern.kind,
        }
    }

    /// The file, if it is one.
    pub fn one(&self) -> Option<&OneFile> {
        match self {
            Self::One(file) => Some(file),
            Self::Many(_) => None,
        }
    }
}
