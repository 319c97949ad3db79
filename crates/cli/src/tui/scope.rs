//! What an approval can cover, each with one sentence that says what would then run without asking.

use std::time::Duration;

use countersign_client::{
    pattern::Pattern,
    payload::{Invocation, Payload, State, visible, visible_code},
    request::OpenedRequest,
};
use countersign_wire::decision::Scope;

use crate::review;

/// How long an approval of a pattern counts.
const HOUR: Duration = Duration::from_hours(1);

/// A scope that a person can choose. It has what its sentence says and what is signed, so that both are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// This request and nothing else.
    Once,
    /// Exactly this, again, in the session of the request.
    Session(String),
    /// What a pattern covers, in the folder of the request.
    Hour {
        /// The pattern that is signed.
        pattern: Pattern,
        /// The same as words that a shell would read.
        text: String,
        folder: String,
    },
}

impl Offer {
    /// What can be chosen for a request, the narrowest first.
    pub fn all(request: &OpenedRequest) -> Vec<Self> {
        let payload = review::payload(request);
        let mut offers = vec![Self::Once];
        // What this person has changed is approved as it stands here.
        if request.is_edited {
            return offers;
        }
        // No grant covers what is dangerous or was not examined, so one that says so would be wrong.
        if payload.is_serious() {
            return offers;
        }
        offers.extend(request.session.clone().map(Self::Session));
        offers.extend(Self::hour(request, &payload.headline()).ok());
        offers
    }

    /// An hour for what a pattern covers, or why there is none.
    pub fn hour(request: &OpenedRequest, text: &str) -> Result<Self, String> {
        let Payload::Command(command) = review::payload(request) else {
            return Err("only a command has a pattern".to_owned());
        };
        let examined = command.effects.as_ref().filter(|_| command.context.state == Some(State::Examined));
        let (Invocation::Argv(argv), Some(effects)) = (&command.invocation, examined) else {
            return Err(
                "only a command that was examined, and is no text for a shell, has a pattern".to_owned()
            );
        };
        if effects.iter().any(|effect| effect.kind.is_dangerous()) {
            return Err("what is dangerous always asks".to_owned());
        }
        let words = countersign_client::shell::words(text).ok_or("these are not plain words")?;
        let pattern = Pattern::new(words).map_err(|error| error.to_string())?;
        match pattern.covers(argv) {
            true => Ok(Self::Hour { pattern, text: text.to_owned(), folder: command.cwd }),
            false => Err("it does not cover the command that you see".to_owned()),
        }
    }

    /// The word for it in a question.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session(_) => "for this session",
            Self::Hour { .. } => "for 1 hour, only this pattern",
        }
    }

    /// What would run without asking.
    pub fn sentence(&self) -> String {
        match self {
            Self::Once => "Only this request is approved; nothing else will run without asking.".to_owned(),
            Self::Session(id) => format!(
                "Until session {} ends, at most 8 hours, exactly this runs again without asking; anything else asks.",
                visible(id)
            ),
            Self::Hour { text, folder, .. } => format!(
                "For 1 hour, every `{}` in {} runs without asking; other options, programs and scripts and dangerous effects ask.",
                visible_code(text),
                visible_code(folder)
            ),
        }
    }

    /// The scope that is signed.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Once => Scope::Once,
            Self::Session(_) => Scope::Session,
            Self::Hour { .. } => Scope::Timebox,
        }
    }

    /// How long after it was signed the approval counts.
    pub fn time(&self) -> Duration {
        match self {
            Self::Once => review::APPROVAL_VALID,
            Self::Session(_) => review::MAX_GRANT_TIME,
            Self::Hour { .. } => HOUR,
        }
    }

    /// The pattern that is signed.
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Hour { pattern, .. } => Some(pattern),
            Self::Once | Self::Session(_) => None,
        }
    }
}
