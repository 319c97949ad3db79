//! An object with or without an envelope around it, as the generic endpoints (section 4.5) take it.

use crate::{
    Error, RawObject,
    core_envelope::{Actor, CoreEnvelope, CoreMsgType, Party},
    envelope::{Envelope, Recipient, Sender},
    id::RequestId,
    msg_type::MsgType,
    timestamp::Timestamp,
};

/// What an envelope says of its body; everything optional, since there may be no envelope.
#[derive(Debug, Clone)]
pub struct Framed<'a> {
    /// What the body is said to be.
    pub msg_type: Option<MsgType>,
    /// What it is about.
    pub request_id: Option<RequestId>,
    /// From when on it is void.
    pub expires_at: Option<Timestamp>,
    /// Who says it.
    pub sender: Sender,
    /// Who is meant.
    pub recipient: Recipient,
    /// Whatever helps to follow it.
    pub trace: Option<RawObject<'a>>,
    /// The object.
    pub body: RawObject<'a>,
}

impl<'a> Framed<'a> {
    /// Reads a text: a core envelope has an `envelopeId`, a gateway envelope a `msgType`, a bare object neither.
    pub fn parse(text: &'a [u8]) -> Result<Self, Error> {
        let object = RawObject::parse(text)?;
        let members = object.members()?;
        if members.contains("envelopeId") {
            Ok(object.view::<CoreEnvelope<'a>>()?.into_view().into())
        } else if members.contains("msgType") {
            Ok(object.view::<Envelope<'a>>()?.into_view().into())
        } else {
            Ok(Self::bare(object))
        }
    }

    /// An object without an envelope.
    pub fn bare(body: RawObject<'a>) -> Self {
        Self {
            msg_type: None,
            request_id: None,
            expires_at: None,
            sender: Sender::default(),
            recipient: Recipient::default(),
            trace: None,
            body,
        }
    }
}

impl<'a> From<Envelope<'a>> for Framed<'a> {
    fn from(envelope: Envelope<'a>) -> Self {
        Self {
            msg_type: Some(envelope.msg_type),
            request_id: Some(envelope.request_id),
            expires_at: envelope.expires_at,
            sender: envelope.sender,
            recipient: envelope.recipient.unwrap_or_default(),
            trace: envelope.trace,
            body: envelope.body,
        }
    }
}

impl<'a> From<CoreEnvelope<'a>> for Framed<'a> {
    fn from(envelope: CoreEnvelope<'a>) -> Self {
        let msg_type = match envelope.msg_type {
            CoreMsgType::ArtifactSubmit => MsgType::ArtifactSubmit,
            CoreMsgType::DecisionSubmit => MsgType::DecisionSubmit,
            CoreMsgType::Error => MsgType::Error,
        };
        let sender = sides(&envelope.sender);
        let recipient = sides(&envelope.recipient);
        Self {
            msg_type: Some(msg_type),
            request_id: None,
            expires_at: None,
            recipient: Recipient { enforcer_id: recipient.enforcer_id, approver_id: recipient.approver_id },
            sender,
            trace: envelope.trace,
            body: envelope.body,
        }
    }
}

/// The actor of a core envelope says what its device is. All ids have one shape, so none is lost.
fn sides(party: &Party) -> Sender {
    let device = party.device_id.as_str();
    match party.actor {
        Actor::Enforcer => Sender { enforcer_id: device.parse().ok(), ..Sender::default() },
        Actor::Approver => Sender { approver_id: device.parse().ok(), ..Sender::default() },
        Actor::Gateway => Sender { gateway_id: device.parse().ok(), ..Sender::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_in_each_frame_and_in_none() {
        let bare = br#"{"requestId":"r","x":1}"#;
        let core = br#"{"envelopeId":"e","msgType":"artifact.submit","sender":{"actor":"HE","deviceId":"robot"},"recipient":{"actor":"MA","deviceId":"ada"},"createdAt":"2026-01-01T00:00:00Z","body":{"requestId":"r","x":1}}"#;
        let gateway = br#"{"msgType":"artifact.submit","requestId":"r","sender":{"enforcerId":"robot"},"recipient":{"approverId":"ada"},"createdAt":"2026-01-01T00:00:00Z","body":{"requestId":"r","x":1}}"#;
        for (text, framed) in [(bare.as_slice(), false), (core, true), (gateway, true)] {
            let read = Framed::parse(text).unwrap();
            assert_eq!(read.body.as_str().as_bytes(), bare);
            assert_eq!(read.msg_type.is_some(), framed);
            assert_eq!(read.sender.enforcer_id.is_some(), framed);
            assert_eq!(read.recipient.approver_id.is_some(), framed);
        }
    }

    #[test]
    fn a_broken_frame_is_not_taken_for_a_bare_object() {
        assert!(Framed::parse(br#"{"msgType":"artifact.submit","body":{}}"#).is_err());
        assert!(Framed::parse(br#"{"envelopeId":"e","body":{}}"#).is_err());
    }
}
