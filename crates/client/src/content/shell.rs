//! Reads the part of the shell language in which it is certain what will run: simple commands of literal words, joined by
//! `&&`, `||`, `;` and `|`, with redirections to named files.
//!
//! Everything else (variables, substitutions, patterns, blocks, background jobs, words that only the shell knows) is not
//! understood, and whatever is not understood is asked about. A test compares this reading with that of a real shell.
//!
//! [`commands`] is for who allows something without asking. [`commands_and_documents`] is for who shows it to people, and
//! reads a little more: here-documents, comments, and lines that go on.

mod tokens;

pub use self::tokens::Joint;
use self::tokens::{Extent, Token, tokens};

/// A command without any shell syntax left in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Variables that are set for this command alone.
    pub assignments: Vec<(String, String)>,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Where its output goes and its input comes from.
    pub redirections: Vec<Redirection>,
    /// The text of the here-document that it reads.
    pub document: Option<String>,
    /// How it is joined to the command before it.
    pub joint: Joint,
}

/// A file that a command reads or writes by redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// Whether the file is written to, replaced or extended.
    pub writes: bool,
    /// The file as it was written.
    pub path: String,
}

/// Words that mean something to the shell itself, so that what follows is not a simple command.
const SHELL_WORDS: &[&str] = &[
    "!",
    "-",
    ".",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "case",
    "command",
    "continue",
    "coproc",
    "declare",
    "disown",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "end",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "foreach",
    "function",
    "getopts",
    "hash",
    "if",
    "in",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "nocorrect",
    "noglob",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "repeat",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
];

/// Those of them after which plain words follow.
const LEFT_TO_CALLERS: &[&str] = &[".", "command", "exit", "export", "set", "source", "type"];

/// The words of a pattern, in which a star may stand for an argument; `None` if they are not plain words.
pub fn words(text: &str) -> Option<Vec<String>> {
    let quoted: Vec<String> = text
        .split(' ')
        .map(|word| if matches!(word, "*" | "**") { format!("'{word}'") } else { word.to_owned() })
        .collect();
    let mut found = commands(&quoted.join(" "))?;
    let command = found.pop().filter(|_| found.is_empty())?;
    (command.assignments.is_empty() && command.redirections.is_empty()).then_some(command.words)
}

/// Splits a text into its commands, in order; `None` if anything in it is not understood.
pub fn commands(text: &str) -> Option<Vec<SimpleCommand>> {
    read(text, Extent::Plain)
}

/// As [`commands`], with here-documents in which nothing is replaced, comments, lines that go on, and the words `[` and
/// `]`. Words that mean something to the shell itself are left to the caller: `set -e`, `export A=1`, `source FILE`.
pub fn commands_and_documents(text: &str) -> Option<Vec<SimpleCommand>> {
    read(text, Extent::Whole)
}

fn read(text: &str, extent: Extent) -> Option<Vec<SimpleCommand>> {
    // Some shells drop these, others do not, and nobody sees them.
    if text.contains(|char: char| char.is_control() && !matches!(char, '\n' | '\t')) {
        return None;
    }
    let mut commands = Vec::new();
    let mut current = SimpleCommand::default();
    let mut tokens = tokens(text, extent)?.into_iter();
    let mut needs_command = true;
    while let Some(token) = tokens.next() {
        match token {
            Token::Word { text, plain } => {
                add_word(&mut current, text, plain, extent)?;
                needs_command = false;
            }
            Token::Redirect { writes } => {
                let Some(Token::Word { text, .. }) = tokens.next() else { return None };
                current.redirections.push(Redirection { writes, path: text });
            }
            Token::Document(text) => {
                // The last of several would count.
                let had_one = current.document.replace(text).is_some();
                if had_one {
                    return None;
                }
            }
            Token::MergeStreams => {}
            // An empty line, or one after an operator.
            Token::Line if extent == Extent::Whole && is_empty(&current) => {}
            Token::Line => {
                finish(&mut commands, &mut current)?;
                current.joint = Joint::Sequence;
                needs_command = false;
            }
            Token::Operator(joint) => {
                finish(&mut commands, &mut current)?;
                current.joint = joint;
                needs_command = joint != Joint::Sequence;
            }
        }
    }
    // Nothing, or nothing after && or |.
    if needs_command {
        return None;
    }
    if !is_empty(&current) {
        finish(&mut commands, &mut current)?;
    }
    Some(commands)
}

/// Whether nothing of a command was read yet.
fn is_empty(command: &SimpleCommand) -> bool {
    *command == SimpleCommand { joint: command.joint, ..SimpleCommand::default() }
}

/// The commands of a text that does nothing but run them: in the folder where it begins, with the variables that are set
/// there, and without a file that is read or written by redirection. `None` if it does more, or is not understood.
///
/// `cd` to that same folder changes nothing and is left out.
pub fn plain_commands(text: &str, cwd: &str) -> Option<Vec<Vec<String>>> {
    let mut plain = Vec::new();
    for command in commands(text)? {
        let is_discarded = |redirection: &Redirection| redirection.path == "/dev/null";
        if !command.assignments.is_empty() || !command.redirections.iter().all(is_discarded) {
            return None;
        }
        match command.words.as_slice() {
            [word, folder] if word == "cd" && folder == cwd => {}
            [word, ..] if word == "cd" => return None,
            _ => plain.push(command.words),
        }
    }
    (!plain.is_empty()).then_some(plain)
}

fn add_word(command: &mut SimpleCommand, text: String, plain: usize, extent: Extent) -> Option<()> {
    if command.words.is_empty() {
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
            // With a quoted name or equals sign it is a word and no assignment.
            return (name.len() < plain)
                .then(|| command.assignments.push((name.to_owned(), value.to_owned())));
        }
        // A percent sign names a job.
        let is_left_to_callers = extent == Extent::Whole && LEFT_TO_CALLERS.contains(&text.as_str());
        if SHELL_WORDS.contains(&text.as_str()) && !is_left_to_callers || text.starts_with('%') {
            return None;
        }
    }
    command.words.push(text);
    Some(())
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_');
    starts && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// Ends a command. One without words changes the shell's own variables, or truncates a file by itself.
fn finish(commands: &mut Vec<SimpleCommand>, current: &mut SimpleCommand) -> Option<()> {
    let command = std::mem::take(current);
    (!command.words.is_empty()).then(|| commands.push(command))
}

#[cfg(test)]
mod tests;
