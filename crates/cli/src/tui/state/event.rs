//! What goes into the state, what comes out, and its parts without rules.

use std::{sync::Arc, time::Duration};

use countersign_client::{approver::InboxItem, reply::Choice, request::OpenedRequest};
use countersign_wire::{exchange::ExchangeState, id::RequestId, timestamp::Timestamp};

use crate::tui::{
    item::{End, Report},
    scope::Offer,
};

/// The two clocks that the state goes by.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Since the start of the program; it never jumps.
    pub running: Duration,
    /// The time of day.
    pub wall: Timestamp,
}

/// That the gateway can't be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    /// When that was seen first.
    pub since: Timestamp,
    /// What has failed last, as a sentence.
    pub why: String,
}

/// What happens to the interface.
#[derive(Debug)]
pub enum Event {
    /// A key is pressed.
    Key(Key),
    /// A text is pasted.
    Paste(String),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// Everything that waits now.
    Inbox(Vec<InboxItem>),
    /// The gateway does not answer, and why.
    Trouble(String),
    /// Where the gateway says that an exchange stands.
    Status(RequestId, ExchangeState),
    /// The gateway has taken an answer.
    Accepted(RequestId),
    /// A report of what the machine did with an answer has come.
    Reported(RequestId, Report),
    /// An answer did not arrive.
    NotAccepted {
        id: RequestId,
        /// Why, as a sentence.
        why: String,
        /// What has ended it, if that is known.
        end: Option<End>,
    },
    /// The gateway has taken it that a request is wanted again.
    Wanted(RequestId),
    /// That did not arrive, and why, as a sentence.
    NotWanted(RequestId, String),
    Tick,
}

/// What the state wants done.
#[derive(Debug)]
pub enum Action {
    /// Sign and send an answer.
    Decide(Arc<OpenedRequest>, Box<Choice>),
    /// Ask the gateway where an exchange stands.
    AskStatus(RequestId),
    /// Ask for a request again that has expired.
    AskAgain(RequestId),
    Quit,
}

/// What keys are for at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Moving, reading, beginning an answer.
    Browse,
    /// The question before an approval.
    Confirm,
    /// Typing the target of a dangerous effect.
    Target(String),
    /// Typing the words of a rejection.
    Words(String),
    /// Another command in place of the one that is asked for is being typed.
    Change(String),
    /// Choosing what an approval covers, among these.
    Scope(Vec<Offer>),
    /// Typing the pattern of what an approval covers.
    Pattern(String),
    /// Typing what is searched for.
    Search(String),
    /// Reading what the keys do.
    Help,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Interrupt,
}

/// How a line of the bar is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A question, or what has just happened.
    Strong,
    Warning,
    Plain,
    /// Which keys there are.
    Hint,
}
