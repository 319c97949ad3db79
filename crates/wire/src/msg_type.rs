//! Message types: what a body means.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::{Rule, written::written_as_string};

macro_rules! msg_types {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// The `msgType` of an envelope.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum MsgType {
            $($(#[$doc])* $variant,)+
            /// A type that this version does not know.
            Other(Box<str>),
        }

        impl MsgType {
            /// Every type that this version knows.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)+];

            /// The type as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl FromStr for MsgType {
            type Err = Rule;

            fn from_str(word: &str) -> Result<Self, Rule> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    "" => Err(Rule("must not be empty")),
                    other => Ok(Self::Other(other.into())),
                }
            }
        }
    };
}

msg_types! {
    /// An enforcer asks for a decision.
    ArtifactSubmit = "artifact.submit",
    /// The answer to it.
    ArtifactAccepted = "artifact.accepted",
    /// The request as an approver sees it.
    ApprovalRequest = "approval.request",
    /// An approver decides.
    DecisionSubmit = "decision.submit",
    /// The answer to it.
    DecisionAccepted = "decision.accepted",
    /// The decision as the enforcer gets it.
    DecisionDeliver = "decision.deliver",
    /// The enforcer takes its request back; also the answer, and the word to the approvers.
    ExchangeWithdrawn = "exchange.withdrawn",
    /// How an exchange stands.
    ExchangeStatus = "exchange.status",
    /// An approver asks for the request anew.
    RefreshRequest = "refresh.request",
    /// One page of an inbox.
    InboxPage = "inbox.page",
    /// A client has received or processed a message.
    AckSubmit = "ack.submit",
    /// The answer to it.
    AckAccepted = "ack.accepted",
    /// An approver sends text to an agent.
    PromptSend = "prompt.send",
    /// What became of it.
    PromptAck = "prompt.ack",
    /// A session of an agent begins.
    SessionStart = "session.start",
    /// What the session is about right now.
    SessionSnapshot = "session.snapshot",
    /// What the session is doing right now.
    SessionStatus = "session.status",
    /// The session is over.
    SessionEnd = "session.end",
    /// Something was refused.
    Error = "error",
    /// A client introduces itself on a WebSocket. A bare control object, never an envelope.
    Hello = "hello",
}

impl fmt::Display for MsgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for MsgType {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.as_str())
    }
}

written_as_string!(MsgType);
