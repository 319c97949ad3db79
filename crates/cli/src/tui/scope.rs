//! What an approval can cover, each with one sentence that says what would then run without asking.

use countersign_wire::decision::Scope;

/// A scope that a person can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// This request and nothing else.
    Once,
}

impl Offer {
    /// What can be chosen, the narrowest first. The first one is chosen unless the person chooses another.
    pub const ALL: &'static [Self] = &[Self::Once];

    /// The word for it in a question.
    pub fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
        }
    }

    /// What would run without asking.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Once => "Only this request is approved; nothing else will run without asking.",
        }
    }

    /// The scope that is signed.
    pub fn scope(self) -> Scope {
        match self {
            Self::Once => Scope::Once,
        }
    }
}
