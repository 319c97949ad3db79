//! Acknowledgements of pushed messages.

use serde::Serialize;

use crate::{
    Error, FromMembers, Label, Members, Rule,
    id::{MsgId, RequestId},
    prompt::PromptAck,
    timestamp::Timestamp,
    written::written_as_string,
};

/// How far a client has processed a message: any text of 1 to 64 characters. All of them end redelivery; `received`,
/// `seen` and `processed` are those that our own clients send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AckStatus(Box<str>);

impl AckStatus {
    /// Checks the length, and replaces what could change how the text around it is shown, as in a label.
    pub fn new(text: &str) -> Result<Self, Rule> {
        match text.chars().count() {
            1..=MAX_STATUS_CHARS => Ok(Self(Label::new(text).as_str().into())),
            _ => Err(Rule("must have 1 to 64 characters")),
        }
    }

    /// The text as it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const MAX_STATUS_CHARS: usize = 64;

impl std::str::FromStr for AckStatus {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        Self::new(text)
    }
}

written_as_string!(AckStatus);

/// The body of `ack.submit`, for any message or for a prompt.
#[derive(Debug, Clone)]
pub enum AckSubmit<'a> {
    /// Acknowledges one message, or without a `msgId` everything outstanding for the request.
    Message(MessageAck),
    /// A body with the member `promptHash`: acknowledges a prompt.
    Prompt(PromptAck<'a>),
}

impl<'a> FromMembers<'a> for AckSubmit<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        if members.contains("promptHash") {
            PromptAck::from_members(members).map(Self::Prompt)
        } else {
            MessageAck::from_members(members).map(Self::Message)
        }
    }
}

/// Acknowledges messages of the gateway. Other members are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageAck {
    /// The message; if absent, all messages of the request that are outstanding to the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// How far the client has processed it; absent if it does not say. An approver's is shown to the enforcer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<AckStatus>,
    /// The time of the acknowledgement by the client's clock; optional, not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_at: Option<Timestamp>,
}

impl FromMembers<'_> for MessageAck {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            msg_id: members.optional("msgId")?,
            status: members.optional("status")?,
            ack_at: members.optional("ackAt")?,
        })
    }
}

/// The body of `ack.accepted`, the response to an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AckAccepted {
    /// The request that was acknowledged.
    pub request_id: RequestId,
    /// The acknowledged message; absent if the request named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
}

impl FromMembers<'_> for AckAccepted {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self { request_id: members.required("requestId")?, msg_id: members.optional("msgId")? })
    }
}
