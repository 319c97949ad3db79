//! What was found in a payload, and how much it matters.

use serde::Deserialize;

/// Something that was found in a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// A sentence or two. It has nothing invisible.
    pub text: String,
    /// How much it matters.
    pub weight: Weight,
}

/// How much something that was found matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It is worth knowing.
    Plain,
    /// Nobody can tell what it does.
    Unclear,
    /// It can do harm.
    Danger,
}

impl Weight {
    /// The word for it, as vectors have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Unclear => "unclear",
            Self::Danger => "danger",
        }
    }
}
