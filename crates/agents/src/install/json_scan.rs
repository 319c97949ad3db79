//! Where the values of a JSON text are.

use std::{collections::BTreeSet, ops::Range};

use super::json_value::quoted;

/// Why a text is not edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of it, counted from one.
    pub line: usize,
    /// What is wrong there, such as `"hooks" is there twice`.
    pub what: String,
}

/// A value, and where it is.
#[derive(Debug, Clone)]
pub struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub struct Member {
    pub key: String,
    /// From the first quote of the key to the end of the value.
    pub span: Range<usize>,
    pub value: Node,
}

/// The line of a position, counted from one.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text with blanks in place of comments, as long as before.
pub fn mask_comments(text: &str) -> Result<String, Problem> {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => string_end(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/").ok_or_else(|| Problem {
                    line: line_of(text, text.len() - rest.len()),
                    what: "a comment has no end".to_owned(),
                })?;
                end + 4
            }
            other => other.len_utf8(),
        };
        if rest.starts_with("//") || rest.starts_with("/*") {
            masked.extend(rest[..taken].bytes().map(|byte| match byte {
                b'\n' => '\n',
                b'\r' => '\r',
                _ => ' ',
            }));
        } else {
            masked.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    Ok(masked)
}

/// The length of the string literal that the text begins with.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The values in a text that is known to be valid JSON. A key that is there twice in an object is a problem.
pub fn scan(text: &str) -> Result<Node, Problem> {
    Scan { text, at: 0 }.value()
}

/// How far a text was read.
struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&mut self) -> u8 {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn value(&mut self) -> Result<Node, Problem> {
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => {
                self.at += string_end(&self.text[start..]);
                Kind::Scalar
            }
            _ => {
                let rest = &self.text[start..];
                let ends = |next: char| matches!(next, ',' | ']' | '}') || next.is_whitespace();
                self.at += rest.find(ends).unwrap_or(rest.len());
                Kind::Scalar
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self) -> Result<Kind, Problem> {
        let mut members = Vec::new();
        let mut keys = BTreeSet::new();
        self.at += 1;
        while self.peek() != b'}' {
            let start = self.at;
            self.at += string_end(&self.text[start..]);
            let key: String = serde_json::from_str(&self.text[start..self.at]).unwrap_or_default();
            if !keys.insert(key.clone()) {
                let what = format!("{} is there twice", quoted(&key));
                return Err(Problem { line: line_of(self.text, start), what });
            }
            self.peek();
            self.at += 1;
            let value = self.value()?;
            members.push(Member { key, span: start..value.span.end, value });
            self.skip_comma();
        }
        self.at += 1;
        Ok(Kind::Object(members))
    }

    fn array(&mut self) -> Result<Kind, Problem> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek() != b']' {
            items.push(self.value()?);
            self.skip_comma();
        }
        self.at += 1;
        Ok(Kind::Array(items))
    }

    fn skip_comma(&mut self) {
        if self.peek() == b',' {
            self.at += 1;
        }
    }
}
