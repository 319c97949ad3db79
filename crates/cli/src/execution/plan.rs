//! A command from the moment of asking to the moment of running.

use std::{
    env, fmt, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use countersign_client::payload::{Command, CommandFile, FileRole, Invocation, Variable};

use super::{
    held::{Difference, Examined, Held},
    scripts,
    stdin::Stdin,
};
use crate::{
    effects,
    exit::{Exit, Failure},
    repository,
};

/// Variables that change what a program does, shown whenever they are set.
const TELLING_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GIT_CONFIG_COUNT",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_WORK_TREE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "https_proxy",
    "http_proxy",
];

/// A command that was examined and not run yet.
#[derive(Debug, Clone)]
pub struct Plan {
    argv: Vec<String>,
    cwd: PathBuf,
    /// The program that the first word means.
    program: PathBuf,
    /// Every file that decides what runs, with its position among the words.
    files: Vec<PlannedFile>,
    payload: Command,
}

#[derive(Debug, Clone)]
struct PlannedFile {
    position: usize,
    path: PathBuf,
    examined: Examined,
}

/// Why a command can't be asked for.
#[derive(Debug)]
pub enum PlanError {
    /// Its program does not exist, or is not executable.
    NotFound(String),
    /// A part of it can't be shown to anybody.
    NotText,
    /// A file of it can't be read.
    Unreadable {
        /// The file as an absolute path.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => write!(f, "there is no program {program}"),
            Self::NotText => {
                f.write_str("the command or the working directory is not UTF-8 text, so nobody can review it")
            }
            Self::Unreadable { path, error } => write!(f, "{} can't be read: {error}", path.display()),
        }
    }
}

impl PlanError {
    /// What to say to the person who wanted to run it.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NotFound(_) => {
                Failure::new(Exit::NotFound, self).next("check its spelling and PATH; nobody was asked")
            }
            _ => Failure::new(Exit::Failed, self).next("nobody was asked"),
        }
    }
}

impl Plan {
    /// Examines a command in a working directory. `shown` names variables to show besides those that always matter.
    pub fn examine(argv: &[String], cwd: &Path, shown: &[String]) -> Result<Self, PlanError> {
        let (Some(program), Some(cwd_text)) = (argv.first(), cwd.to_str()) else {
            return Err(PlanError::NotText);
        };
        let program = find_program(program, cwd).ok_or_else(|| PlanError::NotFound(program.clone()))?;
        let mut files = vec![PlannedFile::examine(0, program.clone())?];
        for position in scripts::positions(argv, |word| cwd.join(word).is_file()) {
            files.push(PlannedFile::examine(position, cwd.join(&argv[position]))?);
        }
        let root = repository::root_of(cwd);
        let place = effects::Place { cwd, repository: root.as_deref() };
        let mut payload = Command::new(Invocation::Argv(argv.to_vec()), cwd_text);
        payload.env = variables(shown);
        payload.files = files.iter().map(|file| file.payload(cwd)).collect();
        payload.base_revision = root.as_deref().and_then(repository::revision_of);
        payload.effects = effects::of(argv, &place);
        Ok(Self { argv: argv.to_vec(), cwd: cwd.to_owned(), program, files, payload })
    }

    /// What to ask for.
    pub fn payload(&self, stdin: &Stdin) -> Command {
        let input = match stdin {
            Stdin::Terminal => None,
            Stdin::Bytes { input, .. } => *input,
        };
        Command { stdin: input, ..self.payload.clone() }
    }

    /// After the approval: compares everything with what was approved, and holds it.
    pub fn prepare(&self) -> Result<Prepared, Vec<Difference>> {
        let mut differences = Vec::new();
        let program = find_program(&self.argv[0], &self.cwd);
        if program.as_ref() != Some(&self.program) {
            differences.push(Difference {
                what: format!("the program {}", self.argv[0]),
                approved: self.program.display().to_string(),
                now: program.map_or_else(|| "none".to_owned(), |path| path.display().to_string()),
            });
        }
        let revision = repository::root_of(&self.cwd).as_deref().and_then(repository::revision_of);
        if revision != self.payload.base_revision {
            let word = |revision: Option<String>| revision.unwrap_or_else(|| "none".to_owned());
            differences.push(Difference {
                what: "the commit that is checked out".to_owned(),
                approved: word(self.payload.base_revision.clone()),
                now: word(revision),
            });
        }
        let mut held = Vec::new();
        for file in &self.files {
            match Held::open(&file.path, file.examined.digest) {
                Ok(open) => held.push((file.position, file.examined.is_script, open)),
                Err(difference) => differences.push(difference),
            }
        }
        match differences.is_empty() {
            true => Ok(Prepared { argv: self.argv.clone(), cwd: self.cwd.clone(), held }),
            false => Err(differences),
        }
    }
}

impl PlannedFile {
    fn examine(position: usize, path: PathBuf) -> Result<Self, PlanError> {
        match Examined::read(&path) {
            Ok(examined) => Ok(Self { position, path, examined }),
            Err(error) => Err(PlanError::Unreadable { path, error }),
        }
    }

