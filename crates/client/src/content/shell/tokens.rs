//! The words and operators of a text for a shell.

use std::{iter::Peekable, str::Chars};

/// How a command is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Joint {
    /// There is none before it.
    #[default]
    First,
    /// `;` or a new line: it runs in any case.
    Sequence,
    /// `&&`: it runs if the one before succeeded.
    And,
    /// `||`: it runs if the one before failed.
    Or,
    /// `|`: it reads what the one before writes, in another process.
    Pipe,
}

/// How much of the language is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Simple commands on lines of their own.
    Plain,
    /// Here-documents, comments and lines that go on, too.
    Whole,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word {
        text: String,
        /// How many bytes of it are before the first quote.
        plain: usize,
    },
    Redirect {
        writes: bool,
    },
    /// The text of a here-document.
    Document(String),
    /// `2>&1`: no file is touched.
    MergeStreams,
    /// What ends a command, and how the next one is joined to it.
    Operator(Joint),
    /// The end of a line.
    Line,
}

/// A here-document whose text begins on the next line.
struct Pending {
    /// Where its token is.
    position: usize,
    /// The line that ends it.
    end: String,
    /// Whether the shell would replace variables in it.
    is_replaced: bool,
}

pub(super) fn tokens(text: &str, extent: Extent) -> Option<Vec<Token>> {
    let is_whole = extent == Extent::Whole;
    let mut chars = text.chars().peekable();
    let mut tokens = Vec::new();
    let mut pending: Option<Pending> = None;
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' => {}
            '\n' => {
                if let Some(document) = pending.take() {
                    tokens[document.position] = Token::Document(document.text(&mut chars)?);
                }
                tokens.push(Token::Line);
            }
            ';' => tokens.push(Token::Operator(Joint::Sequence)),
            '|' => {
                let joint = if chars.next_if_eq(&'|').is_some() { Joint::Or } else { Joint::Pipe };
                // |& joins both streams; it is rare, and left out.
                if chars.peek() == Some(&'&') {
                    return None;
                }
                tokens.push(Token::Operator(joint));
            }
            '&' => {
                chars.next_if_eq(&'&')?;
                tokens.push(Token::Operator(Joint::And));
            }
            '<' if is_whole && chars.peek() == Some(&'<') => {
                // Two on one line are rare, and left out.
                if pending.is_some() {
                    return None;
                }
                pending = Some(Pending::begin(tokens.len(), &mut chars)?);
                tokens.push(Token::Document(String::new()));
            }
            '>' | '<' => tokens.push(redirection(char, &mut chars)?),
            '0'..='2' if matches!(chars.peek(), Some('>' | '<')) => {
                let direction = chars.next()?;
                tokens.push(redirection(direction, &mut chars)?);
            }
            '#' if is_whole => while chars.next_if(|char| *char != '\n').is_some() {},
            '\\' if is_whole && pending.is_none() && chars.next_if_eq(&'\n').is_some() => {}
            '[' | ']' if is_whole && is_bracket(char, chars.peek()) => tokens.push(bracket(char)),
            '{' if is_whole && chars.peek() == Some(&'}') => {
                chars.next();
                if !matches!(chars.peek(), None | Some(' ' | '\t' | '\n' | ';')) {
                    return None;
                }
                tokens.push(Token::Word { text: "{}".to_owned(), plain: 2 });
            }
            other => {
                let word = word(other, &mut chars)?;
                // Where the document would begin then is not certain.
                let has_line = matches!(&word, Token::Word { text, .. } if text.contains('\n'));
                if pending.is_some() && has_line {
                    return None;
                }
                tokens.push(word);
            }
        }
    }
    // A document without a text.
    pending.is_none().then_some(tokens)
}

/// Whether a bracket is a word of its own, by what follows it.
fn is_bracket(char: char, next: Option<&char>) -> bool {
    matches!((char, next), (_, Some(' ' | '\t')) | (']', None | Some('\n' | ';')))
}

/// `[` and `]` as words of their own, which are no pattern.
fn bracket(char: char) -> Token {
    Token::Word { text: char.to_string(), plain: 1 }
}

impl Pending {
    /// Reads the word after `<<`, of which the first `<` has been taken already.
    fn begin(position: usize, chars: &mut Peekable<Chars<'_>>) -> Option<Self> {
        chars.next();
        while chars.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
        let quote = chars.next_if(|char| matches!(char, '\'' | '"'));
        let mut end = String::new();
        while let Some(char) = chars.next_if(|char| char.is_ascii_alphanumeric() || *char == '_') {
            end.push(char);
        }
        if let Some(quote) = quote {
            chars.next_if_eq(&quote)?;
        }
        let is_word = matches!(chars.peek(), Some(' ' | '\t' | '\n' | ';' | '|' | '&' | '>'));
        (is_word && !end.is_empty()).then_some(Self { position, end, is_replaced: quote.is_none() })
    }

    /// Its text, up to the line that ends it.
    fn text(&self, chars: &mut Peekable<Chars<'_>>) -> Option<String> {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            while let Some(char) = chars.next_if(|char| *char != '\n') {
                line.push(char);
            }
            if line == self.end {
                break;
            }
            text.push_str(&line);
            // Without a last line it never ends.
            text.push(chars.next()?);
        }
        let is_certain = !self.is_replaced || !text.contains(['$', '`', '\\']);
        is_certain.then_some(text)
    }
}

fn redirection(direction: char, chars: &mut Peekable<Chars<'_>>) -> Option<Token> {
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
fn word(first: char, chars: &mut Peekable<Chars<'_>>) -> Option<Token> {
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
                // What a terminal would hide, and in plain texts a line that goes on.
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

fn double_quoted(text: &mut String, chars: &mut Peekable<Chars<'_>>) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            // With nothing behind it that could be a name, it stands for itself.
            '$' if matches!(chars.peek(), Some('"' | ' ' | '/' | '|' | ')')) => text.push('$'),
            // History expansion only happens where a person types, but nobody loses much here.
            '$' | '`' | '!' => return None,
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                // Within a line, it stands for itself before any other character.
                other if other.is_control() || other == '!' => return None,
                other => text.extend(['\\', other]),
            },
            inner => text.push(inner),
        }
    }
}

/// Characters that stand for themselves wherever they are in a word.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | '/' | ',' | ':' | '@' | '%' | '+' | '=' | '^')
}
