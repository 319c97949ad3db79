//! Sessions that an approver has stopped: nothing more is done there, also after this machine has started again.

use std::{io, path::Path};

use countersign_client::{payload::visible, prompt::OpenedPrompt};
use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use super::desk::Desk;
use crate::tool::exit::{Exit, Failure};

/// The name under which it is kept.
const WHAT: &str = "stopped";

/// Who has stopped a session, and whether its other approvers were told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    by: String,
    device: String,
    at: Timestamp,
    words: Option<String>,
    /// Whether the gateway has taken it that the session has ended.
    pub is_told: bool,
}

impl Stopped {
    /// What a prompt that was opened and checked asks for.
    pub fn by(prompt: &OpenedPrompt, words: Option<&str>) -> Self {
        Self {
            by: prompt.approver.to_string(),
            device: prompt.device.short(),
            at: prompt.created_at,
            words: words.map(str::to_owned),
            is_told: false,
        }
    }

    /// Keeps it before anything else is done.
    pub fn keep(&self, desk: &Desk, session: &str) -> io::Result<()> {
        desk.keep(WHAT, &[session], &serde_json::to_string(self)?)
    }

    /// Why nothing is done, for the agent and its person.
    fn reason(&self) -> String {
        let words = self.words.as_deref().map(|words| format!(": “{}”", visible(words))).unwrap_or_default();
        format!(
            "{} (key {}) stopped this agent{words}. {NOTHING_MORE}",
            visible(&self.by),
            visible(&self.device)
        )
    }
}

const NOTHING_MORE: &str = "Nothing more is done in this session. Start a new session to continue.";

/// Who has stopped a session, as far as that can be read.
pub fn find(desk: &Desk, session: &str) -> Option<Stopped> {
    serde_json::from_str(&desk.kept(WHAT, &[session]).ok()??).ok()
}

/// Why nothing may be done in a session; `None` if nobody has stopped it. What can't be read counts as stopped.
pub fn reason(desk: &Desk, session: &str) -> Option<String> {
    let unknown = || format!("This agent was stopped. {NOTHING_MORE}");
    match desk.kept(WHAT, &[session]) {
        Ok(None) => None,
        Ok(Some(text)) => {
            Some(serde_json::from_str::<Stopped>(&text).map_or_else(|_| unknown(), |it| it.reason()))
        }
        Err(_) => Some(unknown()),
    }
}

/// Refuses what is asked for in a session that was stopped.
pub fn refuse(folder: &Path, session: Option<&str>) -> Result<(), Failure> {
    let desk = Desk::new(folder.to_owned());
    match session.and_then(|session| reason(&desk, session)) {
        Some(reason) => Err(Failure::new(Exit::Rejected, reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(words: Option<&str>) -> Stopped {
        Stopped {
            by: "ada".to_owned(),
            device: "1234 5678".to_owned(),
            at: "2026-11-15T12:00:00Z".parse().unwrap(),
            words: words.map(str::to_owned),
            is_told: false,
        }
    }

    #[test]
    fn a_session_stays_stopped_and_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().to_owned());
        assert_eq!(reason(&desk, "one"), None);
        stopped(Some("wrong\u{202e} branch")).keep(&desk, "one").unwrap();
        let words = reason(&Desk::new(folder.path().to_owned()), "one").unwrap();
        let wanted = "ada (key 1234 5678) stopped this agent: “wrong⟨U+202E⟩ branch”. Nothing more is done in this session. \
                      Start a new session to continue.";
        assert_eq!(words, wanted);
        assert_eq!(reason(&desk, "two"), None);
        assert_eq!(find(&desk, "one"), Some(stopped(Some("wrong\u{202e} branch"))));
        refuse(folder.path(), Some("two")).unwrap();
        refuse(folder.path(), None).unwrap();
        assert_eq!(refuse(folder.path(), Some("one")).unwrap_err().exit, Exit::Rejected);
    }

    #[test]
    fn what_can_not_be_read_counts_as_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().to_owned());
        desk.keep(WHAT, &["one"], "{").unwrap();
        assert!(reason(&desk, "one").is_some_and(|it| it.starts_with("This agent was stopped.")));
    }
}
