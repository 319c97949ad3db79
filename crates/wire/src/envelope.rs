//! The envelope of the gateway's HTTP, SSE and WebSocket channels (docs/protocol.md#envelopes).

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject,
    id::{ApproverId, EnforcerId, GatewayId, MsgId, RequestId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

/// One message. What arrives has a [`RawObject`] as its body; what is sent can have any body.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, B = RawObject<'a>> {
    /// Identifies this message, also across redelivery; absent only in messages of clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// Determines the format of the body.
    pub msg_type: MsgType,
    /// The id of the exchange or prompt, in `session.*` of the session; if there is none, of the HTTP request.
    pub request_id: RequestId,
    /// When the sender created the message, by its clock; for a gateway that is the store's clock.
    pub created_at: Timestamp,
    /// The time from which the message must be ignored; absent if it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The sender. In messages of clients it must fit the credential.
    pub sender: Sender,
    /// The addressee; absent in responses and errors, and if all approvers are addressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Recipient>,
    /// Tracing data, never part of a hash, and routing keys of an open artifact; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<RawObject<'a>>,
    /// The body, in the format that `msg_type` determines.
    pub body: B,
}

impl<'a> FromMembers<'a> for Envelope<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let envelope = Self {
            msg_id: members.optional("msgId")?,
            msg_type: members.required("msgType")?,
            request_id: members.required("requestId")?,
            created_at: members.required("createdAt")?,
            expires_at: members.optional("expiresAt")?,
            sender: members.required("sender")?,
            recipient: members.optional("recipient")?,
            trace: members.optional("trace")?,
            body: members.required("body")?,
        };
        members.close()?;
        Ok(envelope)
    }
}

/// The sender of an envelope. A relayed message names both the gateway and the client that caused it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// Present if an enforcer sent or caused the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// Present if an approver sent or caused the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
    /// Present if a gateway sent the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<GatewayId>,
}

impl FromMembers<'_> for Sender {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let sender = Self {
            enforcer_id: members.optional("enforcerId")?,
            approver_id: members.optional("approverId")?,
            gateway_id: members.optional("gatewayId")?,
        };
        members.close()?;
        Ok(sender)
    }
}

/// The addressee of an envelope; empty if none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// Present if the message is for this enforcer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// Present if the message is for this approver only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
}

impl FromMembers<'_> for Recipient {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let recipient = Self {
            enforcer_id: members.optional("enforcerId")?,
            approver_id: members.optional("approverId")?,
        };
        members.close()?;
        Ok(recipient)
    }
}
