//! A command from the moment of asking to the moment of running.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use countersign_client::payload::{
    BoundFile, BoundRole, Call, Command, CommandFile, EnvironmentVariable, Invocation, Payload, State,
};
use serde_json::{Map, json};

use super::{
    folder::{Folder, FolderError},
    held::{Difference, Held},
    planned::{PlannedFile, find_program},
    run_as::RunAs,
    stdin::{Reads, Stdin},
};
use crate::{
    examine::{
        effects,
        environment::{Environment, Mac, last::LastEnvironment, of_exec},
        file::real,
        grammar::{self, Runner},
        repository,
    },
    tool::exit::{Exit, Failure},
};

/// What a person wants a command to have besides its words.
pub struct Wanted<'a> {
    /// The environment of this process.
    pub variables: &'a [(OsString, OsString)],
    /// Names of variables that it gets too.
    pub env: &'a [String],
    /// Folders that are bound with it. Its scripts run in place then.
    pub with: &'a [PathBuf],
    /// Stands for values that must not be shown.
    pub mac: Mac<'a>,
    /// The environment that was approved last.
    pub last: &'a LastEnvironment,
}

/// The kind of calls that this tool runs itself.
pub const KIND: &str = "exec";

/// A command that was examined and not run yet.
#[derive(Debug, Clone)]
pub struct Plan {
    argv: Vec<String>,
    cwd: PathBuf,
    /// The program that the first word means.
    program: PathBuf,
    /// Whether it was found where programs are installed. If it is a script, it needs the files beside it, and runs in place.
    is_installed: bool,
    /// Every file that decides what runs.
    files: Vec<PlannedFile>,
    folders: Vec<Folder>,
    environment: Environment,
    state: State,
    view: Command,
    repository: Option<PathBuf>,
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
    /// A script of it needs the files beside it.
    Neighbours(PathBuf),
    /// A folder can't be bound.
    Folder(FolderError),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => write!(f, "there is no program {program}"),
            Self::NotText => {
                f.write_str("the command or the working directory is not UTF-8 text, so nobody can review it")
            }
            Self::Unreadable { path, error } => write!(f, "{} can't be read: {error}", path.display()),
            Self::Neighbours(path) => {
                write!(f, "{} seems to load files beside it, and they are not bound", path.display())
            }
            Self::Folder(error) => error.fmt(f),
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
            Self::Neighbours(path) => {
                let folder = path.parent().unwrap_or(path).display().to_string();
                Failure::new(Exit::Failed, self)
                    .next(format!("bind them with `--with {folder}`; nobody was asked"))
            }
            _ => Failure::new(Exit::Failed, self).next("nobody was asked"),
        }
    }
}

/// Contents of files are shown up to this many bytes in all; digests bind the rest.
const MAX_CONTENTS: usize = 1 << 20;

