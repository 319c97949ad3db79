//! What an agent wants to do, whatever its host calls it.

use std::path::{Path, PathBuf};

use countersign_client::payload::{Effect, EffectKind, quoted};
use serde_json::Value;

use crate::examine::{
    effects::{self, Place},
    real_path::real_path,
    repository,
};

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool as the host names it.
    pub tool: String,
    /// The working directory of the agent.
    pub cwd: PathBuf,
    /// What it would do.
    pub action: Action,
}

impl Call {
    /// A command of separate words, as a shell would be given it.
    pub fn of_words(words: &[String], cwd: &Path) -> Self {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        Self { tool: "Bash".to_owned(), cwd: cwd.to_owned(), action: Action::Shell(words.join(" ")) }
    }
}

/// What a call would do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A shell interprets this text.
    Shell(String),
    /// Files are written, replaced or removed.
    Edit(Vec<FileChange>),
    /// Files or folders are read; absolute paths. Without any, it reads in the working directory.
    Read(Vec<PathBuf>),
    /// The agent shows what it intends to do, in Markdown, and wants to begin.
    Plan(String),
    /// The agent asks its person to choose.
    Questions(Vec<Question>),
    /// Something is fetched from, or sent to, another machine.
    Network(String),
    /// The host's own notes, or work that it asks about call by call: nothing outside of the host changes by itself.
    Own(Value),
    /// Any other tool, with its arguments.
    Other(Value),
}

/// A file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The absolute path, as the host has it.
    pub path: PathBuf,
    /// The content now; absent if there is no file.
    pub before: Option<Vec<u8>>,
    /// The content afterwards; absent if it is deleted.
    pub after: Option<Vec<u8>>,
}

/// A question with choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question as the agent puts it.
    pub text: String,
    /// What may be chosen.
    pub choices: Vec<String>,
    /// Whether more than one may be.
    pub is_multiple: bool,
}

impl Call {
    /// The files that it names, as absolute paths without `.` and `..`.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.raw_paths().into_iter().map(|path| effects::normal(&self.cwd.join(path))).collect()
    }

    /// The files that it names as they were given: what `..` means after a link is still to be seen.
    pub fn raw_paths(&self) -> Vec<&Path> {
        match &self.action {
            Action::Edit(files) => files.iter().map(|file| file.path.as_path()).collect(),
            Action::Read(paths) => paths.iter().map(PathBuf::as_path).collect(),
            _ => Vec::new(),
        }
    }

    /// What it does, derived from the call itself; `None` if that is not known.
    pub fn effects(&self) -> Option<Vec<Effect>> {
        let root = repository::root_of(&self.cwd);
        let place = Place { cwd: &self.cwd, repository: root.as_deref() };
        // A link is what it leads to, and still what it is called.
        let of_path = |path: &PathBuf| {
            let mut found = effects::of_file(path, &place);
            let real = real_path(path);
            let real_root = root.as_deref().map(real_path);
            let there = Place { cwd: &self.cwd, repository: real_root.as_deref() };
            found.extend(effects::of_file(&real, &there).into_iter().filter(|_| real != *path));
            found
        };
        let of_paths = || self.paths().iter().flat_map(of_path).collect();
        match &self.action {
            Action::Shell(text) => effects::of_shell(text, &place),
            Action::Read(_) => Some(of_paths()),
            Action::Edit(files) => {
                let mut found: Vec<Effect> = of_paths();
                let deleted = files.iter().filter(|file| file.before.is_some() && file.after.is_none());
                found.extend(
                    deleted.map(|file| Effect::on(EffectKind::Deletes, file.path.display().to_string())),
                );
                Some(found)
            }
            Action::Plan(_) | Action::Questions(_) | Action::Own(_) => Some(Vec::new()),
            Action::Network(target) => Some(vec![Effect::on(EffectKind::Network, target)]),
            Action::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(action: Action) -> Option<Vec<EffectKind>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let call = Call { tool: "t".to_owned(), cwd: folder.path().to_owned(), action };
        call.effects().map(|found| found.iter().map(|it| it.kind).collect())
    }

    #[test]
    fn effects_are_those_of_what_is_touched() {
        let change = |path: &str, after: Option<&str>| FileChange {
            path: path.into(),
            before: Some(b"x".to_vec()),
            after: after.map(|text| text.as_bytes().to_vec()),
        };
        for (action, expected) in [
            (Action::Shell("cargo test".to_owned()), Some(vec![])),
            (Action::Shell("make".to_owned()), None),
            (Action::Shell("rm a".to_owned()), Some(vec![EffectKind::Deletes])),
            (Action::Read(vec!["src/a.rs".into()]), Some(vec![])),
            (Action::Read(vec!["/etc/hosts".into()]), Some(vec![EffectKind::LeavesRepository])),
            (Action::Read(vec![".env".into()]), Some(vec![EffectKind::TouchesSecrets])),
            (Action::Edit(vec![change("a", Some("y"))]), Some(vec![])),
            (Action::Edit(vec![change("a", None)]), Some(vec![EffectKind::Deletes])),
            (Action::Edit(vec![change("../a", Some("y"))]), Some(vec![EffectKind::LeavesRepository])),
            (Action::Network("example.org".to_owned()), Some(vec![EffectKind::Network])),
            (Action::Plan("# Plan".to_owned()), Some(vec![])),
            (Action::Other(Value::Null), None),
        ] {
            assert_eq!(effects(action.clone()), expected, "{action:?}");
        }
    }
}
