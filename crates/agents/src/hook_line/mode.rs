//! Which calls a hook asks about.

use std::fmt;

use clap::ValueEnum;

/// What a hook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Every call needs a rule, a grant or a person.
    Gate,
    /// Only what the host would ask about is asked; deny rules hold for every call.
    Relay,
}

impl Mode {
    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Relay => "relay",
        }
    }

    /// The mode that a word means.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Gate, Self::Relay].into_iter().find(|mode| mode.word() == word)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
