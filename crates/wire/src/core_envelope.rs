//! The core envelope (docs/protocol.md#envelopes), which the generic transport endpoints also accept.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject,
    id::{DeviceId, EnvelopeId},
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The message types of a core envelope.
    pub enum CoreMsgType {
        /// Enforcer to gateway: submits an artifact for review.
        ArtifactSubmit = "artifact.submit",
        /// Approver to gateway: submits a signed decision.
        DecisionSubmit = "decision.submit",
        /// Gateway to client: a request was rejected or failed.
        Error = "error",
    }

    /// The role of a sender or recipient.
    pub enum Actor {
        /// The enforcer; the specification abbreviates it `HE`.
        Enforcer = "HE",
        /// The approver; the specification abbreviates it `MA`.
        Approver = "MA",
        /// The gateway itself, never a client.
        Gateway = "GW",
    }
}

/// One message between two parties. What arrives has a [`RawObject`] as its body; what is sent can have any body.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreEnvelope<'a, B = RawObject<'a>> {
    /// Identifies this envelope; its presence distinguishes a core envelope from a gateway envelope.
    pub envelope_id: EnvelopeId,
    /// Determines the format of the body.
    pub msg_type: CoreMsgType,
    /// The claimed sender; the credential decides.
    pub sender: Party,
    /// The addressee, required in a core envelope.
    pub recipient: Party,
    /// When the sender created it, by its clock.
    pub created_at: Timestamp,
    /// The body, in the format that `msg_type` determines.
    pub body: B,
    /// Tracing data, and routing keys of an open artifact; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for CoreEnvelope<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let envelope = Self {
            envelope_id: members.required("envelopeId")?,
            msg_type: members.required("msgType")?,
            sender: members.required("sender")?,
            recipient: members.required("recipient")?,
            created_at: members.required("createdAt")?,
            body: members.required("body")?,
            trace: members.optional("trace")?,
        };
        members.close()?;
        Ok(envelope)
    }
}

/// A sender or recipient: a role and an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Party {
    /// The role, which determines the kind of `device_id`.
    pub actor: Actor,
    /// The id of the enforcer, approver or gateway.
    pub device_id: DeviceId,
}

impl FromMembers<'_> for Party {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let party = Self { actor: members.required("actor")?, device_id: members.required("deviceId")? };
        members.close()?;
        Ok(party)
    }
}
