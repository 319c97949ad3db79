//! The core envelope (section 2.3), which the generic transport endpoints also take.

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
        /// An enforcer asks for a decision.
        ArtifactSubmit = "artifact.submit",
        /// An approver decides.
        DecisionSubmit = "decision.submit",
        /// Something was refused.
        Error = "error",
    }

    /// The kinds of party.
    pub enum Actor {
        /// The enforcer.
        Enforcer = "HE",
        /// The approver.
        Approver = "MA",
        /// The gateway.
        Gateway = "GW",
    }
}

/// One message between two parties.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreEnvelope<'a, B = RawObject<'a>> {
    /// Names this envelope.
    pub envelope_id: EnvelopeId,
    /// What the body means.
    pub msg_type: CoreMsgType,
    /// Who says it.
    pub sender: Party,
    /// Who is meant.
    pub recipient: Party,
    /// When it was made, by its sender's clock.
    pub created_at: Timestamp,
    /// Determined by `msg_type`.
    pub body: B,
    /// Whatever helps to follow the message.
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

/// A sender or recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Party {
    /// Its kind.
    pub actor: Actor,
    /// The enforcer's or approver's id.
    pub device_id: DeviceId,
}

impl FromMembers<'_> for Party {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let party = Self { actor: members.required("actor")?, device_id: members.required("deviceId")? };
        members.close()?;
        Ok(party)
    }
}
