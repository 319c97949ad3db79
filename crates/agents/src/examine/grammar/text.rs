//! A text for a shell, command by command.

use countersign_client::{
    payload::{BoundRole, Effect, EffectKind, State},
    shell::{self, Joint, SimpleCommand},
};

use super::{
    Here, Reader,
    effects::{is_new, of_path, of_words},
    variables::is_name,
};
use crate::{
    examine::{effects::Place, names::base_name},
    programs::{self, interpreters::Grammar, row::Does},
    tool::files,
};

impl Reader<'_> {
    /// Reads a text. What is set in it and where it goes is known to the commands behind it.
    pub(super) fn text(&mut self, text: &str, here: &mut Here) {
        let Some(commands) = shell::commands_and_documents(text) else {
            self.mentioned(text, here);
            self.parts(text, here);
            return self.is_at_best(State::NotExamined);
        };
        let mut has_only_entered = true;
        let mut fetched = None;
        for (index, command) in commands.iter().enumerate() {
            let next = commands.get(index + 1).map(|next| next.joint);
            if matches!(command.joint, Joint::Sequence | Joint::Or) {
                has_only_entered = true;
                here.is_certain &= !here.is_conditional;
            }
            let is_cd = command.words.first().is_some_and(|word| word == "cd");
            if is_cd && command.joint == Joint::And && !has_only_entered {
                here.is_conditional = true;
            }
            has_only_entered &= is_cd;
            for (name, value) in &command.assignments {
                self.variable(name, value);
            }
            let is_fed = command.joint == Joint::Pipe;
            fetched = self.fetched(command, here).or(fetched.filter(|_| is_fed));
            let before = std::mem::replace(&mut self.state, State::Examined);
            self.simple(command, next, here);
            let after = std::mem::replace(&mut self.state, before);
            self.is_at_best(after);
            if is_fed && after == State::NotExamined {
                self.effects.extend(runs_input(command, fetched.as_deref()));
            }
            self.redirections(command, here);
        }
    }

    /// From where a command fetches something.
    fn fetched(&self, command: &SimpleCommand, here: &Here) -> Option<String> {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let fetches = |name: &&&str| {
            matches!(programs::find(base_name(name)).map(|row| row.does), Some(Does::Network { .. }))
        };
        words.first().filter(fetches)?;
        let place = Place { cwd: &here.cwd, repository: self.repository };
        let found = of_words(&words, &place)?;
        found.into_iter().find(|effect| effect.kind == EffectKind::Network)?.detail
    }

    /// The dangers in parts of a text that is not understood as a whole. Words that only a shell knows stand for themselves;
    /// nothing becomes more certain by it.
    fn parts(&mut self, text: &str, here: &Here) {
        for part in text.split(['\n', ';', '&', '|']) {
            let words = part.split_whitespace().skip_while(|word| LEADING.contains(word));
            let quoted: Vec<String> = words.map(quoted_if_special).collect();
            let Some(commands) = shell::commands_and_documents(&quoted.join(" ")) else { continue };
            let mut reader = Reader::new(self.repository, self.runner);
            reader.depth = self.depth;
            for command in &commands {
                reader.simple(command, None, &mut here.clone());
            }
            self.effects.extend(reader.effects.into_iter().filter(super::matters_alone));
        }
    }

    fn simple(&mut self, command: &SimpleCommand, next: Option<Joint>, here: &mut Here) {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["cd", ..] => self.enters(&words, command.joint, next, here),
            ["set", flags @ ..] if are_options(flags) => {}
            ["export", set @ ..] if !set.is_empty() => {
                for word in set {
                    match word.split_once('=') {
                        Some((name, value)) if is_name(name) => self.variable(name, value),
                        _ => self.is_at_best(State::NotExamined),
                    }
                }
            }
            ["exit"] | ["command", "-v", _] | ["type", _] => {}
            ["exit", code] if code.bytes().all(|byte| byte.is_ascii_digit()) => {}
            ["." | "source", file] if file.contains('/') => {
                match here.file(file).filter(|_| !here.before.is_changed) {
                    Some(path) => {
                        self.names(None, path, BoundRole::Script);
                        self.is_at_best(State::Opaque);
                        here.before.has_run_anything = true;
                    }
                    None => self.is_at_best(State::NotExamined),
                }
            }
            ["." | "command" | "exit" | "export" | "set" | "source" | "type", ..] => {
                self.is_at_best(State::NotExamined);
            }
            _ => self.command(&words, None, here, command.document.as_deref()),
        }
    }

    fn redirections(&mut self, command: &SimpleCommand, here: &mut Here) {
        let (cwd, repository) = (here.cwd.clone(), self.repository);
        let place = Place { cwd: &cwd, repository };
        for redirection in &command.redirections {
            self.effects.extend(of_path(&redirection.path, &place));
            self.only_reads &= !redirection.writes || redirection.path == "/dev/null";
            if redirection.writes && redirection.path != "/dev/null" {
                if !here.is_certain || !is_new(&redirection.path, &place) {
                    self.effects.push(Effect::on(EffectKind::Overwrites, &redirection.path));
                }
                here.before.is_changed = true;
            } else if let Some(path) = here.file(&redirection.path) {
                self.names(None, path, BoundRole::Operand);
            }
        }
    }

    /// `cd`: the folder of what follows, if it is certain that it is entered.
    fn enters(&mut self, words: &[&str], joint: Joint, next: Option<Joint>, here: &mut Here) {
        let folder = match words {
            [_, folder] if !folder.starts_with(['-', '+']) && !folder.is_empty() => here.cwd.join(folder),
            _ => {
                here.is_certain = false;
                return;
            }
        };
        let place = Place { cwd: &here.cwd.clone(), repository: self.repository };
        self.effects.extend(of_path(words[1], &place));
        // In a pipe it is entered by another process, and after `||` perhaps not at all.
        let is_entered = !matches!(joint, Joint::Or | Joint::Pipe) && next != Some(Joint::Pipe);
        here.is_certain &= is_entered && files::is_dir(&folder);
        here.cwd = folder;
    }

    /// The files that a text mentions which is not understood: they are bound, and nothing more is known of them.
    fn mentioned(&mut self, text: &str, here: &Here) {
        let ends = |char: char| char.is_whitespace() || ";|&<>()'\"`=$\\".contains(char);
        for word in text.split(ends).filter(|word| !word.is_empty()) {
            if let Some(path) = here.file(word) {
                self.names(None, path, BoundRole::Operand);
            }
        }
    }
}

