//! The files that decide what a command does.

use std::{
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use countersign_client::payload::{BoundFile, BoundRole, CommandFile, FileRole};

use super::{held::Difference, neighbours};
use crate::{
    examine::{
        effects,
        file::{Examined, real},
    },
    tool::files,
};

/// A file as it was when the command was examined.
#[derive(Debug, Clone)]
pub(super) struct PlannedFile {
    /// Which word of the command names it; `None` if none does.
    pub(super) position: Option<usize>,
    /// The path as it was named, made absolute.
    pub(super) path: PathBuf,
    pub(super) role: BoundRole,
    pub(super) examined: Examined,
}

impl PlannedFile {
    pub(super) fn examine(
        position: Option<usize>,
        path: PathBuf,
        role: BoundRole,
    ) -> Result<Self, (PathBuf, io::Error)> {
        match Examined::read(&path) {
            Ok(examined) => {
                let is_script = role == BoundRole::Executable && examined.is_script;
                let role = if is_script { BoundRole::Script } else { role };
                Ok(Self { position, path, role, examined })
            }
            Err(error) => Err((path, error)),
        }
    }

    /// Whether it runs, and a word of the command names it, so that the very bytes can be given to the system.
    pub(super) fn runs(&self) -> bool {
        self.position.is_some() && matches!(self.role, BoundRole::Executable | BoundRole::Script)
    }

    /// Whether it is a script that would miss the files beside it.
    pub(super) fn needs_neighbours(&self) -> bool {
        let text = self.examined.content.as_deref();
        let run_by = self.examined.run_by.as_deref();
        let is_needed = || neighbours::are_needed(&self.path, run_by, text);
        self.runs() && self.role == BoundRole::Script && is_needed()
    }

    /// The programs that the first line of a script names: one, and what `env` then looks for.
    pub(super) fn run_by(&self, cwd: &Path, search: &str) -> Vec<PathBuf> {
        let Some(line) = &self.examined.run_by else { return Vec::new() };
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        let Some(program) = words.next() else { return Vec::new() };
        let is_env = Path::new(program).file_name().is_some_and(|name| name == "env");
        let looked_for = words.find(|word| !word.starts_with('-')).filter(|_| is_env);
        let looked_for = looked_for.and_then(|word| find_program(word, cwd, search));
        [Some(cwd.join(program)), looked_for].into_iter().flatten().collect()
    }

    pub(super) fn bound(&self) -> BoundFile {
        BoundFile { path: real(&self.path), role: self.role, digest: Some(self.examined.digest) }
    }

    /// As people see it, by the name that the command gives it.
    pub(super) fn shown(&self, cwd: &Path) -> CommandFile {
        let role = match self.role {
            BoundRole::Executable | BoundRole::Interpreter => FileRole::Executable,
            _ => FileRole::Script,
        };
        let named = effects::normal(&self.path);
        let path = named.strip_prefix(cwd).unwrap_or(&named).display().to_string();
        let Examined { digest, size, content, .. } = self.examined.clone();
        CommandFile { path, role, digest, size, content }
    }

    /// What is other than it was.
    pub(super) fn difference(&self) -> Option<Difference> {
        let short = |digest: &dyn std::fmt::Display| {
            format!("SHA-256 {}…", digest.to_string().chars().take(16).collect::<String>())
        };
        let now = match Examined::read(&self.path) {
            Ok(now) if now.digest == self.examined.digest => return None,
            Ok(now) => short(&now.digest),
            Err(error) => error.to_string(),
        };
        let approved = short(&self.examined.digest);
        Some(Difference { what: self.path.display().to_string(), approved, now })
    }
}

/// The file that the system would run for a word.
pub(super) fn find_program(word: &str, cwd: &Path, search: &str) -> Option<PathBuf> {
    let is_executable = |path: &PathBuf| {
        files::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return Some(cwd.join(word)).filter(is_executable);
    }
    std::env::split_paths(search).map(|folder| folder.join(word)).find(is_executable)
}
