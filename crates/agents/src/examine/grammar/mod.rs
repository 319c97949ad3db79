//! How much of a command is certain: a grammar that is sure, and no guesses.
//!
//! Interpreters are read as `NAME [flags without values] SCRIPT ARGS…`, where the script is an existing regular file, and
//! shells as `sh -c TEXT` too, and in hooks `bash -lc TEXT`; code may be an argument (`python3 -c CODE`), and a module has a name
//! (`python3 -m NAME`); wrappers as `env NAME=V…`, `timeout N`, `nice -n N`, `nohup` and `setsid`. A program whose
//! effects are known is examined; one that is not known is opaque. Whatever is written otherwise is not examined.
//!
//! | to find | look in |
//! |---|---|
//! | one command | this file |
//! | what an interpreter runs | `interpreters` |
//! | a text with several | `text` |
//! | what a variable before a command means | [`variables`] |

mod interpreters;
mod text;
pub mod variables;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use countersign_client::payload::{BoundRole, Effect, EffectKind, State};

use super::{
    effects::{self, Place},
    facts,
    names::base_name,
};
use crate::{
    programs::{self, interpreters::Grammar, row::Does},
    tool::files,
};

/// What is certain about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// How much it is.
    pub state: State,
    /// The effects that are certain; `None` if it was not examined.
    pub effects: Option<Vec<Effect>>,
    /// The regular files that it names, each once.
    pub files: Vec<NamedFile>,
}

/// A regular file that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Which word of the command names it; `None` if it is in a text for a shell.
    pub position: Option<usize>,
    /// The path as it was named, made absolute.
    pub path: PathBuf,
    /// What it is to the command.
    pub role: BoundRole,
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// This tool, which gives an interpreter the whole path of its script.
    Tool,
    /// Another program, with the words as they are.
    Host,
}

/// Examines a program with its arguments.
pub fn examine(argv: &[String], place: &Place<'_>, runner: Runner) -> Examination {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut reader = Reader::new(place.repository, runner);
    reader.command(&words, Some(0), &mut Here::of(place.cwd), None);
    reader.finish()
}

/// Examines a text that a shell interprets. It is as certain as the least certain part of it.
pub fn examine_text(text: &str, place: &Place<'_>) -> Examination {
    let mut reader = Reader::new(place.repository, Runner::Host);
    reader.text(text, &mut Here::of(place.cwd));
    reader.finish()
}

/// Where a command runs, and what those before it may have changed.
#[derive(Debug, Clone)]
struct Here {
    cwd: PathBuf,
    /// Whether it is certain that this is the folder.
    is_certain: bool,
    /// Whether it was entered only if a command before succeeded.
    is_conditional: bool,
    before: Before,
}

/// What the commands before one may have done.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    /// Whether they have written files, so that what a path names then is not certain.
    is_changed: bool,
    /// Whether they may have done anything, so that what they made adds nothing.
    has_run_anything: bool,
}

impl Here {
    fn of(cwd: &Path) -> Self {
        let cwd = cwd.to_owned();
        Self { cwd, is_certain: true, is_conditional: false, before: Before::default() }
    }

    /// The file that a word names now, if that is certain.
    fn file(&self, word: &str) -> Option<PathBuf> {
        let path = self.cwd.join(word);
        let is_certain = self.is_certain || word.starts_with('/');
        (is_certain && !word.is_empty() && files::is_file(&path)).then_some(path)
    }
}

/// Shells in shells are read to this depth.
const MAX_DEPTH: usize = 4;

/// Folders whose programs are what their names say.
const SYSTEM_FOLDERS: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// Commands of package managers that fetch a program and run it.
const FETCH_AND_RUN: &[&str] = &["exec", "x", "dlx", "create", "init"];

/// Git's own commands that are no rows of the table. An alias can't replace them.
const GIT_COMMANDS: &[&str] = &[
    "archive",
    "cat-file",
    "check-ignore",
    "cherry",
    "config",
    "count-objects",
    "diff-tree",
    "for-each-ref",
    "format-patch",
    "fsck",
    "hash-object",
    "help",
    "ls-files",
    "merge-base",
    "merge-tree",
    "mv",
    "name-rev",
    "notes",
    "reflog",
    "remote",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "symbolic-ref",
    "update-index",
    "update-ref",
    "verify-commit",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

struct Reader<'a> {
    repository: Option<&'a Path>,
    runner: Runner,
    state: State,
    effects: Vec<Effect>,
    files: Vec<NamedFile>,
    depth: usize,
    /// Whether every command so far only reads.
    only_reads: bool,
}

