//! Answers of success: envelopes from the rows of 4.1, plain JSON elsewhere.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use countersign_core::delivery::message::{Message, Party};
use countersign_wire::{
    RawObject,
    envelope::{Envelope, Recipient, Sender},
    id::{MsgId, RequestId},
    msg_type::MsgType,
};
use serde::Serialize;

use super::PROTO_JSON;
use crate::{app::App, clock, secrets::SystemRandom};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The name of a message of the gateway's own.
pub(crate) fn new_msg_id() -> MsgId {
    let chance: &dyn countersign_core::random::RandomSource = &SystemRandom;
    chance.msg_id(clock::now())
}

impl App {
    /// An envelope of the gateway's own.
    pub(crate) fn envelope(
        &self,
        msg_type: MsgType,
        request_id: &RequestId,
        body: impl Serialize,
    ) -> Vec<u8> {
        let envelope = Envelope {
            msg_id: Some(new_msg_id()),
            msg_type,
            request_id: request_id.clone(),
            created_at: clock::now(),
            expires_at: None,
            sender: Sender { gateway_id: Some(self.gateway_id.clone()), ..Sender::default() },
            recipient: None,
            trace: None,
            body,
        };
        serde_json::to_vec(&envelope).unwrap_or_default()
    }

    /// The envelope of a message to one side. Body and trace are written byte for byte.
    pub(crate) fn message(&self, message: &Message, to: &Party) -> Option<Vec<u8>> {
        let mut sender = Sender { gateway_id: Some(self.gateway_id.clone()), ..Sender::default() };
        match &message.from {
            Party::Enforcer(enforcer) => sender.enforcer_id = Some(enforcer.clone()),
            Party::Approver(approver) => sender.approver_id = Some(approver.clone()),
        }
        let recipient = match to {
            Party::Enforcer(enforcer) => Recipient { enforcer_id: Some(enforcer.clone()), approver_id: None },
            Party::Approver(approver) => Recipient { enforcer_id: None, approver_id: Some(approver.clone()) },
        };
        let trace = message.trace.as_deref().map(RawObject::reread).transpose().ok()?;
        let envelope = Envelope {
            msg_id: Some(message.msg_id.clone()),
            msg_type: message.msg_type.clone(),
            request_id: message.request_id.clone(),
            created_at: message.created_at,
            expires_at: message.expires_at,
            sender,
            recipient: Some(recipient),
            trace,
            body: RawObject::reread(&message.body).ok()?,
        };
        // Room for all of it at once: growing would copy the body several times.
        let size = message.body.len() + message.trace.as_ref().map_or(0, Bytes::len) + AROUND;
        let mut text = Vec::with_capacity(size);
        serde_json::to_writer(&mut text, &envelope).ok()?;
        Some(text)
    }
}

/// What an envelope has around body and trace, unless its ids are long.
const AROUND: usize = 512;

/// An answer in the protocol's own media type.
pub(crate) fn proto(status: StatusCode, envelope: Vec<u8>) -> Response {
    with_type(status, PROTO_JSON, envelope)
}

/// An answer in plain JSON.
pub(crate) fn json(status: StatusCode, body: impl Serialize) -> Response {
    with_type(status, "application/json", serde_json::to_vec(&body).unwrap_or_default())
}

fn with_type(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Says that the answer is an earlier one.
pub(crate) fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}
