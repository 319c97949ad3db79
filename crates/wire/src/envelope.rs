//! The envelope of the gateway's HTTP, SSE and WebSocket channels (section 2.4).

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
    /// Names this message; always there when the gateway sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// What the body means.
    pub msg_type: MsgType,
    /// The exchange or prompt; where there is none, the id of the HTTP request.
    pub request_id: RequestId,
    /// When the message was made, by its sender's clock.
    pub created_at: Timestamp,
    /// From when on the message is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Who says it.
    pub sender: Sender,
    /// Who is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Recipient>,
    /// Whatever helps to follow the message; never part of a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<RawObject<'a>>,
    /// Determined by `msg_type`.
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

/// Who sent an envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// Set when an enforcer did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// Set when an approver did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
    /// Set when a gateway did.
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

/// Whom an envelope is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// An enforcer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// An approver.
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