impl Plan {
    /// Examines a command in a working directory.
    pub fn examine(argv: &[String], cwd: &Path, wanted: &Wanted<'_>) -> Result<Self, PlanError> {
        let (Some(word), Some(cwd_text)) = (argv.first(), cwd.to_str()) else {
            return Err(PlanError::NotText);
        };
        let root = repository::root_of(cwd);
        let environment = of_exec(wanted.variables, wanted.env, cwd, root.as_deref(), wanted.mac);
        let search = search_path(&environment);
        let program = find_program(word, cwd, &search).ok_or_else(|| PlanError::NotFound(word.clone()))?;
        let place = effects::Place { cwd, repository: root.as_deref() };
        let examination = grammar::examine(argv, &place, Runner::Tool);
        let mut files = vec![planned(Some(0), &program, BoundRole::Executable)?];
        for named in examination.files.into_iter().filter(|named| named.position != Some(0)) {
            // Where nobody knows what runs, any of them may.
            let is_unclear = examination.state == State::NotExamined && named.role == BoundRole::Operand;
            // It stays where it is then: a word that is an option's value must not change.
            let (position, role) =
                if is_unclear { (None, BoundRole::Script) } else { (named.position, named.role) };
            files.push(planned(position, &named.path, role)?);
        }
        let run_by: Vec<PathBuf> =
            files.iter().filter(|file| file.runs()).flat_map(|file| file.run_by(cwd, &search)).collect();
        for path in run_by {
            files.push(planned(None, &path, BoundRole::Interpreter)?);
        }
        let is_installed = !word.contains('/');
        let needs_neighbours =
            |file: &&PlannedFile| file.needs_neighbours() && !(is_installed && file.position == Some(0));
        if wanted.with.is_empty()
            && let Some(script) = files.iter().find(needs_neighbours)
        {
            return Err(PlanError::Neighbours(script.path.clone()));
        }
        let folders = wanted.with.iter().map(|folder| Folder::read(&cwd.join(folder)));
        let folders = folders.collect::<Result<Vec<_>, _>>().map_err(PlanError::Folder)?;
        let mut state = examination.state;
        if state == State::Examined && !environment.effects.is_empty() {
            state = State::Opaque;
        }
        let mut view = Command::new(Invocation::Argv(argv.to_vec()), cwd_text);
        view.env.clone_from(&environment.shown);
        wanted.last.add_to(&mut view.env, &environment.bound);
        view.base_revision = root.as_deref().and_then(repository::revision_of);
        view.context.about.project = Some(repository::name_of(cwd));
        view.context.about.branch = root.as_deref().and_then(repository::branch_of);
        let all = [environment.effects.clone(), examination.effects.unwrap_or_default()].concat();
        view.effects = (state != State::NotExamined || !all.is_empty()).then_some(all);
        let mut plan = Self {
            argv: argv.to_vec(),
            cwd: cwd.to_owned(),
            program,
            is_installed,
            files,
            folders,
            environment,
            state,
            view,
            repository: root,
        };
        plan.view.files = plan.shown_files();
        Ok(plan)
    }

    /// What runs. The rest is shown with the proof.
    fn shown_files(&self) -> Vec<CommandFile> {
        let is_shown = |file: &&PlannedFile| matches!(file.role, BoundRole::Executable | BoundRole::Script);
        let mut shown: Vec<CommandFile> =
            self.files.iter().filter(is_shown).map(|file| file.shown(&self.cwd)).collect();
        let mut left = MAX_CONTENTS;
        for file in &mut shown {
            let size = file.content.as_ref().map_or(0, String::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => file.content = None,
            }
        }
        shown
    }

    /// The program and its arguments, as they were given.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }

    /// What to say about variables that the command does not get.
    pub fn note(&self) -> Option<String> {
        self.environment.note()
    }

    /// The variables that count.
    pub fn bound_environment(&self) -> &[EnvironmentVariable] {
        &self.environment.bound
    }

    /// What to ask for.
    pub fn payload(&self, reads: Reads, run_as: &RunAs) -> Payload {
        let mut message = Map::new();
        message.insert("argv".to_owned(), json!(self.argv));
        match (reads, reads.input()) {
            (Reads::Terminal, _) => drop(message.insert("stdin".to_owned(), json!("terminal"))),
            (_, Some(input)) => drop(message.insert("stdin".to_owned(), json!(input))),
            _ => {}
        }
        message.insert("user".to_owned(), json!(run_as));
        let mut call = Call::new(KIND, "run", &self.argv[0], &real(&self.cwd), message);
        call.repository = self.repository.as_deref().map(real);
        call.environment.clone_from(&self.environment.bound);
        call.files = self.bound_files();
        let view = Command { stdin: reads.input(), ..self.view.clone() };
        Payload::Command(view).with_call(Some(self.state), call)
    }

