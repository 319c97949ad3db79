//! The lines of a history.

use std::{collections::BTreeSet, fmt};

use countersign_wire::hash::Sha256Hex;
use serde::{Deserialize, Serialize};

/// What precedes the name of a tenant in every id and label that the workload makes.
const MARKER: &str = "mk:";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Microseconds since the history began, on a clock that does not jump.
    pub(crate) at: u64,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum What {
    /// An operation begins. Exactly one of `Ok`, `Fail` and `Unknown` with the same number follows.
    Invoke {
        op: u64,
        by: Caller,
        call: Call,
    },
    /// The gateway has answered with a success.
    Ok {
        op: u64,
        answer: Answer,
    },
    /// It certainly did nothing: it was refused, or nothing was sent.
    Fail {
        op: u64,
        answer: Answer,
    },
    /// It may have happened, now or later, or not at all.
    Unknown {
        op: u64,
        answer: Answer,
    },
    /// A message arrived that nobody asked for at that moment.
    Push(Push),
    /// An enforcer did what was approved.
    Act(Act),
    /// Somebody was notified of a request outside of the protocol.
    Notified(Notified),
    FaultBegins {
        fault: u64,
        kind: String,
        target: String,
    },
    FaultEnds {
        fault: u64,
    },
    /// All faults are over, and no client begins anything new.
    Quiet,
}

/// Who calls whom, and with which credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Caller {
    /// The client's name in the workload, unique in a history.
    pub(crate) client: String,
    /// The tenant of the credential.
    pub(crate) tenant: String,
    /// The base URL of the node.
    pub(crate) node: String,
    /// The id of the API key; empty where it is of no interest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) credential: String,
}

/// The first 128 bits of a SHA-256, in hexadecimal digits: enough to compare texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hash(String);

impl Hash {
    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        let mut hex = Sha256Hex::digest(bytes.as_ref()).to_string();
        hex.truncate(32);
        Self(hex)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum Call {
    /// Submits an exchange, for the first time or again.
    Submit {
        /// `None` if the client library chooses the id; then the answer has it.
        request: Option<String>,
        enforcer: String,
        /// The only approver that it is addressed to.
        approver: Option<String>,
        /// The text of the body; `None` if the client library makes it.
        body: Option<Hash>,
        /// From the begin of this submission, if it is the first one, to `expiresAt`; 0 if it was past then.
        lifetime_ms: u64,
    },
    /// Sends a decision, for the first time or again.
    Decide {
        request: String,
        approver: String,
        /// The text of the decision; `None` if the client library makes it.
        decision: Option<Hash>,
        approves: bool,
    },
    Withdraw {
        request: String,
    },
    /// Waits for a decision.
    Wait {
        request: String,
        /// Whether the client also acknowledges the decision on its own, as the client library does.
        acknowledges: bool,
    },
    Status {
        request: String,
    },
    /// Reads an exchange on one node after the quiet phase has drained everything.
    FinalRead {
        request: String,
    },
    /// Reads all pages of an inbox.
    Inbox {
        approver: String,
    },
    /// Acknowledges one message as this reader.
    Ack {
        reader: String,
        request: String,
        message: String,
    },
    Presence,
    /// Sets how this approver is notified outside of the protocol.
    SetChannel {
        approver: String,
    },
    /// Makes an API key for this id.
    CreateKey {
        id: String,
    },
    /// Revokes the API key with this id.
    RevokeKey {
        credential: String,
    },
    /// Asks for something of another tenant, which must be as unknown as if it did not exist.
    Probe {
        of: String,
        request: String,
        /// The operation that is tried.
        tries: String,
    },
    /// Says what became of a decision.
    Finish {
        request: String,
    },
    /// Everything that a client of the library does from its start to its end.
    Work,
    /// Opens a connection on which messages are pushed to this reader.
    Listen {
        reader: String,
        transport: Transport,
    },
}

impl Call {
    /// A name for counting.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "submit",
            Self::Decide { .. } => "decide",
            Self::Withdraw { .. } => "withdraw",
            Self::Wait { .. } => "wait",
            Self::Status { .. } => "status",
            Self::FinalRead { .. } => "final_read",
            Self::Inbox { .. } => "inbox",
            Self::Ack { .. } => "ack",
            Self::Presence => "presence",
            Self::SetChannel { .. } => "set_channel",
            Self::CreateKey { .. } => "create_key",
            Self::RevokeKey { .. } => "revoke_key",
            Self::Probe { .. } => "probe",
            Self::Finish { .. } => "finish",
            Self::Work => "work",
            Self::Listen { .. } => "listen",
        }
    }

    /// The exchange that it is about, where it names one.
    pub(crate) fn request(&self) -> Option<&str> {
        match self {
            Self::Submit { request, .. } => request.as_deref(),
            Self::Decide { request, .. }
            | Self::Withdraw { request }
            | Self::Wait { request, .. }
            | Self::Status { request }
            | Self::FinalRead { request }
            | Self::Ack { request, .. }
            | Self::Finish { request }
            | Self::Probe { request, .. } => Some(request),
            _ => None,
        }
    }
}

