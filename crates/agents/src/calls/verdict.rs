//! What a host is answered, before it is written in the host's own format.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An answer to an event. It travels as JSON from the worker to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "camelCase", deny_unknown_fields)]
pub enum Verdict {
    /// It may be done.
    #[serde(rename_all = "camelCase")]
    Allow {
        /// Who or what allows it.
        reason: String,
        /// Words of the approver for the agent.
        words: Option<String>,
        /// Answers to the questions of the agent, by their texts.
        answers: Map<String, Value>,
        /// The arguments to run it with, where an approver has changed them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// It must not be done.
    Deny {
        /// Why, for the agent and its person.
        reason: String,
        /// Whether nobody has decided it: something failed.
        failed: bool,
    },
    /// The host goes on as if it had not asked.
    NoOpinion {
        /// Why, for the person at the desk.
        cause: Option<String>,
    },
    /// The run ends here, and goes on when there is an answer.
    Defer {
        /// Why, for whoever reads the end of the run.
        reason: String,
    },
    /// Words of an approver for the agent, beside an event that decides nothing.
    Words {
        /// What they have said.
        text: String,
    },
}

impl Verdict {
    /// Allowed, and nothing more to say.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::Allow { reason: reason.into(), words: None, answers: Map::new(), input: None }
    }

    /// Denied by a person or a rule.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), failed: false }
    }

    /// Denied because something failed.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), failed: true }
    }

    /// No opinion, with nothing to say about it.
    pub fn silent() -> Self {
        Self::NoOpinion { cause: None }
    }
}