    fn payload(&self, cwd: &Path) -> CommandFile {
        let role = match self.position == 0 && !self.examined.is_script {
            true => FileRole::Executable,
            false => FileRole::Script,
        };
        let path = self.path.strip_prefix(cwd).unwrap_or(&self.path);
        let Examined { digest, size, content, .. } = self.examined.clone();
        CommandFile { path: path.display().to_string(), role, digest, size, content }
    }
}

/// A command whose files are held. It runs what was approved, whatever happens to the paths.
#[derive(Debug)]
pub struct Prepared {
    argv: Vec<String>,
    cwd: PathBuf,
    held: Vec<(usize, bool, Held)>,
}

impl Prepared {
    /// The command, ready to be started.
    pub fn into_command(self, stdin: Stdin) -> io::Result<(tokio::process::Command, Vec<Held>)> {
        let mut argv = self.argv.clone();
        for (position, is_script, held) in &self.held {
            // The system reads a binary before it closes descriptors; an interpreter opens its script later.
            if *position > 0 || *is_script {
                held.inherit()?;
            }
            if *position > 0 {
                argv[*position] = held.path().display().to_string();
            }
        }
        let program = self.held.iter().find(|(position, ..)| *position == 0).map(|(.., held)| held.path());
        let mut command = tokio::process::Command::new(program.unwrap_or_default());
        command.arg0(&self.argv[0]).args(&argv[1..]).current_dir(&self.cwd);
        match stdin {
            Stdin::Terminal => command.stdin(Stdio::inherit()),
            Stdin::Bytes { held, .. } => command.stdin(held.into_file()?),
        };
        Ok((command, self.held.into_iter().map(|(.., held)| held).collect()))
    }
}

/// The file that the system would run for a word.
fn find_program(word: &str, cwd: &Path) -> Option<PathBuf> {
    let is_executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return Some(cwd.join(word)).filter(is_executable);
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| cwd.join(folder).join(word)).find(is_executable)
}

/// The variables that matter, with their values unless these look like secrets.
pub(super) fn variables(shown: &[String]) -> Vec<Variable> {
    let mut names: Vec<&str> =
        TELLING_VARIABLES.iter().copied().chain(shown.iter().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let value = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let variable = |name: &str| {
        let value = value(name)?;
        let value = (!effects::names_a_secret(name)).then_some(value);
        Some(Variable { name: name.to_owned(), value })
    };
    names.into_iter().filter_map(variable).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn script(folder: &Path, text: &str) {
        let path = folder.join("run.sh");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn output(prepared: Prepared) -> String {
        let null = Stdin::Bytes { held: Held::of(&mut io::empty(), &mut |_| ()).unwrap().0, input: None };
        let (mut command, _held) = prepared.into_command(null).unwrap();
        let output = command.output().await.unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    #[tokio::test]
    async fn what_was_examined_runs_whatever_replaces_it_between_check_and_start() {
        for command in ["./run.sh", "sh run.sh", "env A=1 sh run.sh"] {
            for tamper in [
                (|path: &Path| fs::write(path, "#!/bin/sh\necho evil\n")) as fn(&Path) -> io::Result<()>,
                |path| {
                    fs::write(path.with_extension("evil"), "#!/bin/sh\necho evil\n")?;
                    fs::rename(path.with_extension("evil"), path)
                },
                |path| {
                    fs::write(path.with_extension("evil"), "#!/bin/sh\necho evil\n")?;
                    fs::remove_file(path)?;
                    std::os::unix::fs::symlink(path.with_extension("evil"), path)
                },
            ] {
                let folder = tempfile::tempdir().unwrap();
                script(folder.path(), "#!/bin/sh\necho good\n");
                let plan = Plan::examine(&words(command), folder.path(), &[]).unwrap();
                let prepared = plan.prepare().unwrap();
                tamper(&folder.path().join("run.sh")).unwrap();
                assert_eq!(output(prepared).await, "good\n", "{command}");
                let differences = plan.prepare().unwrap_err();
                assert!(differences.iter().any(|it| it.what.ends_with("run.sh")), "{differences:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_program_runs_under_its_own_name_with_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::examine(&words("printf %s-%s a b"), folder.path(), &[]).unwrap();
        assert_eq!(output(plan.prepare().unwrap()).await, "a-b");
        let plan = Plan::examine(&words("sh -c pwd"), folder.path(), &[]).unwrap();
        assert_eq!(output(plan.prepare().unwrap()).await.trim(), folder.path().to_str().unwrap());
    }

    #[test]
    fn a_commit_in_between_is_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &str| {
            let ran = std::process::Command::new("git")
                .current_dir(folder.path())
                .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
                .args(arguments.split(' '))
                .output();
            assert!(ran.unwrap().status.success(), "{arguments}");
        };
        git("init -q");
        git("commit -q --allow-empty -m one");
        let plan = Plan::examine(&words("true"), folder.path(), &[]).unwrap();
        plan.prepare().unwrap();
        git("commit -q --allow-empty -m two");
        let differences = plan.prepare().unwrap_err();
        assert!(differences[0].what.contains("commit"), "{differences:?}");
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        let error = Plan::examine(&words("no-such-program"), Path::new("/"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "there is no program no-such-program");
    }
}