/// What is kept of a request that was not examined: effects of parts that are certain, and serious whatever the rest does. What
/// is outside or overwritten is not certain as long as the rest is not.
fn matters_alone(effect: &Effect) -> bool {
    let is_unclear = matches!(effect.kind, EffectKind::RunsFetched | EffectKind::RunsInput);
    let depends = matches!(effect.kind, EffectKind::LeavesRepository | EffectKind::Overwrites);
    is_unclear || effect.kind.is_dangerous() && !depends
}

impl<'a> Reader<'a> {
    fn new(repository: Option<&'a Path>, runner: Runner) -> Self {
        let (effects, files) = (Vec::new(), Vec::new());
        Self { repository, runner, state: State::Examined, effects, files, depth: 0, only_reads: true }
    }

    fn finish(mut self) -> Examination {
        self.effects.sort_by(|a, b| (a.kind.as_str(), &a.detail).cmp(&(b.kind.as_str(), &b.detail)));
        self.effects.dedup();
        if self.state == State::NotExamined {
            self.effects.retain(matters_alone);
        } else if self.state == State::Examined && self.only_reads {
            let outside = |effect: &&mut Effect| effect.kind == EffectKind::LeavesRepository;
            self.effects.iter_mut().filter(outside).for_each(|effect| effect.kind = EffectKind::ReadsOutside);
        }
        let is_told = self.state != State::NotExamined || !self.effects.is_empty();
        let effects = is_told.then_some(self.effects);
        Examination { state: self.state, effects, files: self.files }
    }

    /// The state is that of the least certain part.
    fn is_at_best(&mut self, state: State) {
        let rank = |state| match state {
            State::Examined => 0,
            State::Opaque => 1,
            State::NotExamined => 2,
        };
        if rank(state) > rank(self.state) {
            self.state = state;
        }
    }

    /// Remembers a file; a script counts more than an operand.
    fn names(&mut self, position: Option<usize>, path: PathBuf, role: BoundRole) {
        let known = self.files.iter_mut().find(|file| file.path == path && file.position == position);
        match known {
            Some(file) if role != BoundRole::Operand => file.role = role,
            Some(_) => {}
            None => self.files.push(NamedFile { position, path, role }),
        }
    }

    /// Every file that an argument names, also as the value of an option.
    fn operands(&mut self, arguments: &[&str], at: Option<usize>, here: &Here) {
        for (index, word) in arguments.iter().enumerate() {
            let position = at.map(|at| at + index);
            let value = word.split_once('=').map(|(_, value)| value);
            for word in [Some(*word), value].into_iter().flatten() {
                if let Some(path) = here.file(word) {
                    self.names(position, path, BoundRole::Operand);
                }
            }
        }
    }

    /// One command. `at` is the position of its first word.
    fn command(&mut self, words: &[&str], at: Option<usize>, here: &mut Here, document: Option<&str>) {
        let Some((program, arguments)) = words.split_first() else {
            return self.is_at_best(State::NotExamined);
        };
        let next = at.map(|at| at + 1);
        self.operands(arguments, next, here);
        let name = base_name(program);
        let is_path = program.contains('/');
        if is_path {
            self.program(program, at, here);
        }
        if let Some(document) = document {
            self.effects.extend(facts::of_document(name, document));
        }
        if let Some(skipped) = wrapped(name, arguments) {
            for assignment in &arguments[..skipped] {
                if let Some((name, value)) = assignment.split_once('=') {
                    self.variable(name, value);
                }
            }
            return self.command(&arguments[skipped..], next.map(|at| at + skipped), here, document);
        }
        if let Some(grammar) = Grammar::of(name) {
            self.only_reads &= grammar.only_says(arguments) || grammar.takes_text;
            self.effects.extend(facts::of_interpreter(name, grammar, arguments, document.is_some()));
            return self.interpreter(grammar, arguments, next, here, document);
        }
        match programs::find(name).map(|row| row.does) {
            // What it knows nothing of is named by a path of somebody else.
            _ if is_path && !is_of_system(program) => {
                self.effects.extend(facts::of_unknown(program, arguments));
                self.opaque(arguments, here);
            }
            Some(Does::EscalatesPrivileges) => {
                self.effects.push(Effect::on(EffectKind::EscalatesPrivileges, name));
                self.only_reads = false;
                match arguments.first() {
                    Some(word) if name != "su" && !word.starts_with('-') && !word.contains('=') => {
                        self.command(arguments, next, here, document);
                    }
                    _ => self.is_at_best(State::NotExamined),
                }
            }
            // It prints all variables.
            Some(Does::Unknown) if name == "env" && arguments.is_empty() => {
                self.effects.push(Effect::on(EffectKind::TouchesSecrets, name));
            }
            Some(Does::Unknown | Does::Shell) => self.is_at_best(State::NotExamined),
            Some(Does::Finds { .. }) => self.finds(words, here),
            _ => self.plain(name, words, here),
        }
    }

