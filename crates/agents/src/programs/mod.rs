//! What programs read, write, run and send, and how their options are read: one table, which effects and rules ask.
//!
//! A program is one row in the file of its subject. Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | options that keep a program harmless, and what it reads then | [`reading`] |
//! | what a row can say | [`row`] |
//! | programs for files, and for text in them | `files`, `text` |
//! | Git with its commands | `git` |
//! | programs for other machines | `network`, `packages`, `remote` |
//! | programs that run others | [`interpreters`] |

pub mod reading;
pub mod row;

mod files;
mod git;
pub mod interpreters;
mod network;
mod packages;
mod remote;
mod text;

use self::{
    reading::Reading,
    row::{Program, Role},
};

const TABLES: &[&[Program]] = &[
    files::PROGRAMS,
    text::PROGRAMS,
    git::PROGRAMS,
    network::PROGRAMS,
    packages::PROGRAMS,
    remote::PROGRAMS,
    interpreters::PROGRAMS,
];

/// The row of a program by its name, without folders.
pub fn find(name: &str) -> Option<&'static Program> {
    TABLES.iter().copied().flatten().find(|program| program.names.contains(&name))
}

/// Whether the program of this name, without folders, has a role.
pub fn has_role(name: &str, role: Role) -> bool {
    find(name).is_some_and(|program| program.roles.contains(&role))
}

/// Options by which a program that takes its words as data runs one all the same, by their beginnings. Which program has
/// which of them does not count: to refuse too much is safe here.
const RUNNING: &[&str] = &["-exec", "-ok", "--pre", "--hostname-bin", "--ext-diff", "-O", "--open-files"];

/// Whether a name among the words of a command is only a name. `program` is its name without folders.
pub fn takes_words_as_data(program: &str, words: &[String]) -> bool {
    let Some(row) = find(program).filter(|row| row.roles.contains(&Role::WordsAreData)) else { return false };
    let command = words.get(1).and_then(|word| row.command(word));
    let is_data = row.commands.is_empty() || command.is_some_and(|it| it.roles.contains(&Role::WordsAreData));
    is_data && !words.iter().any(|word| RUNNING.iter().any(|option| word.starts_with(option)))
}

/// What keeps a command harmless, and how many of the words name the command: two if it is one of Git, for example.
pub fn reading_of(words: &[&str]) -> Option<(&'static Reading, usize)> {
    let program = find(words.first()?)?;
    let of_command = || program.command(words.get(1)?)?.reads.as_ref();
    program.reads.as_ref().map(|reads| (reads, 1)).or_else(|| of_command().map(|reads| (reads, 2)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_program_has_one_row_and_a_command_one_row_of_its_program() {
        let mut seen = BTreeSet::new();
        for program in TABLES.iter().copied().flatten() {
            for name in program.names {
                assert!(seen.insert(*name), "{name} has two rows");
            }
            let commands: Vec<&str> = program.commands.iter().flat_map(|it| it.names).copied().collect();
            let once: BTreeSet<&str> = commands.iter().copied().collect();
            assert_eq!(commands.len(), once.len(), "{:?}", program.names);
        }
    }
}
