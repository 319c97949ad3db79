//! A text that a shell will interpret, examined for the people who review it. Somebody else runs it.

use std::path::Path;

use countersign_client::{
    payload::{Command, CommandFile, FileRole, Invocation},
    shell,
};

use super::{held::Examined, plan::variables, scripts};
use crate::{effects, repository};

/// What to show of a text: the scripts that it runs, where they are certain, and what it does, where that is known.
pub fn examine_shell(text: &str, cwd: &Path) -> Command {
    let root = repository::root_of(cwd);
    let place = effects::Place { cwd, repository: root.as_deref() };
    let mut payload = Command::new(Invocation::Shell(text.to_owned()), cwd.to_string_lossy());
    payload.env = variables(&[]);
    payload.files = shell::commands(text).map(|found| files(&found, cwd)).unwrap_or_default();
    payload.base_revision = root.as_deref().and_then(repository::revision_of);
    payload.effects = effects::of_shell(text, &place);
    payload
}

/// The scripts among the words of all commands, each once, with paths from the folder that a `cd` before them leads to.
fn files(commands: &[shell::SimpleCommand], cwd: &Path) -> Vec<CommandFile> {
    let (mut here, mut files) = (cwd.to_owned(), Vec::<CommandFile>::new());
    for command in commands {
        if let [program, folder] = command.words.as_slice()
            && program == "cd"
        {
            here = here.join(folder);
            continue;
        }
        let is_file = |word: &str| here.join(word).is_file();
        let is_path = command.words.first().is_some_and(|word| word.contains('/') && is_file(word));
        let scripts = scripts::positions(&command.words, is_file);
        for position in is_path.then_some(0).into_iter().chain(scripts) {
            let path = here.join(&command.words[position]);
            let Ok(Examined { digest, size, content, is_script }) = Examined::read(&path) else { continue };
            let role = match position == 0 && !is_script {
                true => FileRole::Executable,
                false => FileRole::Script,
            };
            let shown = effects::normal(&path);
            let path = shown.strip_prefix(cwd).unwrap_or(&shown).display().to_string();
            if files.iter().all(|file| file.path != path) {
                files.push(CommandFile { path, role, digest, size, content });
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_shown_also_after_cd() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("a.sh"), "echo a\n").unwrap();
        std::fs::write(folder.path().join("sub/b.py"), "print()\n").unwrap();
        let payload = examine_shell("bash a.sh && cd sub && python3 b.py && python3 b.py", folder.path());
        let shown: Vec<(&str, Option<&str>)> =
            payload.files.iter().map(|file| (file.path.as_str(), file.content.as_deref())).collect();
        assert_eq!(shown, [("a.sh", Some("echo a\n")), ("sub/b.py", Some("print()\n"))]);
    }

    #[test]
    fn what_is_not_understood_has_no_files_and_no_effects() {
        let payload = examine_shell("bash $(echo a.sh)", Path::new("/"));
        assert!(payload.files.is_empty() && payload.effects.is_none());
    }
}
