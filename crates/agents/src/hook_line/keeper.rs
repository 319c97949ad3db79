//! Who decides for a hook: its line says it, and no variable.

use clap::ValueEnum;

const OPTION: &str = "--keeper";

/// Where the keeper runs that a hook asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeeperPlace {
    /// As a service of the user, found in the folder of the user's Countersign.
    User,
    /// Under an account of its own, found in one place of the machine.
    System,
}

impl KeeperPlace {
    const ALL: [Self; 2] = [Self::User, Self::System];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
        }
    }

    /// The options that say it.
    pub(super) fn arguments(self) -> Vec<String> {
        [OPTION, self.word()].map(str::to_owned).into()
    }

    /// Reads the options back, and returns the words after them.
    pub(super) fn from_words(words: &[String]) -> (Option<Self>, &[String]) {
        let [option, word, rest @ ..] = words else { return (None, words) };
        match Self::ALL.into_iter().find(|place| option == OPTION && word == place.word()) {
            Some(place) => (Some(place), rest),
            None => (None, words),
        }
    }
}