    /// Every file that decides what runs, once.
    pub fn bound_files(&self) -> Vec<BoundFile> {
        let with = self.folders.iter().flat_map(|folder| &folder.files).map(|(path, digest, _)| BoundFile {
            path: real(path),
            role: BoundRole::With,
            digest: Some(*digest),
        });
        let mut files = Vec::new();
        for file in self.files.iter().map(PlannedFile::bound).chain(with) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// After the approval: compares everything with what was approved, and holds it.
    pub fn prepare(&self) -> Result<Prepared, Vec<Difference>> {
        let mut differences = Vec::new();
        let program = find_program(&self.argv[0], &self.cwd, &search_path(&self.environment));
        if program.as_ref() != Some(&self.program) {
            differences.push(Difference {
                what: format!("the program {}", self.argv[0]),
                approved: self.program.display().to_string(),
                now: program.map_or_else(|| "none".to_owned(), |path| path.display().to_string()),
            });
        }
        let revision = repository::root_of(&self.cwd).as_deref().and_then(repository::revision_of);
        if revision != self.view.base_revision {
            let word = |revision: Option<String>| revision.unwrap_or_else(|| "none".to_owned());
            differences.push(Difference {
                what: "the commit that is checked out".to_owned(),
                approved: word(self.view.base_revision.clone()),
                now: word(revision),
            });
        }
        let (mut held, mut compared) = (Vec::new(), Vec::new());
        for file in &self.files {
            let is_bound = !self.folders.is_empty() || self.is_installed && file.position == Some(0);
            let in_place = is_bound && file.role == BoundRole::Script;
            match file.position.filter(|_| file.runs() && !in_place) {
                Some(position) => match Held::open(&file.path, file.examined.digest) {
                    Ok(open) => held.push((position, file.role == BoundRole::Script, open)),
                    Err(difference) => differences.push(difference),
                },
                None => compared.push(file.clone()),
            }
        }
        let prepared = Prepared { plan: self.clone(), held, compared };
        differences.extend(prepared.differences());
        match differences.is_empty() {
            true => Ok(prepared),
            false => Err(differences),
        }
    }
}

fn planned(position: Option<usize>, path: &Path, role: BoundRole) -> Result<PlannedFile, PlanError> {
    // People read it: without `.` in between.
    let path = path.components().collect();
    PlannedFile::examine(position, path, role).map_err(|(path, error)| PlanError::Unreadable { path, error })
}

/// Where the command and this tool look for programs.
fn search_path(environment: &Environment) -> String {
    let path = environment.passed.iter().find(|(name, _)| name == "PATH");
    path.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A command whose files are held. It runs what was approved, whatever happens to the paths.
#[derive(Debug)]
pub struct Prepared {
    plan: Plan,
    held: Vec<(usize, bool, Held)>,
    /// What runs or is read in place.
    compared: Vec<PlannedFile>,
}

/// Why a command does not start.
#[derive(Debug)]
pub enum StartError {
    /// Something has changed since it was approved.
    Changed(Vec<Difference>),
    /// The system does not start it.
    System(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Prepared {
    /// What is in place and other than it was.
    fn differences(&self) -> Vec<Difference> {
        let of_files = self.compared.iter().filter_map(PlannedFile::difference);
        of_files.chain(self.plan.folders.iter().flat_map(Folder::differences)).collect()
    }

    /// The command, ready to be started. What is not held is compared here: immediately before the start.
    pub fn into_command(self, stdin: Stdin) -> Result<(tokio::process::Command, Vec<Held>), StartError> {
        let mut argv = self.plan.argv.clone();
        for (position, is_script, held) in &self.held {
            // The system reads a binary before it closes descriptors; an interpreter opens its script later.
            if *position > 0 || *is_script {
                held.inherit()?;
            }
            if *position > 0 {
                argv[*position] = held.path().display().to_string();
            }
        }
        for file in self.compared.iter().filter(|file| file.runs()) {
            if let Some(position) = file.position.filter(|position| *position > 0) {
                // An interpreter would look for a word without a slash elsewhere too.
                argv[position] = file.path.display().to_string();
            }
        }
        let program = self.held.iter().find(|(position, ..)| *position == 0).map(|(.., held)| held.path());
        let program = program.unwrap_or_else(|| self.plan.program.clone());
        let mut command = tokio::process::Command::new(program);
        command.arg0(&self.plan.argv[0]).args(&argv[1..]).current_dir(&self.plan.cwd);
        command.env_clear().envs(self.plan.environment.passed.iter().map(|(name, value)| (name, value)));
        match stdin {
            Stdin::Terminal => command.stdin(Stdio::inherit()),
            Stdin::Bytes { held, .. } => command.stdin(held.into_file()?),
        };
        let mut differences = self.differences();
        differences.extend(self.held.iter().filter_map(|(.., held)| held.difference()));
        match differences.is_empty() {
            true => Ok((command, self.held.into_iter().map(|(.., held)| held).collect())),
            false => Err(StartError::Changed(differences)),
        }
    }
}

#[cfg(test)]
mod tests;
