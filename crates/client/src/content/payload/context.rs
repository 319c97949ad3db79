//! What a payload says beside its view: the call behind it, how sure the enforcer is of it, and who asks.

use countersign_wire::{Error, Members};
use serde::Serialize;

use super::{call::Call, part::Text};
use crate::json::vocabulary;

vocabulary! {
    /// How much is certain about a call.
    pub enum State {
        /// What it does follows from a grammar that is sure.
        Examined = "examined",
        /// Which program, arguments, folder and environment is certain, and what it does is not.
        Opaque = "opaque",
        /// Which code runs is not certain.
        NotExamined = "notExamined",
    }
}

impl State {
    /// What people read, and type, where it is not certain which code runs.
    pub const NOT_EXAMINED: &'static str = "not examined";
}

/// What every payload can say beside its view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Context {
    /// How much is certain; absent for what runs nothing. Of a command it is written as its effects say if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// All of what was asked for; absent if nothing runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Who asks, and why. It is not part of the grant key.
    #[serde(flatten)]
    pub about: About,
}

/// Who asks, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// What people call the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The project in which it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The branch that is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What its person asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What the agent says about it, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// The names of what is not part of the grant key.
pub(crate) const ABOUT: [&str; 5] = ["agent", "project", "branch", "task", "words"];

impl Context {
    /// Takes the members of version 2.
    pub(super) fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let mut word =
            |name: &'static str| Ok::<_, Error>(members.optional::<Text>(name)?.map(|text| text.0));
        let [agent, project, branch, task, words] = ABOUT;
        let about = About {
            agent: word(agent)?,
            project: word(project)?,
            branch: word(branch)?,
            task: word(task)?,
            words: word(words)?,
        };
        Ok(Self {
            state: members.optional("state")?,
            call: members.optional::<Call>("call")?.map(Box::new),
            about,
        })
    }
}
