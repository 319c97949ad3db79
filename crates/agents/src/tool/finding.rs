//! Something that is not as it should be, for a person to put right.

use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// Something does not work, or protects less than it seems to.
    Problem,
    /// Worth knowing, and nothing is wrong.
    Note,
}

/// What was found, why it matters, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, such as the name of a profile or of a host.
    pub subject: String,
    /// How much it matters.
    pub level: Level,
    /// What is so, in a sentence without its full stop.
    pub what: String,
    /// What follows from it.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// Something to put right.
    pub fn problem(
        subject: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (subject, what, why, remedy) = (subject.into(), what.into(), why.into(), remedy.into());
        Self { subject, level: Level::Problem, what, why, remedy }
    }

    /// The same as something that is only worth knowing.
    #[must_use]
    pub fn as_note(self) -> Self {
        Self { level: Level::Note, ..self }
    }
}
