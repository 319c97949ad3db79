//! What arrives on a channel, and how a channel behaves.

use std::{fmt, sync::Arc, time::Duration};

use countersign_wire::{
    RawObject,
    envelope::Envelope,
    exchange::{ExchangeState, ExchangeStatus},
    hash::Sha256Hex,
    id::{MsgId, RequestId},
    limits,
    msg_type::MsgType,
};
use serde_json::{Map, Value};

use crate::{
    ends::names::Names,
    gateway::{http::CallError, trouble::Trouble},
    identity::profile::Role,
    json::vocabulary,
};

vocabulary! {
    /// How messages come from the gateway.
    pub enum Transport {
        /// A WebSocket, which carries everything.
        Websocket = "websocket",
        /// Server-sent events, which carry requests to approvers and decisions to enforcers.
        Sse = "sse",
        /// Asking again and again, which finds the same as server-sent events carry.
        Poll = "poll",
    }
}

/// How a channel behaves. The defaults are for the gateway's own times: it is heard of at least every 30 seconds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The transports that are used, the best one first. None at all means all of them.
    pub transports: Vec<Transport>,
    /// A connection on which nothing was heard for this long is dead. A WebSocket is pinged three times within it.
    pub silence: Duration,
    /// After a fallback, a better transport is tried again after this time, then after twice as long, and so on.
    pub up_again: Duration,
    /// How often the inbox, or the requests that are waited for, are also asked for while a connection is open.
    pub list_every: Duration,
    /// How often they are asked for when there is no connection that pushes.
    pub poll_every: Duration,
    /// What this end says of itself besides its transports. The gateway and the whole tenant read it.
    pub capabilities: Capabilities,
    /// What an enforcer is called. Of an approver nothing is said.
    pub names: Names,
}

/// What an end says of itself, under keys with a dot: looked up anew for each connection.
#[derive(Clone, Default)]
pub struct Capabilities(Option<Arc<dyn Fn() -> Map<String, Value> + Send + Sync>>);

impl Capabilities {
    /// `look` is called whenever there is a connection, and must not take long.
    pub fn new(look: impl Fn() -> Map<String, Value> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    /// What is to be said now. Members without a namespace have no place there.
    pub(super) fn now(&self) -> impl Iterator<Item = (String, Value)> {
        let said = self.0.as_ref().map(|look| look()).unwrap_or_default();
        said.into_iter().filter(|(name, _)| name.contains('.'))
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capabilities")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transports: Transport::ALL.to_vec(),
            silence: Duration::from_secs(45),
            up_again: Duration::from_mins(1),
            list_every: Duration::from_mins(1),
            poll_every: Duration::from_secs(3),
            capabilities: Capabilities::default(),
            names: Names::default(),
        }
    }
}

/// Why a channel has ended. Whatever it is not, it goes on without end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The gateway does not accept the credential, or not for this party.
    #[error("the channel is closed: {0}")]
    Refused(CallError),
    /// The runtime that it was started on has stopped.
    #[error("the channel has stopped with its runtime")]
    Stopped,
}

/// A message as it was pushed or listed. Nothing in it is proven; whoever uses it opens and checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Identifies the message, however often it arrives. The specification lets a gateway leave it out: then it is made of the
    /// type and the request.
    pub msg_id: MsgId,
    has_msg_id: bool,
    /// The type, by which the event is chosen.
    pub msg_type: MsgType,
    /// The exchange, prompt or session that it is about.
    pub request_id: RequestId,
    text: String,
}

impl Pushed {
    /// Reads one message: an envelope, or a bare `refresh.request`. `None` if it is neither.
    pub(super) fn read(text: String) -> Option<Self> {
        let object = RawObject::parse(text.as_bytes()).ok()?;
        let mut members = object.members().ok()?;
        let msg_type: MsgType = members.required("msgType").ok()?;
        let is_bare = msg_type == MsgType::RefreshRequest && !members.contains("body");
        if !is_bare {
            object.view::<Envelope<'_>>().ok()?;
        }
        let request_id: RequestId = members.required("requestId").ok()?;
        let given: Option<MsgId> = members.optional("msgId").ok()?;
        let has_msg_id = given.is_some();
        let msg_id = match given {
            Some(msg_id) => msg_id,
            None => stand_in(&msg_type, &request_id, &text)?,
        };
        Some(Self { msg_id, has_msg_id, msg_type, request_id, text })
    }

