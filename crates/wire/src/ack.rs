//! Acknowledgements: what a client has received.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members,
    id::{MsgId, RequestId},
    prompt::PromptAck,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// How far a client got with a message.
    pub enum AckStatus {
        /// It is there.
        Received = "received",
        /// It has been acted on.
        Processed = "processed",
    }
}

/// The body of `ack.submit`.
#[derive(Debug, Clone)]
pub enum AckSubmit<'a> {
    /// Of one message, or without a `msgId` of everything outstanding for the request.
    Message(MessageAck),
    /// Of a prompt, known by its member `promptHash`.
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

/// Acknowledges messages of the gateway. Members beside these are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageAck {
    /// The message; without it, all of the request that are outstanding to the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// How far the client got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<AckStatus>,
    /// When, by the client's clock.
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

/// The body of `ack.accepted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AckAccepted {
    /// The request that was acknowledged.
    pub request_id: RequestId,
    /// The message, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
}

impl FromMembers<'_> for AckAccepted {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self { request_id: members.required("requestId")?, msg_id: members.optional("msgId")? })
    }
}
