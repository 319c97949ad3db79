//! Message types, which determine the format of a body.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::{Rule, written::written_as_string};

macro_rules! msg_types {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// The `msgType` of an envelope. The documentation of each variant says who sends it to whom.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum MsgType {
            $($(#[$doc])* $variant,)+
            /// A type that this version does not know; never empty. The gateway rejects it.
            Other(Box<str>),
        }

        impl MsgType {
            /// Every type that this version knows, in the order of declaration.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)+];

            /// The value of `msgType` in JSON, for example `artifact.submit`.
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
    /// Enforcer to gateway: submits an artifact for review.
    ArtifactSubmit = "artifact.submit",
    /// Gateway to enforcer: the response to `artifact.submit`.
    ArtifactAccepted = "artifact.accepted",
    /// Gateway to approver: a submitted artifact, pushed and as an item of an inbox page.
    ApprovalRequest = "approval.request",
    /// Approver to gateway: submits a signed decision on an exchange.
    DecisionSubmit = "decision.submit",
    /// Gateway to approver: the response to `decision.submit`.
    DecisionAccepted = "decision.accepted",
    /// Gateway to enforcer: the decision as it was submitted, pushed and as the result of a wait.
    DecisionDeliver = "decision.deliver",
    /// Enforcer to gateway: withdraws a pending exchange. Gateway to enforcer: the response. Gateway to approver:
    /// notifies the addressed approvers.
    ExchangeWithdrawn = "exchange.withdrawn",
    /// Gateway to enforcer or approver: the state of an exchange, as a response only.
    ExchangeStatus = "exchange.status",
    /// Approver to gateway to enforcer: asks for a new submission of an exchange. Gateway to approver: the response.
    RefreshRequest = "refresh.request",
    /// Gateway to approver: one page of their inbox, as a response only.
    InboxPage = "inbox.page",
    /// Enforcer or approver to gateway: acknowledges pushed messages, which are then not pushed again.
    AckSubmit = "ack.submit",
    /// Gateway to enforcer or approver: the response to `ack.submit`; on a WebSocket also to an enforcer's
    /// `prompt.ack` and session events.
    AckAccepted = "ack.accepted",
    /// Approver to gateway to enforcer: text for an agent.
    PromptSend = "prompt.send",
    /// Enforcer to gateway to approver: the outcome of a prompt. Also the gateway's first response to the approver,
    /// with the status `queued`.
    PromptAck = "prompt.ack",
    /// Enforcer to gateway to paired approvers: a session of an agent starts.
    SessionStart = "session.start",
    /// Enforcer to gateway to paired approvers: a summary, plan, diff or context of a session.
    SessionSnapshot = "session.snapshot",
    /// Enforcer to gateway to paired approvers: the current activity of a session.
    SessionStatus = "session.status",
    /// Enforcer to gateway to paired approvers: a session has ended; later events are rejected.
    SessionEnd = "session.end",
    /// Gateway to enforcer or approver: a request or frame was rejected or failed.
    Error = "error",
    /// Enforcer or approver to gateway, on a WebSocket: describes the client. A bare object, never in an envelope.
    Hello = "hello",
}

/// A message type that the gateway puts into mailboxes and pushes, as opposed to requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named after the message types, which are documented")]
pub enum PushedType {
    ApprovalRequest,
    DecisionDeliver,
    ExchangeWithdrawn,
    RefreshRequest,
    PromptSend,
    PromptAck,
    SessionStart,
    SessionSnapshot,
    SessionStatus,
    SessionEnd,
}

impl MsgType {
    /// The same type, if the gateway pushes it; `None` for requests, responses and unknown types.
    pub fn pushed(&self) -> Option<PushedType> {
        Some(match self {
            Self::ApprovalRequest => PushedType::ApprovalRequest,
            Self::DecisionDeliver => PushedType::DecisionDeliver,
            Self::ExchangeWithdrawn => PushedType::ExchangeWithdrawn,
            Self::RefreshRequest => PushedType::RefreshRequest,
            Self::PromptSend => PushedType::PromptSend,
            Self::PromptAck => PushedType::PromptAck,
            Self::SessionStart => PushedType::SessionStart,
            Self::SessionSnapshot => PushedType::SessionSnapshot,
            Self::SessionStatus => PushedType::SessionStatus,
            Self::SessionEnd => PushedType::SessionEnd,
            Self::ArtifactSubmit
            | Self::ArtifactAccepted
            | Self::DecisionSubmit
            | Self::DecisionAccepted
            | Self::ExchangeStatus
            | Self::InboxPage
            | Self::AckSubmit
            | Self::AckAccepted
            | Self::Error
            | Self::Hello
            | Self::Other(_) => return None,
        })
    }
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
