//! What an interpreter runs: a script, a text, code in its arguments, or a module.

use std::path::PathBuf;

use countersign_client::payload::{BoundRole, State};

use super::{Here, Reader, Runner};
use crate::programs::interpreters::Grammar;

impl Reader<'_> {
    /// The words after the name of an interpreter. `at` is the position of the first.
    pub(super) fn interpreter(
        &mut self,
        grammar: &Grammar,
        arguments: &[&str],
        at: Option<usize>,
        here: &mut Here,
        document: Option<&str>,
    ) {
        if grammar.only_says(arguments) {
            return;
        }
        if let ["-c", text] = arguments
            && grammar.takes_text
        {
            return self.inner_text(text, here);
        }
        // A hook binds the start-up files of a login, and the tool does not.
        if let ["-lc", text] = arguments
            && grammar.takes_login_text
            && self.runner == Runner::Host
        {
            self.is_at_best(State::Opaque);
            // Only bash reads the rest as a POSIX shell does.
            return match text.contains(['<', '>', '=']) && !grammar.takes_text {
                true => self.is_at_best(State::NotExamined),
                false => self.inner_text(text, here),
            };
        }
        here.before.has_run_anything = true;
        let flags = arguments.iter().take_while(|word| grammar.is_flag(word)).count();
        match &arguments[flags..] {
            // The code is shown as it is.
            [flag, _, ..] if grammar.code == Some(flag) => return self.is_at_best(State::Opaque),
            [flag, name, ..] if grammar.module == Some(flag) => return self.module(name, here),
            _ => {}
        }
        let runs_tests = grammar.tests.is_some_and(|flag| arguments[..flags].contains(&flag));
        let operands = &arguments[flags..];
        match (operands, document) {
            ([] | ["-"], Some(text)) if grammar.takes_text && flags == 0 => {
                return self.inner_text(text, here);
            }
            ([] | ["-"], Some(_)) => return self.is_at_best(State::Opaque),
            ([], None) if runs_tests => return self.is_at_best(State::Opaque),
            ([], None) => return self.is_at_best(State::NotExamined),
            _ => {}
        }
        let count = if runs_tests { operands.len() } else { 1 };
        for (index, word) in operands[..count].iter().enumerate() {
            match self.script(grammar, word, here) {
                Some(path) => {
                    self.names(at.map(|at| at + flags + index), path, BoundRole::Script);
                    self.is_at_best(State::Opaque);
                }
                None => self.is_at_best(State::NotExamined),
            }
        }
    }

    /// A module of Python, which it looks for in the folder before the installed ones.
    fn module(&mut self, name: &str, here: &Here) {
        let is_part = |part: &str| {
            !part.is_empty() && part.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        };
        if !name.split('.').all(is_part) {
            return self.is_at_best(State::NotExamined);
        }
        self.is_at_best(State::Opaque);
        let path = name.replace('.', "/");
        for file in [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")] {
            if let Some(path) = here.file(&file) {
                self.names(None, path, BoundRole::Script);
            }
        }
    }

    /// The script that a word means to an interpreter, if that is certain.
    fn script(&self, grammar: &Grammar, word: &str, here: &Here) -> Option<PathBuf> {
        let has_end = grammar.ends.is_empty() || grammar.ends.iter().any(|end| word.ends_with(end));
        let is_found_here = !grammar.searches || word.contains('/') || self.runner == Runner::Tool;
        let is_certain = !word.starts_with('-') && has_end && is_found_here && !here.before.is_changed;
        here.file(word).filter(|_| is_certain)
    }
}
