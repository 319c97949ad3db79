//! Reads the part of the shell language in which it is certain what will run: simple commands of literal words, joined by
//! `&&`, `||`, `;` and `|`, with redirections to named files.
//!
//! Everything else (variables, substitutions, patterns, blocks, background jobs, words that only the shell knows) is not
//! understood, and whatever is not understood is asked about. A test compares this reading with that of a real shell.

/// A command without any shell syntax left in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Variables that are set for this command alone.
    pub assignments: Vec<(String, String)>,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Where its output goes and its input comes from.
    pub redirections: Vec<Redirection>,
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
    // Some shells drop these, others do not, and nobody sees them.
    if text.contains(|char: char| char.is_control() && !matches!(char, '\n' | '\t')) {
        return None;
    }
    let tokens = tokens(text)?;
    let mut commands = Vec::new();
    let mut current = SimpleCommand::default();
    let mut tokens = tokens.into_iter().peekable();
    let mut needs_command = true;
    while let Some(token) = tokens.next() {
        match token {
            Token::Word { text, plain } => {
                add_word(&mut current, text, plain)?;
                needs_command = false;
            }
            Token::Redirect { writes } => {
                let Some(Token::Word { text, .. }) = tokens.next() else { return None };
                current.redirections.push(Redirection { writes, path: text });
            }
            Token::MergeStreams => {}
            Token::Operator { continues } => {
                finish(&mut commands, &mut current)?;
                needs_command = continues;
            }
        }
    }
    // Nothing, or nothing after && or |.
    if needs_command {
        return None;
    }
    if current != SimpleCommand::default() {
        finish(&mut commands, &mut current)?;
    }
    Some(commands)
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

fn add_word(command: &mut SimpleCommand, text: String, plain: usize) -> Option<()> {
    if command.words.is_empty() {
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_name(name)) {
            // With a quoted name or equals sign it is a word and no assignment.
            return (name.len() < plain)
                .then(|| command.assignments.push((name.to_owned(), value.to_owned())));
        }
        // A percent sign names a job.
        if SHELL_WORDS.contains(&text.as_str()) || text.starts_with('%') {
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

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word {
        text: String,
        /// How many bytes of it are before the first quote.
        plain: usize,
    },
    Redirect {
        writes: bool,
    },
    /// `2>&1`: no file is touched.
    MergeStreams,
    Operator {
        /// Whether a command must follow.
        continues: bool,
    },
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut chars = text.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => {}
            '\n' | ';' => tokens.push(Token::Operator { continues: false }),
            '|' => {
                chars.next_if_eq(&'|');
                // |& joins both streams; it is rare, and left out.
                if chars.peek() == Some(&'&') {
                    return None;
                }
                tokens.push(Token::Operator { continues: true });
            }
            '&' => {
                chars.next_if_eq(&'&')?;
                tokens.push(Token::Operator { continues: true });
            }
            '>' | '<' => tokens.push(redirection(char, &mut chars)?),
            '0'..='2' if matches!(chars.peek(), Some('>' | '<')) => {
                let direction = chars.next()?;
                tokens.push(redirection(direction, &mut chars)?);
            }
            other => tokens.push(word(other, &mut chars)?),
        }
    }
    Some(tokens)
}

fn redirection(direction: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    let writes = direction == '>';
    if !writes {
        // Here-documents, and files that are read and written.
        return (!matches!(chars.peek(), Some('<' | '>' | '&' | '('))).then_some(Token::Redirect { writes });
    }
    if chars.next_if_eq(&'&').is_some() {
        let is_stream = matches!(chars.next(), Some('1' | '2'));
        let ends = matches!(chars.peek(), None | Some(' ' | '\t' | '\n' | ';' | '|'));
        return (is_stream && ends).then_some(Token::MergeStreams);
    }
    chars.next_if_eq(&'>');
    (!matches!(chars.peek(), Some('|' | '&' | '(' | '>'))).then_some(Token::Redirect { writes })
}

/// Reads one word to its end. `first` has been taken already.
fn word(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    // Some shells replace =NAME by the path of a program.
    if first == '=' {
        return None;
    }
    let (mut text, mut plain, mut next) = (String::new(), None, Some(first));
    while let Some(char) = next {
        match char {
            '\'' => {
                plain.get_or_insert(text.len());
                loop {
                    match chars.next()? {
                        '\'' => break,
                        inner => text.push(inner),
                    }
                }
            }
            '"' => {
                plain.get_or_insert(text.len());
                double_quoted(&mut text, chars)?;
            }
            '\\' => {
                plain.get_or_insert(text.len());
                let escaped = chars.next()?;
                // A line that goes on, and what a terminal would hide.
                if escaped.is_control() {
                    return None;
                }
                text.push(escaped);
            }
            plain if is_plain(plain) => text.push(plain),
            // Within a word it is no folder: HEAD~1.
            '~' if !text.is_empty() && !text.ends_with(['=', ':']) => text.push('~'),
            // The shell would expand these, or give them a meaning.
            _ => return None,
        }
        next = chars.next_if(|char| !matches!(char, ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>'));
    }
    let is_number = plain.is_none() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number before a redirection is a stream.
    if is_number && matches!(chars.peek(), Some('<' | '>')) {
        return None;
    }
    let plain = plain.unwrap_or(text.len());
    Some(Token::Word { text, plain })
}

fn double_quoted(text: &mut String, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            // History expansion only happens where a person types, but nobody loses much here.
            '$' | '`' | '!' => return None,
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                _ => return None,
            },
            inner => text.push(inner),
        }
    }
}

/// Characters that stand for themselves wherever they are in a word.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | '/' | ',' | ':' | '@' | '%' | '+' | '=' | '^')
}

#[cfg(test)]
mod tests;