/// Words before a command that a shell goes on with.
const LEADING: &[&str] = &["!", "(", "do", "elif", "else", "if", "then", "until", "while", "{"];

/// A word so that it is read as it is written, unless it has quotation marks of its own.
fn quoted_if_special(word: &str) -> String {
    let word = word.trim_start_matches('(').trim_end_matches(')');
    match word.contains(['$', '*', '?', '[', ']', '{', '}', '~', '(', ')', '#'])
        && !word.contains(['\'', '"', '`'])
    {
        true => format!("'{word}'"),
        false => word.to_owned(),
    }
}

/// What runs what another command prints.
fn runs_input(command: &SimpleCommand, fetched: Option<&str>) -> Option<Effect> {
    let name = base_name(command.words.first()?);
    let runs = Grammar::of(name).is_some() || matches!(name, "xargs" | "parallel");
    let effect = match fetched {
        Some(host) => Effect::on(EffectKind::RunsFetched, host),
        None => Effect::on(EffectKind::RunsInput, name),
    };
    runs.then_some(effect)
}

/// `-e`, `-u`, `-x`, also joined, and `-o pipefail`.
fn are_options(words: &[&str]) -> bool {
    let is_flag = |word: &str, letters: &str| {
        word.strip_prefix('-')
            .is_some_and(|flags| !flags.is_empty() && flags.chars().all(|it| letters.contains(it)))
    };
    match words {
        [flags] => is_flag(flags, "eux"),
        [flags, "pipefail"] => is_flag(flags, "euxo") && flags.ends_with('o'),
        _ => false,
    }
}
