//! What a host says through a hook.

use super::call::Call;

/// One message of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The event as the host names it, which its answer must repeat.
    pub name: String,
    /// The session of the agent, so that an approval can be for all of it.
    pub session: Option<String>,
    /// What it is about.
    pub kind: Kind,
}

/// What a message is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A tool is about to be used, and a verdict is wanted.
    Call {
        /// What the agent wants to do.
        call: Call,
        /// Why the host says it.
        moment: Moment,
        /// What the host calls this call, if it says it again when a run is resumed.
        call_id: Option<String>,
        /// The same for the same call, also in the event after it.
        key: Option<String>,
    },
    /// Nothing is decided; it says what the agent is doing.
    News(News),
    /// Of no use here.
    Other,
}

/// When a host asks for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before every call, also of what the host would allow.
    EveryCall,
    /// Only because it is about to ask its person, or to refuse.
    WouldAsk,
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A session starts, or is resumed.
    SessionStarted,
    /// Its person has said something.
    Prompted(String),
    /// A tool was used. The key is that of the call that was asked about, where the host repeats it.
    ToolUsed(Option<String>),
    /// The agent has finished its turn, perhaps with words.
    Finished(Option<String>),
    /// The host says that it waits for its person.
    Waiting(String),
    /// The session is over.
    SessionEnded,
}
