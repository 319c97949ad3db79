//! Envelopes that go out: answers, errors, messages.

use bytes::Bytes;
use countersign_core::delivery::message::{Message, Party};
use countersign_wire::{
    RawObject,
    envelope::{Envelope, Recipient, Sender},
    failure::GatewayError,
    id::RequestId,
    msg_type::MsgType,
};
use serde::Serialize;

use crate::{
    clock,
    error::ApiError,
    ids::{HttpRequestId, new_msg_id},
    state::AppState,
};

impl AppState {
    /// An envelope that the gateway itself sends.
    pub(crate) fn envelope(
        &self,
        msg_type: MsgType,
        request_id: &RequestId,
        body: impl Serialize,
    ) -> Result<Vec<u8>, ApiError> {
        self.envelope_with_trace(msg_type, request_id, body, None)
    }

    /// As [`AppState::envelope`], with what the specification has no member for.
    pub(crate) fn envelope_with_trace(
        &self,
        msg_type: MsgType,
        request_id: &RequestId,
        body: impl Serialize,
        trace: Option<RawObject<'_>>,
    ) -> Result<Vec<u8>, ApiError> {
        let envelope = self.gateway_envelope(msg_type, request_id, body, trace);
        serde_json::to_vec(&envelope).map_err(|error| ApiError::internal(&error))
    }

    /// An envelope that the gateway itself sends, up to its body; what follows is the body and [`END`].
    pub(crate) fn envelope_head(
        &self,
        msg_type: MsgType,
        request_id: &RequestId,
    ) -> Result<Vec<u8>, ApiError> {
        head(&self.gateway_envelope(msg_type, request_id, (), None), 0)
    }

    fn gateway_envelope<'a, B>(
        &self,
        msg_type: MsgType,
        request_id: &RequestId,
        body: B,
        trace: Option<RawObject<'a>>,
    ) -> Envelope<'a, B> {
        Envelope {
            msg_id: Some(new_msg_id()),
            msg_type,
            request_id: request_id.clone(),
            created_at: clock::now(),
            expires_at: None,
            sender: Sender { gateway_id: Some(self.gateway_id.clone()), ..Sender::default() },
            recipient: None,
            trace,
            body,
        }
    }

    /// The envelope of a message to one side. Body and trace are written byte for byte. The body is not parsed again,
    /// which would cost as much as everything else: it was checked when it was taken in.
    pub(crate) fn message(&self, message: &Message, to: &Party) -> Result<Vec<u8>, ApiError> {
        let mut sender = Sender { gateway_id: Some(self.gateway_id.clone()), ..Sender::default() };
        match &message.from {
            Party::Enforcer(enforcer) => sender.enforcer_id = Some(enforcer.clone()),
            Party::Approver(approver) => sender.approver_id = Some(approver.clone()),
        }
        let recipient = match to {
            Party::Enforcer(enforcer) => Recipient { enforcer_id: Some(enforcer.clone()), approver_id: None },
            Party::Approver(approver) => Recipient { enforcer_id: None, approver_id: Some(approver.clone()) },
        };
        let trace = message.trace.as_deref().map(RawObject::reread).transpose();
        let trace = trace.map_err(|error| ApiError::internal(&error))?;
        let envelope = Envelope {
            msg_id: Some(message.msg_id.clone()),
            msg_type: message.msg_type.clone(),
            request_id: message.request_id.clone(),
            created_at: message.created_at,
            expires_at: message.expires_at,
            sender,
            recipient: Some(recipient),
            trace,
            body: (),
        };
        // Allocate once: growing would copy the body several times.
        let size = message.body.len() + message.trace.as_ref().map_or(0, Bytes::len) + ENVELOPE_OVERHEAD;
        let mut text = head(&envelope, size)?;
        text.extend_from_slice(&message.body);
        text.extend_from_slice(END);
        Ok(text)
    }

    /// The `error` envelope; without a subject it carries the id of the HTTP request.
    pub(crate) fn error_envelope(&self, error: &ApiError, http_id: &HttpRequestId) -> Vec<u8> {
        let failure = error.failure();
        let body = GatewayError {
            code: failure.code().to_owned(),
            message: failure.message().to_owned(),
            retryable: failure.retryable(),
            request_id: error.subject().cloned(),
            details: error.details(),
        };
        let request_id = error.subject().cloned().unwrap_or_else(|| http_id.as_request_id());
        // Without a body it still is the error that its status or its connection's end says it is.
        self.envelope(MsgType::Error, &request_id, body).unwrap_or_default()
    }
}

/// What follows the body of an envelope, which is its last member.
pub(crate) const END: &[u8] = b"}";

/// The text of an envelope up to its body, with room for so many bytes.
fn head(envelope: &Envelope<'_, ()>, capacity: usize) -> Result<Vec<u8>, ApiError> {
    let mut text = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut text, envelope).map_err(|error| ApiError::internal(&error))?;
    text.truncate(text.len() - b"null}".len());
    Ok(text)
}

/// Bytes that an envelope has around body and trace, unless its ids are long.
const ENVELOPE_OVERHEAD: usize = 512;