    /// A program that is named by its path: it must be there, and the same when it runs.
    fn program(&mut self, word: &str, at: Option<usize>, here: &mut Here) {
        match here.file(word) {
            Some(path) => self.names(at, path, BoundRole::Executable),
            None if here.before.has_run_anything && here.is_certain => {}
            // Nothing runs; and what is there one day is the system's.
            None if is_of_system(word) => {}
            None => self.is_at_best(State::NotExamined),
        }
        if !is_of_system(word) {
            self.is_at_best(State::Opaque);
            if here.before.is_changed {
                self.is_at_best(State::NotExamined);
            }
        }
    }

    fn inner_text(&mut self, text: &str, here: &Here) {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => self.is_at_best(State::NotExamined),
            // It runs in a process of its own: where it goes and what it sets ends with it.
            false => self.text(text, &mut here.clone()),
        }
        self.depth -= 1;
    }

    /// A program that runs no other.
    fn plain(&mut self, name: &str, words: &[&str], here: &mut Here) {
        let (words, here_or_there) = match git_in_folder(name, words) {
            Some((folder, words)) => (words, here.cwd.join(folder)),
            None => (words.to_vec(), here.cwd.clone()),
        };
        let place = Place { cwd: &here_or_there, repository: self.repository };
        self.only_reads &= programs::reading_of(&words).is_some();
        if let Some(found) = effects::of_words(&words, &place) {
            let reads = |effect: &Effect| {
                matches!(effect.kind, EffectKind::LeavesRepository | EffectKind::TouchesSecrets)
            };
            here.before.is_changed |= !found.iter().all(reads) || effects::changes_files(&words, &place);
            let builds = programs::find(name).is_some_and(|row| row.does == Does::PackageManager);
            here.before.has_run_anything |= builds;
            return self.effects.extend(facts::of_known(&words, found, &place));
        }
        self.effects.extend(facts::of_unknown(name, &words[1..]));
        let state = unknown(name, &words[1..], &here_or_there);
        self.is_at_best(state);
        self.opaque(&words[1..], &mut Here { cwd: here_or_there, ..here.clone() });
        here.before.has_run_anything |= state == State::Opaque;
    }

    /// A program that can do anything. What its operands name is known.
    fn opaque(&mut self, arguments: &[&str], here: &mut Here) {
        self.is_at_best(State::Opaque);
        self.only_reads = false;
        here.before.has_run_anything = true;
        let place = Place { cwd: &here.cwd, repository: self.repository };
        let operands = arguments.iter().filter(|word| !word.starts_with('-'));
        self.effects.extend(operands.flat_map(|word| effects::of_path(word, &place)));
    }

    /// `find`, with what it runs for each file if that is a program with known effects.
    fn finds(&mut self, words: &[&str], here: &mut Here) {
        let mut rest = Vec::new();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if !matches!(word, "-exec" | "-execdir") {
                rest.push(word);
                continue;
            }
            let inner: Vec<&str> = words.by_ref().take_while(|word| !matches!(*word, ";" | "+")).collect();
            let is_plain = |name: &str| {
                let does = programs::find(name).map(|row| row.does);
                let runs = matches!(does, Some(Does::Unknown | Does::Shell | Does::EscalatesPrivileges));
                !runs && !matches!(does, Some(Does::Finds { .. }))
            };
            match inner.first() {
                Some(name) if is_plain(name) => self.plain(name, &inner, here),
                _ => self.is_at_best(State::NotExamined),
            }
        }
        self.plain("find", &rest, here);
    }

    /// A variable that is set for a command.
    fn variable(&mut self, name: &str, value: &str) {
        match variables::meaning(name) {
            variables::Meaning::Nothing => {}
            variables::Meaning::Unknown => self.is_at_best(State::Opaque),
            variables::Meaning::LoadsCode => {
                self.is_at_best(State::Opaque);
                self.effects.push(Effect::on(EffectKind::LoadsCode, format!("{name}={value}")));
            }
            variables::Meaning::Finds => self.is_at_best(State::NotExamined),
        }
    }
}

