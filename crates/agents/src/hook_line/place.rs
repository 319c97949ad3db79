//! Where a hook finds rules and profiles: its own line says it, and no variable.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::tool::{
    exit::{Exit, Failure},
    home::Home,
};

/// The folder and the file that a hook's line names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Place {
    /// The folder with profiles and rules. Without it: the usual one of this account, whatever variables say.
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    pub home: Option<String>,
    /// A file with a whole profile, as `countersign keys export` writes it.
    #[arg(long, value_name = "FILE", value_parser = absolute)]
    pub profile_file: Option<String>,
}

fn absolute(text: &str) -> Result<String, String> {
    match Path::new(text).is_absolute() {
        true => Ok(text.to_owned()),
        false => Err("must be an absolute path".to_owned()),
    }
}

impl Place {
    /// What the person who installs a hook uses. Hooks for every user use each account's own folder.
    pub fn of(home: &Home, is_managed: bool) -> Result<Self, Failure> {
        let folder = (!is_managed).then(|| usable(home.folder())).transpose()?;
        Ok(Self { home: folder, profile_file: home.profile_file().map(usable).transpose()? })
    }

    /// The path of the folder.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.home {
            Some(folder) => Ok(PathBuf::from(folder)),
            None => Ok(Home::of_account()?.folder().to_owned()),
        }
    }

    /// The folder, whatever variables say.
    pub fn home(&self) -> Result<Home, Failure> {
        let home = match &self.home {
            Some(folder) => Home::at(Path::new(folder)),
            None => Home::of_account()?,
        };
        Ok(home.with_profile_file(self.profile_file.as_ref().map(PathBuf::from)))
    }

    /// The options that say it.
    pub fn arguments(&self) -> Vec<String> {
        let options = [("--home", &self.home), ("--profile-file", &self.profile_file)];
        let said = options.into_iter().filter_map(|(name, path)| Some([name.to_owned(), path.clone()?]));
        said.flatten().collect()
    }

    /// Reads the options back, and returns the words after them.
    pub(super) fn from_words(words: &[String]) -> (Self, &[String]) {
        let taken = |words: &'_ [String], name: &str| match words {
            [option, path, ..] if option == name => Some(path.clone()),
            _ => None,
        };
        let home = taken(words, "--home");
        let words = if home.is_some() { &words[2..] } else { words };
        let profile_file = taken(words, "--profile-file");
        let words = if profile_file.is_some() { &words[2..] } else { words };
        (Self { home, profile_file }, words)
    }
}

/// A path that settings of hosts can hold, and that means the same in every working directory.
fn usable(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| {
        Failure::new(Exit::Failed, format!("a hook can't be given {}: {why}", path.display()))
            .next("use a plain absolute path")
    };
    let whole = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
    let text = whole.to_str().filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| failed("it is not plain text".to_owned()))
}
