//! The environment that was approved last on this machine. People are shown what differs from it.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use countersign_client::payload::{EnvironmentVariable, Variable, VariableContent};
use countersign_wire::hash::Sha256Hex;

use super::clear;

/// The names and the digests of their contents; nothing before the first approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastEnvironment(Option<BTreeMap<String, Sha256Hex>>);

impl LastEnvironment {
    /// What is kept in a folder for calls of a kind, such as `exec`.
    pub fn read(folder: &Path, kind: &str) -> Self {
        let text = fs::read_to_string(file(folder, kind)).unwrap_or_default();
        Self(serde_json::from_str(&text).ok())
    }

    /// Keeps an environment that was approved.
    pub fn keep(folder: &Path, kind: &str, environment: &[EnvironmentVariable]) -> io::Result<()> {
        let known: BTreeMap<&str, Sha256Hex> =
            environment.iter().map(|variable| (variable.name.as_str(), digest(variable))).collect();
        fs::create_dir_all(folder)?;
        // Several hooks may keep theirs at once: whoever reads has one of them, whole.
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(serde_json::to_string(&known)?.as_bytes())?;
        new.persist(file(folder, kind)).map_err(|error| error.error)?;
        Ok(())
    }

    /// The variables that are new or have another value. Before the first approval that would be all of them, and says nothing.
    pub fn differing(&self, environment: &[EnvironmentVariable]) -> Vec<Variable> {
        let Some(known) = &self.0 else { return Vec::new() };
        let differs = |variable: &&EnvironmentVariable| known.get(&variable.name) != Some(&digest(variable));
        let shown = |it: &EnvironmentVariable| Variable { name: it.name.clone(), value: clear(it) };
        environment.iter().filter(differs).map(shown).collect()
    }

    /// Adds what differs to what people see first, each variable once.
    pub fn add_to(&self, shown: &mut Vec<Variable>, environment: &[EnvironmentVariable]) {
        for variable in self.differing(environment) {
            if !shown.iter().any(|it| it.name == variable.name) {
                shown.push(variable);
            }
        }
    }
}

fn file(folder: &Path, kind: &str) -> PathBuf {
    folder.join(format!("environment-{kind}.json"))
}

fn digest(variable: &EnvironmentVariable) -> Sha256Hex {
    match &variable.content {
        VariableContent::Value(value) => Sha256Hex::digest(value.as_bytes()),
        VariableContent::Mac(mac) => *mac,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> EnvironmentVariable {
        EnvironmentVariable { name: name.to_owned(), content: VariableContent::Value(value.to_owned()) }
    }

    #[test]
    fn what_differs_from_the_last_approval_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("hooks");
        let before = [variable("HOME", "/home/ada"), variable("PATH", "/bin")];
        assert_eq!(LastEnvironment::read(&folder, "exec").differing(&before), []);
        LastEnvironment::keep(&folder, "exec", &before).unwrap();
        let last = LastEnvironment::read(&folder, "exec");
        assert_eq!(last.differing(&before), []);
        let mac = EnvironmentVariable {
            name: "TOKEN".to_owned(),
            content: VariableContent::Mac(Sha256Hex::digest(b"x")),
        };
        let now = [before[0].clone(), variable("PATH", "/tmp:/bin"), mac];
        let mut shown = vec![Variable { name: "PATH".to_owned(), value: Some("/tmp:/bin".to_owned()) }];
        last.add_to(&mut shown, &now);
        let names: Vec<(&str, Option<&str>)> =
            shown.iter().map(|it| (it.name.as_str(), it.value.as_deref())).collect();
        assert_eq!(names, [("PATH", Some("/tmp:/bin")), ("TOKEN", None)]);
        assert_eq!(LastEnvironment::read(&folder, "hook.claude").differing(&now), []);
    }
}
