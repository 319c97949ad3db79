//! Free text that people read.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Error, FromJson, Rule, limits::MAX_LABEL_CHARS, written::written_as_string};

/// A name for people that a machine chose: an enforcer's label, a workspace's name.
///
/// At most [`MAX_LABEL_CHARS`] characters, and none that changes how the text around it is shown, so
/// that a label can't imitate other parts of a user interface. A longer text is cut, and such characters are replaced:
/// a label is never a reason to reject a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(Box<str>);

impl Label {
    /// Cuts the text after [`MAX_LABEL_CHARS`] characters, and replaces control and direction-changing ones by U+FFFD.
    pub fn new(text: &str) -> Self {
        let shown = |char: char| match char.is_control() || changes_direction(char) {
            true => char::REPLACEMENT_CHARACTER,
            false => char,
        };
        Self(text.chars().take(MAX_LABEL_CHARS).map(shown).collect())
    }

    /// The label as it is shown; may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn changes_direction(char: char) -> bool {
    matches!(char, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A string of at least one character.
pub(crate) struct NonEmpty(pub(crate) String);

impl FromJson<'_> for NonEmpty {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        match String::from_json(value)? {
            text if text.is_empty() => Err(Rule("must not be empty").into()),
            text => Ok(Self(text)),
        }
    }
}

impl std::str::FromStr for Label {
    /// Never returned: every text has a label.
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        Ok(Self::new(text))
    }
}

written_as_string!(Label);
