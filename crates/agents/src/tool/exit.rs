//! How the tool ends: exit codes that mean one thing each, and messages that say what to do next.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the tool ends without success. The codes are part of its interface (docs/cli.md); `exec` otherwise ends with the
/// code of the command that it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// The arguments were not understood.
    Usage,
    /// A person said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// The gateway could not be reached, or refused.
    Unreachable,
    /// What would run is not what was approved.
    Changed,
    /// An identity, a pairing or a gateway is missing.
    NotSetUp,
    /// Something else; nothing was done.
    Failed,
    /// The command was approved and could not be started.
    NotExecutable,
    /// The program to run does not exist.
    NotFound,
    /// The user or the operator took the request back.
    TakenBack,
    /// `doctor` or `fleet` has found something to put right.
    Findings,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Rejected => 81,
            Self::Expired => 82,
            Self::Unreachable => 83,
            Self::Changed => 84,
            Self::NotSetUp => 85,
            Self::Failed => 86,
            Self::Findings => 87,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::TakenBack => 130,
        }
    }

    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Unreachable => "unreachable",
            Self::Changed => "changed",
            Self::NotSetUp => "notSetUp",
            Self::Failed => "failed",
            Self::NotExecutable => "notExecutable",
            Self::NotFound => "notFound",
            Self::TakenBack => "takenBack",
            Self::Findings => "findings",
        }
    }
}

/// Why a command of the tool has failed, for the person in front of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What kind of failure, which decides the exit code.
    pub exit: Exit,
    /// What happened, in a sentence. If it ends with a line break, the next step has a line of its own.
    pub what: String,
    /// What to do next; empty if nothing can be said.
    pub next: String,
    /// Codes and ids for a report, which come last.
    pub detail: String,
}

impl Failure {
    /// A failure without a next step. Add one with [`Failure::next`] wherever there is one.
    pub fn new(exit: Exit, what: impl fmt::Display) -> Self {
        Self { exit, what: what.to_string(), next: String::new(), detail: String::new() }
    }

    /// Says what to do next.
    #[must_use]
    pub fn next(self, next: impl fmt::Display) -> Self {
        Self { next: next.to_string(), ..self }
    }

    /// Adds what belongs into a report.
    #[must_use]
    pub fn detail(self, detail: impl fmt::Display) -> Self {
        Self { detail: detail.to_string(), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sentence(&self.what))?;
        if !self.next.is_empty() {
            let space = if self.what.ends_with('\n') { "" } else { " " };
            write!(f, "{space}{}", sentence(&self.next))?;
        }
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}

/// With a capital letter and a full stop, unless it ends with a list. Text in quotes and commands keep their own.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    let text = first + chars.as_str();
    match text.ends_with(['.', '!', '?', ':', '…', '\n']) {
        true => text,
        false => text + ".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_then_what_to_do_then_the_codes() {
        let failure = Failure::new(Exit::Unreachable, "the gateway did not answer")
            .next("check `countersign status`")
            .detail("request r-1");
        assert_eq!(
            failure.to_string(),
            "The gateway did not answer. Check `countersign status`. (request r-1)"
        );
        let list = Failure::new(Exit::Changed, "it has changed:\n  a file\n").next("look at it");
        assert_eq!(list.to_string(), "It has changed:\n  a file\nLook at it.");
        assert_eq!(Failure::new(Exit::Failed, "what now?").to_string(), "What now?");
    }

    #[test]
    fn no_code_is_zero_or_means_two_things() {
        let all = [
            Exit::Usage,
            Exit::Rejected,
            Exit::Expired,
            Exit::Unreachable,
            Exit::Changed,
            Exit::NotSetUp,
            Exit::Failed,
            Exit::NotExecutable,
            Exit::NotFound,
            Exit::TakenBack,
            Exit::Findings,
        ];
        let codes: std::collections::BTreeSet<u8> = all.iter().map(|exit| exit.code()).collect();
        let words: std::collections::BTreeSet<&str> = all.iter().map(|exit| exit.word()).collect();
        assert!(codes.len() == all.len() && words.len() == all.len() && !codes.contains(&0));
        for exit in all {
            assert_eq!(serde_json::to_value(exit).unwrap(), exit.word());
        }
    }
}
