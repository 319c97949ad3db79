//! What rules say of a call.

use serde::Serialize;

/// What happens to a call before anybody is asked, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It runs without asking.
    Allow,
    /// A person is asked, and decides.
    Ask,
    /// It does not run, and nobody is asked.
    Deny,
}

impl Verdict {
    /// The word for it in files and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The verdict on one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// What happens to the call.
    pub verdict: Verdict,
    /// Why, in a sentence for people and agents.
    pub reason: String,
    /// Where the rule stands: a file and a line, or `built in: …`.
    pub rule: String,
}
