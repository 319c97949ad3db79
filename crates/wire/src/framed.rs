//! An object with or without an envelope, as the generic endpoints (docs/protocol.md#generic-endpoints) accept it.

use crate::{
    Error, RawObject,
    core_envelope::{Actor, CoreEnvelope, CoreMsgType, Party},
    envelope::{Envelope, Recipient, Sender},
    id::RequestId,
    msg_type::MsgType,
    timestamp::Timestamp,
};

/// A body with the fields of its envelope, all optional because there may be no envelope.
#[derive(Debug, Clone)]
pub struct Framed<'a> {
    /// The message type; absent in a bare object.
    pub msg_type: Option<MsgType>,
    /// The exchange or prompt; absent in a core envelope and in a bare object.
    pub request_id: Option<RequestId>,
    /// The time from which the message must be ignored; absent in a core envelope and in a bare object.
    pub expires_at: Option<Timestamp>,
    /// The claimed sender, empty in a bare object; the credential decides.
    pub sender: Sender,
    /// The addressee; empty if none is named.
    pub recipient: Recipient,
    /// Tracing data, and routing keys of an open artifact; absent in a bare object.
    pub trace: Option<RawObject<'a>>,
    /// The body as it was written.
    pub body: RawObject<'a>,
}

impl<'a> Framed<'a> {
    /// Parses a text: a core envelope has an `envelopeId`, a gateway envelope a `msgType`, a bare object neither.
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

    /// Wraps an object that has no envelope.
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
        let sender = ids_of(&envelope.sender);
        let recipient = ids_of(&envelope.recipient);
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

/// The actor of a core envelope determines the kind of its `deviceId`. All kinds of id have the same rules, so parsing
/// it as another kind can't fail.
fn ids_of(party: &Party) -> Sender {
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
    fn a_broken_envelope_is_not_read_as_a_bare_object() {
        assert!(Framed::parse(br#"{"msgType":"artifact.submit","body":{}}"#).is_err());
        assert!(Framed::parse(br#"{"envelopeId":"e","body":{}}"#).is_err());
    }
}
