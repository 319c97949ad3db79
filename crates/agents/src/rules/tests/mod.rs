//! Rules against whole calls: the sentences of docs/rules.md, recorded calls, and shell texts by the thousand.

mod limits;
mod people;
mod policy;
mod recorded;
mod semantics;
mod shell_texts;
mod suggest;

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::*;

/// A repository with a few files, the folder of the tool, and the folder of a user.
struct World {
    folder: TempDir,
}

impl World {
    fn new(user: &str, repository: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        let root = world.root();
        for folder in [".git", "src", "docs", "migrations", ".countersign", "target"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for folder in ["home/.claude", "tool/profiles"] {
            fs::create_dir_all(world.base().join(folder)).unwrap();
        }
        fs::write(root.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
        for file in ["README.md", "src/main.rs", "src/lib.rs", "docs/a.md", "migrations/1.sql"] {
            fs::write(root.join(file), "text\n").unwrap();
        }
        if !repository.is_empty() {
            fs::write(root.join(".countersign/rules.toml"), repository).unwrap();
        }
        fs::write(world.base().join("tool/rules.toml"), user).unwrap();
        world
    }

    fn base(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    fn root(&self) -> PathBuf {
        self.base().join("repo")
    }

    /// With this policy of the administrator, who is whoever runs the tests.
    fn with_policy(self, text: &str) -> Self {
        fs::create_dir_all(self.base().join("etc")).unwrap();
        fs::write(self.policy_file(), text).unwrap();
        self
    }

    fn policy_file(&self) -> PathBuf {
        self.base().join("etc/policy.toml")
    }

    fn policy(&self) -> Result<Option<Policy>, RulesError> {
        let administrator = rustix::process::geteuid().as_raw();
        Policy::read(&self.policy_file(), administrator, Some(&self.base().join("home")))
    }

    fn load(&self) -> Result<Rules, RulesError> {
        let base = self.base();
        let mut rules = Rules::of_folder(&base.join("tool"), Some(base.join("home")), &self.root())?;
        rules.policy = self.policy()?;
        rules.has_cd_path = false;
        rules.git = UserFiles::of_home(&base.join("home"));
        rules.protected = Protected::of_home(&base.join("tool"), &base.join("home"));
        Ok(rules)
    }

    fn decide(&self, tool: &str, action: Action) -> Ruling {
        let call = Call { tool: tool.to_owned(), cwd: self.root(), action };
        self.load().unwrap().decide(&call)
    }

    fn shell(&self, text: &str) -> Verdict {
        self.decide("Bash", Action::Shell(text.to_owned())).verdict
    }

    fn reads(&self, path: &str) -> Verdict {
        self.decide("Read", Action::Read(vec![self.root().join(path)])).verdict
    }

    fn edits(&self, path: &str) -> Verdict {
        self.decide("Edit", Action::Edit(vec![change(&self.root().join(path))])).verdict
    }
}

fn change(path: &Path) -> crate::calls::call::FileChange {
    crate::calls::call::FileChange { path: path.to_owned(), before: Some(vec![1]), after: Some(vec![2]) }
}

fn rule(lines: &[&str]) -> String {
    format!("[[rule]]\n{}\n", lines.join("\n"))
}
