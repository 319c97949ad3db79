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
        let envelope = Envelope {
            msg_id: Some(new_msg_id()),
            msg_type,
            request_id: request_id.clone(),
            created_at: clock::now(),
            expires_at: None,
            sender: Sender { gateway_id: Some(self.gateway_id.clone()), ..Sender::default() },
            recipient: None,
            trace,
            body,
        };
        serde_json::to_vec(&envelope).map_err(|error| ApiError::internal(&error))
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
        // Allocate once: growing would copy the body several times.
        let size = message.body.len() + message.trace.as_ref().map_or(0, Bytes::len) + ENVELOPE_OVERHEAD;
        let mut text = Vec::with_capacity(size);
        serde_json::to_writer(&mut text, &envelope).ok()?;
        Some(text)
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

/// Bytes that an envelope has around body and trace, unless its ids are long.
const ENVELOPE_OVERHEAD: usize = 512;
