//! Message types, which determine the format of a body. One table: the word, how large it may be, whether it is pushed.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::{
    Rule,
    limits::{MAX_ARTIFACT_MESSAGE, MAX_OTHER_BODY, MAX_PROMPT_MESSAGE, MAX_SESSION_MESSAGE},
    written::written_as_string,
};

use Origin::{Approver, Enforcer};

/// The side on whose behalf the gateway pushes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the two sides of an exchange")]
pub enum Origin {
    Enforcer,
    Approver,
}

macro_rules! msg_types {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $max_bytes:ident, $pushed_for:expr;)+) => {
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

            /// How large a message of this type may be that a client sends, with its envelope.
            pub fn max_bytes(&self) -> usize {
                match self {
                    $(Self::$variant => $max_bytes,)+
                    Self::Other(_) => MAX_OTHER_BODY,
                }
            }

            /// On whose behalf the gateway puts it into mailboxes and pushes it; `None` for requests, responses and
            /// unknown types.
            pub fn pushed_for(&self) -> Option<Origin> {
                match self {
                    $(Self::$variant => $pushed_for,)+
                    Self::Other(_) => None,
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

// CONTRIBUTING: add a message type, step 1
msg_types! {
    /// Enforcer to gateway: submits an artifact for review.
    ArtifactSubmit = "artifact.submit", MAX_ARTIFACT_MESSAGE, None;
    /// Gateway to enforcer: the response to `artifact.submit`.
    ArtifactAccepted = "artifact.accepted", MAX_OTHER_BODY, None;
    /// Gateway to approver: a submitted artifact, pushed and as an item of an inbox page.
    ApprovalRequest = "approval.request", MAX_OTHER_BODY, Some(Enforcer);
    /// Approver to gateway: submits a signed decision on an exchange.
    DecisionSubmit = "decision.submit", MAX_OTHER_BODY, None;
    /// Gateway to approver: the response to `decision.submit`.
    DecisionAccepted = "decision.accepted", MAX_OTHER_BODY, None;
    /// Gateway to enforcer: the decision as it was submitted, pushed and as the result of a wait.
    DecisionDeliver = "decision.deliver", MAX_OTHER_BODY, Some(Approver);
    /// Enforcer to gateway: withdraws a pending exchange. Gateway to enforcer: the response. Gateway to approver:
    /// notifies the addressed approvers.
    ExchangeWithdrawn = "exchange.withdrawn", MAX_OTHER_BODY, Some(Enforcer);
    /// Gateway to enforcer or approver: the state of an exchange, as a response only.
    ExchangeStatus = "exchange.status", MAX_OTHER_BODY, None;
    /// Approver to gateway to enforcer: asks for a new submission of an exchange. Gateway to approver: the response. Pushed
    /// without the approver's name, which is not stored.
    RefreshRequest = "refresh.request", MAX_OTHER_BODY, Some(Enforcer);
    /// Gateway to approver: one page of their inbox, as a response only.
    InboxPage = "inbox.page", MAX_OTHER_BODY, None;
    /// Enforcer or approver to gateway: acknowledges pushed messages, which are then not pushed again.
    AckSubmit = "ack.submit", MAX_OTHER_BODY, None;
    /// Gateway to enforcer or approver: the response to `ack.submit`; on a WebSocket also to an enforcer's
    /// `prompt.ack` and session events.
    AckAccepted = "ack.accepted", MAX_OTHER_BODY, None;
    /// Approver to gateway to enforcer: text for an agent.
    PromptSend = "prompt.send", MAX_PROMPT_MESSAGE, Some(Approver);
    /// Enforcer to gateway to approver: the outcome of a prompt. Also the gateway's first response to the approver,
    /// with the status `queued`.
    PromptAck = "prompt.ack", MAX_OTHER_BODY, Some(Enforcer);
    /// Enforcer to gateway to paired approvers: a session of an agent starts.
    SessionStart = "session.start", MAX_OTHER_BODY, Some(Enforcer);
    /// Enforcer to gateway to paired approvers: a summary, plan, diff or context of a session.
    SessionSnapshot = "session.snapshot", MAX_SESSION_MESSAGE, Some(Enforcer);
    /// Enforcer to gateway to paired approvers: the current activity of a session.
    SessionStatus = "session.status", MAX_OTHER_BODY, Some(Enforcer);
    /// Enforcer to gateway to paired approvers: a session has ended; later events are rejected.
    SessionEnd = "session.end", MAX_OTHER_BODY, Some(Enforcer);
    /// Gateway to enforcer or approver: a request or frame was rejected or failed.
    Error = "error", MAX_OTHER_BODY, None;
    /// Enforcer or approver to gateway, on a WebSocket: describes the client. A bare object, never in an envelope.
    Hello = "hello", MAX_OTHER_BODY, None;
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
