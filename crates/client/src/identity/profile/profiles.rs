//! Where the profiles of a user are, and what they are called.

use std::{
    env,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use super::{error::ProfileError, key_files::FACTS};
use crate::platform::Folders;

/// The variable that names the folder of everything, instead of the platform's.
pub const HOME_VARIABLE: &str = "COUNTERSIGN_HOME";

/// The name of a profile, which is also that of its folder: 1 to 64 lowercase letters, digits, dots, dashes and
/// underscores, the first a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfileName(Box<str>);

impl ProfileName {
    /// Checks a name. A path is none: a name can't lead out of the folder of profiles.
    pub fn new(name: &str) -> Result<Self, ProfileError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if name.len() <= 64 && starts_well && name.bytes().all(fits) {
            Ok(Self(name.into()))
        } else {
            let rule = "must be 1 to 64 lowercase letters, digits, dots, dashes and underscores";
            Err(ProfileError::Invalid { part: "the name of a profile", rule })
        }
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The folder in which each profile has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profiles {
    base: PathBuf,
}

impl Profiles {
    /// The folder of the current user, by the variables of this process.
    pub fn of_user() -> Result<Self, ProfileError> {
        base(Folders::CURRENT, |name| env::var_os(name)).map(Self::at).ok_or(ProfileError::NoHome)
    }

    /// The usual folder in this home of a user.
    pub fn in_home_of(user: &Path) -> Self {
        let home = |name: &str| (name == "HOME" || name == "LOCALAPPDATA").then(|| user.into());
        Self::at(base(Folders::CURRENT, home).unwrap_or_else(|| user.join("countersign/profiles")))
    }

    /// Another folder than the user's.
    pub fn at(base: PathBuf) -> Self {
        Self { base }
    }

    /// The folder that has them all, whether it exists or not.
    pub fn path(&self) -> &Path {
        &self.base
    }

    /// The folder of one profile, whether it exists or not.
    pub fn folder(&self, name: &ProfileName) -> PathBuf {
        self.base.join(name.as_str())
    }

    /// The names of all profiles, sorted; none if there is no folder yet.
    pub fn list(&self) -> Result<Vec<ProfileName>, ProfileError> {
        let failed = || ProfileError::io(&self.base, "read");
        let entries = match fs::read_dir(&self.base) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed()(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed())?;
            let name = entry.file_name().to_str().and_then(|name| ProfileName::new(name).ok());
            // What one of them lacks is said when it is opened.
            if let Some(name) = name.filter(|_| entry.path().join(FACTS).is_file()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// The folder of profiles, from the variables that the platform has for it.
fn base(folders: Folders, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A relative path would be another one in every working directory, and XDG says to ignore it.
    let path = |name: &str| {
        let path = variable(name).map(PathBuf::from)?;
        (folders == Folders::Windows || path.is_absolute())
            .then_some(path)
            .filter(|path| path != Path::new(""))
    };
    if variable(HOME_VARIABLE).is_some_and(|value| !value.is_empty()) {
        return path(HOME_VARIABLE).map(|home| home.join("profiles"));
    }
    let data = match folders {
        Folders::Xdg => path("XDG_DATA_HOME").or_else(|| Some(path("HOME")?.join(".local/share")))?,
        Folders::MacOs => path("HOME")?.join("Library/Application Support"),
        Folders::Windows => path("LOCALAPPDATA")?,
    };
    Some(data.join("countersign").join("profiles"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folders: Folders, variables: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        base(folders, variable).map(|path| path.to_str().unwrap().replace('\\', "/"))
    }

    #[test]
    fn every_platform_has_its_folder_and_one_variable_overrides_it() {
        let xdg = |variables: &[(&str, &str)]| found(Folders::Xdg, variables);
        let in_home = Some("/home/ada/.local/share/countersign/profiles".to_owned());
        assert_eq!(xdg(&[("HOME", "/home/ada")]), in_home);
        assert_eq!(
            xdg(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "data")]),
            in_home,
            "a relative one is ignored"
        );
        assert_eq!(xdg(&[("HOME", "/home/ada"), ("COUNTERSIGN_HOME", "")]), in_home);
        assert_eq!(
            xdg(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data")]),
            Some("/data/countersign/profiles".to_owned())
        );
        assert_eq!(
            found(Folders::MacOs, &[("HOME", "/Users/ada"), ("XDG_DATA_HOME", "/data")]),
            Some("/Users/ada/Library/Application Support/countersign/profiles".to_owned())
        );
        assert_eq!(
            found(Folders::Windows, &[("LOCALAPPDATA", "C:/Users/ada/AppData/Local")]),
            Some("C:/Users/ada/AppData/Local/countersign/profiles".to_owned())
        );
        for folders in [Folders::Xdg, Folders::MacOs, Folders::Windows] {
            let variables = [
                ("COUNTERSIGN_HOME", "/cs"),
                ("HOME", "/h"),
                ("XDG_DATA_HOME", "/d"),
                ("LOCALAPPDATA", "/a"),
            ];
            assert_eq!(found(folders, &variables), Some("/cs/profiles".to_owned()));
            assert_eq!(found(folders, &[]), None);
        }
        assert_eq!(
            xdg(&[("HOME", "/h"), ("COUNTERSIGN_HOME", "here")]),
            None,
            "set, and of no use: not guessed"
        );
    }

    #[test]
    fn a_name_can_not_lead_elsewhere() {
        for good in ["a", "work", "ci-1", "a.b_c", "9"] {
            assert!(ProfileName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            ".hidden",
            "-rf",
            "Work",
            "a b",
            "é",
            "a\0",
            &"x".repeat(65),
        ] {
            assert!(ProfileName::new(bad).is_err(), "{bad}");
        }
    }
}
