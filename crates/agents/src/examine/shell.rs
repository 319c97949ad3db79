//! A text that a shell will interpret, examined for the people who review it. Somebody else runs it.

use std::path::Path;

use countersign_client::payload::{BoundFile, BoundRole, Command, CommandFile, FileRole, Invocation};

use super::{
    effects,
    environment::variables,
    file::{Examined, real},
    grammar::{self, Examination, NamedFile},
    repository,
};

/// A text as people review it, and the files that decide what it does.
#[derive(Debug, Clone)]
pub struct ExaminedText {
    /// What to show of it, with its state and the effects that are certain.
    pub command: Command,
    /// The programs and scripts that it names by their paths.
    pub files: Vec<BoundFile>,
}

/// What to show of a text.
pub fn examine_shell(text: &str, cwd: &Path) -> Command {
    examine_text(text, cwd).command
}

/// What to show of a text, and what to bind.
pub fn examine_text(text: &str, cwd: &Path) -> ExaminedText {
    let root = repository::root_of(cwd);
    let place = effects::Place { cwd, repository: root.as_deref() };
    let Examination { state, effects, files } = grammar::examine_text(text, &place);
    let mut command = Command::new(Invocation::Shell(text.to_owned()), cwd.to_string_lossy());
    command.env = variables();
    command.base_revision = root.as_deref().and_then(repository::revision_of);
    command.effects = effects;
    command.context.state = Some(state);
    let mut bound = Vec::new();
    for NamedFile { path, role, .. } in files.iter().filter(|file| file.role != BoundRole::Operand) {
        let Ok(examined) = Examined::read(path) else { continue };
        let file = BoundFile { path: real(path), role: *role, digest: Some(examined.digest) };
        if !bound.contains(&file) {
            bound.push(file);
            command.files.push(shown(path, cwd, *role, examined));
        }
    }
    ExaminedText { command, files: bound }
}

/// A file as people see it: by the name that the command gives it.
fn shown(path: &Path, cwd: &Path, role: BoundRole, examined: Examined) -> CommandFile {
    let Examined { digest, size, content, is_script, .. } = examined;
    let role = match role == BoundRole::Executable && !is_script {
        true => FileRole::Executable,
        false => FileRole::Script,
    };
    let named = effects::normal(path);
    let path = named.strip_prefix(cwd).unwrap_or(&named).display().to_string();
    CommandFile { path, role, digest, size, content }
}

#[cfg(test)]
mod tests {
    use countersign_client::payload::State;

    use super::*;

    #[test]
    fn scripts_are_shown_also_after_cd() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("a.sh"), "echo a\n").unwrap();
        std::fs::write(folder.path().join("sub/b.py"), "print()\n").unwrap();
        let text = "bash ./a.sh && cd sub && python3 b.py && python3 b.py";
        let examined = examine_text(text, folder.path());
        let shown: Vec<(&str, Option<&str>)> =
            examined.command.files.iter().map(|file| (file.path.as_str(), file.content.as_deref())).collect();
        assert_eq!(shown, [("a.sh", Some("echo a\n")), ("sub/b.py", Some("print()\n"))]);
        assert_eq!(examined.files.len(), 2);
        assert_eq!(examined.command.context.state, Some(State::Opaque));
    }

    #[test]
    fn a_link_is_bound_where_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().canonicalize().unwrap().join("target.sh");
        std::fs::write(&target, "echo a\n").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("link.sh")).unwrap();
        let examined = examine_text("sh ./link.sh", folder.path());
        assert_eq!(examined.files[0].path, target.display().to_string());
        assert_eq!(examined.command.files[0].path, "link.sh");
    }

    #[test]
    fn what_is_not_understood_has_no_files_and_no_effects() {
        let command = examine_shell("bash $(echo a.sh)", Path::new("/"));
        assert!(command.files.is_empty() && command.effects.is_none());
        assert_eq!(command.context.state, Some(State::NotExamined));
    }
}