    /// The id by which the gateway knows it, if it gave one.
    pub(super) fn given_id(&self) -> Option<&MsgId> {
        self.has_msg_id.then_some(&self.msg_id)
    }

    /// The message as it came, JSON.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The envelope; `None` of a bare `refresh.request`.
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        let object = RawObject::reread(self.text.as_bytes()).ok()?;
        Some(object.view::<Envelope<'_>>().ok()?.into_view())
    }

    /// How a request has ended, by the gateway's word in an `exchange.status`; `None` if it has not, or is another one.
    pub fn ended(&self) -> Option<ExchangeState> {
        let envelope = self.envelope().filter(|envelope| envelope.msg_type == MsgType::ExchangeStatus)?;
        let status = envelope.body.view::<ExchangeStatus<'_>>().ok()?;
        let is_over = status.state != ExchangeState::PendingApproval;
        (status.request_id == self.request_id && is_over).then_some(status.state)
    }

    /// The reason of a `refresh.request`, if the approver gave one.
    pub(super) fn reason(&self) -> Option<String> {
        let object = RawObject::reread(self.text.as_bytes()).ok()?;
        let object = self.envelope().map_or(object, |envelope| envelope.body);
        object.members().ok()?.optional("reason").ok()?
    }
}

/// Stands for an id that was not given. A request is told of once in each way; of sessions and prompts there is more to tell.
fn stand_in(msg_type: &MsgType, request_id: &RequestId, text: &str) -> Option<MsgId> {
    let is_told_once =
        matches!(msg_type, MsgType::ApprovalRequest | MsgType::DecisionDeliver | MsgType::ExchangeWithdrawn);
    let subject = format!("{msg_type} {request_id}");
    let digest = Sha256Hex::digest(if is_told_once { subject.as_bytes() } else { text.as_bytes() });
    digest.to_string().parse().ok()
}

/// What a channel reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Messages arrive over this transport from now on.
    Connected {
        /// The one that was opened.
        transport: Transport,
    },
    /// No messages arrive at the moment. The channel goes on trying.
    Disconnected {
        /// Why, in our own words.
        reason: Trouble,
    },
    /// An `approval.request`, pushed or listed.
    Request(Pushed),
    /// A `decision.deliver`, pushed or fetched.
    Decision(Pushed),
    /// An `exchange.withdrawn`: the enforcer has taken a request back.
    Withdrawn(Pushed),
    /// An `exchange.status`: the gateway says that a request has ended. It comes once and is not acknowledged.
    Status(Pushed),
    /// A `refresh.request`: an approver asks the enforcer to submit again.
    Refresh(Pushed),
    /// A `prompt.send` of an approver.
    Prompt(Pushed),
    /// A `prompt.ack` of an enforcer.
    PromptAck(Pushed),
    /// A `session.start`, `session.snapshot`, `session.status` or `session.end`.
    Session(Pushed),
    /// A request that was handed out, or is waited for, has ended.
    Gone {
        /// The id of the exchange.
        request_id: RequestId,
        /// Its state, where the gateway says it.
        state: Option<ExchangeState>,
    },
}

impl Event {
    /// The event for a message; `None` for what only answers what was sent, and for what is not known here.
    pub(super) fn of(pushed: Pushed) -> Option<Self> {
        Some(match pushed.msg_type {
            MsgType::ApprovalRequest => Self::Request(pushed),
            MsgType::DecisionDeliver => Self::Decision(pushed),
            MsgType::ExchangeWithdrawn => Self::Withdrawn(pushed),
            MsgType::ExchangeStatus => Self::Status(pushed),
            MsgType::RefreshRequest => Self::Refresh(pushed),
            MsgType::PromptSend => Self::Prompt(pushed),
            MsgType::PromptAck => Self::PromptAck(pushed),
            MsgType::SessionStart
            | MsgType::SessionSnapshot
            | MsgType::SessionStatus
            | MsgType::SessionEnd => Self::Session(pushed),
            _ => return None,
        })
    }
}

/// Why nothing more arrives on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// It has ended, as connections do.
    Ended(Trouble),
    /// What arrived is not of the protocol, or more than it allows.
    NotUnderstood,
}

/// The largest message that is read, with room for what the gateway adds to what was sent.
pub(super) fn max_message(role: Role) -> usize {
    limits::MAX_OTHER_BODY
        + match role {
            Role::Enforcer => limits::MAX_PROMPT_MESSAGE,
            Role::Approver => limits::MAX_SESSION_MESSAGE,
        }
}