/// Whether a program is in a folder of the system, where it is what its name says.
fn is_of_system(word: &str) -> bool {
    SYSTEM_FOLDERS.iter().any(|folder| Path::new(word).parent() == Some(Path::new(folder)))
}

/// How many words a wrapper has before the command that it runs; `None` if it is none, or has other options.
fn wrapped(name: &str, arguments: &[&str]) -> Option<usize> {
    let skipped = match (name, arguments) {
        ("env", _) => {
            let is_set =
                |word: &&&str| word.split_once('=').is_some_and(|(name, _)| variables::is_name(name));
            arguments.iter().take_while(is_set).count()
        }
        ("timeout", [time, ..]) if is_time(time) => 1,
        ("nice", ["-n", level, ..]) if level.parse::<i8>().is_ok() => 2,
        ("nohup" | "setsid", _) => 0,
        _ => return None,
    };
    arguments.get(skipped).filter(|word| !word.starts_with('-') && !word.is_empty()).map(|_| skipped)
}

/// A number of seconds, or one with a unit.
fn is_time(word: &str) -> bool {
    let number = word.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(word);
    !number.is_empty()
        && number.split('.').count() <= 2
        && number.bytes().all(|it| it.is_ascii_digit() || it == b'.')
}

/// `git -C FOLDER …` and `git --no-pager …` without these options, and the folder.
fn git_in_folder<'w>(name: &str, words: &[&'w str]) -> Option<(&'w str, Vec<&'w str>)> {
    let (folder, rest) = match words {
        [_, "-C", folder, "--no-pager", rest @ ..] | [_, "--no-pager", "-C", folder, rest @ ..] => {
            (*folder, rest)
        }
        [_, "-C", folder, rest @ ..] => (*folder, rest),
        [_, "--no-pager", rest @ ..] => ("", rest),
        _ => return None,
    };
    (name == "git").then(|| (folder, [&words[..1], rest].concat()))
}

/// How much is certain about a program whose effects are not known.
fn unknown(name: &str, arguments: &[&str], cwd: &Path) -> State {
    let Some(row) = programs::find(name) else {
        let is_local = || matches!(arguments, [tool, ..] if is_installed(tool, cwd));
        return if name == "npx" && !is_local() { State::NotExamined } else { State::Opaque };
    };
    let command = arguments.first().copied().unwrap_or_default();
    let is_certain = match row.does {
        Does::Git => GIT_COMMANDS.contains(&command) && !row.runs.are_in(arguments),
        Does::PackageManager => {
            let runs_what_is_there =
                matches!(name, "docker" | "podman" | "pnpm" | "yarn") && command == "exec";
            let is_command = !command.is_empty() && (name != "bun" || !command.starts_with('-'));
            let operand = arguments.iter().find(|word| !word.starts_with('-'));
            let fetches = operand.is_some_and(|word| FETCH_AND_RUN.contains(word));
            is_command && (runs_what_is_there || !fetches)
        }
        Does::RemoteControl => true,
        _ => false,
    };
    if is_certain { State::Opaque } else { State::NotExamined }
}

/// Whether `npx` runs a program that is installed in the project.
fn is_installed(tool: &str, cwd: &Path) -> bool {
    let is_name = !tool.starts_with('-') && !tool.contains(['/', '@']);
    is_name && cwd.ancestors().any(|folder| files::is_file(&folder.join("node_modules/.bin").join(tool)))
}