/// How messages are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    Websocket,
    Sse,
    /// The client library's channel, which also lists, and hands out each message once.
    Sdk,
}

/// The state of an exchange as an answer says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ExchangeState {
    PendingApproval,
    Decided,
    Delivered,
    Expired,
    Withdrawn,
    Cancelled,
}

impl ExchangeState {
    /// Reads the word of the protocol.
    pub(crate) fn read(word: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }
}

impl fmt::Display for ExchangeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PendingApproval => "pending",
            Self::Decided => "decided",
            Self::Delivered => "delivered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Cancelled => "cancelled",
        })
    }
}

/// What came back, as far as the checker needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    /// The HTTP status; 0 if nothing came back.
    pub(crate) status: u16,
    /// The code of an error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) code: String,
    /// Why there is no answer, in words for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// The exchange, where the call could not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<String>,
    /// The state of the exchange at that time. A replayed submission has none: it repeats an earlier answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<ExchangeState>,
    /// The text of the body, without the envelope around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Hash>,
    /// The text of the decision in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Hash>,
    /// The messages of an inbox, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) messages: Vec<Message>,
    /// The tenants whose markers are in it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) tenants: BTreeSet<String>,
}

impl Answer {
    pub(crate) fn none(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

/// One message that arrived at a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    /// The `msgId`, the same on every delivery.
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) request: String,
    /// The text of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Hash>,
    /// The tenants whose markers are in it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) tenants: BTreeSet<String>,
}

/// A message that was pushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Push {
    pub(crate) by: Caller,
    /// The enforcer or approver whose message it is.
    pub(crate) reader: String,
    /// The operation that opened the connection.
    pub(crate) connection: u64,
    pub(crate) transport: Transport,
    pub(crate) message: Message,
}

/// An enforcer did what was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Act {
    pub(crate) client: String,
    pub(crate) tenant: String,
    pub(crate) request: String,
    /// The text of the decision, where the client library shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Hash>,
}

/// Somebody was notified of a request outside of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notified {
    pub(crate) tenant: String,
    pub(crate) request: String,
    /// Whether the service took it.
    pub(crate) accepted: bool,
}

/// A text with the marker of a tenant.
pub(crate) fn marked(tenant: &str, rest: &str) -> String {
    format!("{MARKER}{tenant}:{rest}")
}

/// The tenants whose markers are in a text.
pub(crate) fn tenants_in(text: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(start) = rest.windows(MARKER.len()).position(|bytes| bytes == MARKER.as_bytes()) {
        rest = &rest[start + MARKER.len()..];
        let Some(end) = rest.iter().take(64).position(|byte| *byte == b':') else { continue };
        found.insert(String::from_utf8_lossy(&rest[..end]).into_owned());
    }
    found
}
