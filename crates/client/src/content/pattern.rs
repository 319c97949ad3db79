//! Which commands an approval covers beside the one that was shown (docs/grants.md).

use serde::{Deserialize, Serialize};

use crate::json;

/// Stands for exactly one argument.
const ONE: &str = "*";

/// Stands for all that follows, also nothing. Only at the end.
const REST: &str = "**";

/// A pattern of a program and its arguments. It covers the text of a shell if it covers every command in it
/// ([`crate::shell::plain_commands`]).
///
/// Each word is an argument as it is, or `*` for exactly one argument, or `**` at the end for any number of arguments. The
/// program is never a star, and a star never covers an argument that begins with `-`: options change what a program does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Pattern {
    words: Vec<String>,
}

/// A pattern in JSON: an object, so that other kinds can follow.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
struct Text {
    argv: Vec<String>,
}

json::objects!(Text);

/// The rule that a pattern breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Anything could run.
    #[error("a pattern begins with the name of a program")]
    Program,
    /// It looks like a part of an argument, which no star stands for.
    #[error("a star stands for a whole argument: write `*`, or `**` as the last word")]
    Star,
}

impl Pattern {
    /// A pattern of these words.
    pub fn new(words: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, PatternError> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        let [program, arguments @ ..] = words.as_slice() else { return Err(PatternError::Program) };
        if program.is_empty() || program.contains('*') {
            return Err(PatternError::Program);
        }
        let last = arguments.len().saturating_sub(1);
        let is_clear = |(position, word): (usize, &String)| {
            !word.contains('*') || word == ONE || (word == REST && position == last)
        };
        if !arguments.iter().enumerate().all(is_clear) {
            return Err(PatternError::Star);
        }
        Ok(Self { words })
    }

    /// The words of the pattern, for people.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether it covers a program with these arguments.
    pub fn covers(&self, argv: &[String]) -> bool {
        let (words, has_rest) = match self.words.split_last() {
            Some((last, words)) if last == REST => (words, true),
            _ => (self.words.as_slice(), false),
        };
        if argv.len() < words.len() || (argv.len() > words.len() && !has_rest) {
            return false;
        }
        let (named, rest) = argv.split_at(words.len());
        let is_operand = |argument: &String| !argument.starts_with('-');
        let matches = |(word, argument): (&String, &String)| match word.as_str() {
            ONE => is_operand(argument),
            word => word == argument,
        };
        words.iter().zip(named).all(matches) && rest.iter().all(is_operand)
    }
}

impl TryFrom<Text> for Pattern {
    type Error = PatternError;

    fn try_from(text: Text) -> Result<Self, PatternError> {
        Self::new(text.argv)
    }
}

impl From<Pattern> for Text {
    fn from(pattern: Pattern) -> Self {
        Self { argv: pattern.words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &[&str], argv: &[&str]) -> bool {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        Pattern::new(pattern.iter().copied()).unwrap().covers(&argv)
    }

    #[test]
    fn a_pattern_covers_what_it_says_and_no_options() {
        assert!(covers(&["cargo", "test"], &["cargo", "test"]));
        for other in [
            &["cargo"][..],
            &["cargo", "test", "x"],
            &["cargo", "Test"],
            &["/tmp/cargo", "test"],
            &[],
            &["cargo test"],
        ] {
            assert!(!covers(&["cargo", "test"], other), "{other:?}");
        }
        assert!(covers(&["cargo", "test", "*"], &["cargo", "test", "name"]));
        assert!(covers(&["cargo", "test", "*"], &["cargo", "test", ""]));
        for other in [&["cargo", "test"][..], &["cargo", "test", "a", "b"], &["cargo", "test", "--all"]] {
            assert!(!covers(&["cargo", "test", "*"], other), "{other:?}");
        }
        let rest = ["cat", "--", "**"];
        assert!(covers(&rest, &["cat", "--"]) && covers(&rest, &["cat", "--", "a", "b"]));
        for other in [&["cat", "a"][..], &["cat", "--", "a", "-n"], &["cat"]] {
            assert!(!covers(&rest, other), "{other:?}");
        }
        assert!(covers(&["git", "*", "x"], &["git", "show", "x"]));
        assert!(!covers(&["git", "*", "x"], &["git", "show", "y"]));
    }

    #[test]
    fn a_pattern_that_could_be_read_in_two_ways_is_none() {
        for (words, error) in [
            (&[][..], PatternError::Program),
            (&["*"], PatternError::Program),
            (&["**"], PatternError::Program),
            (&[""], PatternError::Program),
            (&["git*"], PatternError::Program),
            (&["git", "src/*"], PatternError::Star),
            (&["git", "**", "x"], PatternError::Star),
            (&["git", "***"], PatternError::Star),
        ] {
            assert_eq!(Pattern::new(words.iter().copied()), Err(error), "{words:?}");
        }
        let text = r#"{"argv":["git","push","*"]}"#;
        let pattern: Pattern = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&pattern).unwrap(), text);
        for other in [r#"{"argv":["*"]}"#, r#"{"argv":[]}"#, r#"{"argv":["a"],"x":1}"#, r#"[["a"]]"#, "{}"] {
            assert!(serde_json::from_str::<Pattern>(other).is_err(), "{other}");
        }
    }
}
