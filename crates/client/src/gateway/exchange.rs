//! Where an exchange stands, by the gateway's word.

use countersign_wire::{
    exchange::{ExchangeState, ExchangeStatus},
    hash::Sha256Hex,
    id::RequestId,
    timestamp::Timestamp,
};
use tokio::time::Instant;

use crate::gateway::http::{Answer, Call, CallError, Http, segment};

/// What the gateway says of an exchange. Nothing of it is proven, so it can end a wait and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExchangeWord {
    pub(crate) state: ExchangeState,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// The hash of what was submitted, if it is said.
    pub(crate) artifact_hash: Option<Sha256Hex>,
    /// The decision as the gateway has it, which nobody has checked; `None` before there is one.
    pub(crate) decision: Option<String>,
}

impl ExchangeWord {
    /// Whether somebody has decided, by the gateway's word.
    pub(crate) fn is_decided(&self) -> bool {
        matches!(self.state, ExchangeState::Decided | ExchangeState::Delivered)
    }

    /// Whether the decision that the gateway has is the one with this signature.
    pub(crate) fn has_signature(&self, signature: &str) -> bool {
        let decision = self.decision.as_deref().and_then(|text| serde_json::from_str(text).ok());
        decision.is_some_and(|decision: serde_json::Value| decision["signature"] == signature)
    }

    fn read(answer: &Answer, request_id: &RequestId) -> Result<Self, CallError> {
        let envelope = answer.envelope()?;
        let status = envelope.body.view::<ExchangeStatus<'_>>().map_err(|_| CallError::NotUnderstood)?;
        if status.request_id != *request_id {
            return Err(CallError::NotUnderstood);
        }
        Ok(Self {
            state: status.state,
            created_at: status.created_at,
            expires_at: status.expires_at,
            artifact_hash: status.artifact_hash,
            decision: status.decision.map(|decision| decision.as_str().to_owned()),
        })
    }
}

impl Http {
    /// Asks where an exchange stands, again and again until the deadline.
    pub(crate) async fn exchange(
        &self,
        request_id: &RequestId,
        until: Instant,
    ) -> Result<ExchangeWord, CallError> {
        ExchangeWord::read(&self.send_until(&of(request_id), until).await?, request_id)
    }

    /// Asks where an exchange stands, once.
    pub(crate) async fn exchange_once(&self, request_id: &RequestId) -> Result<ExchangeWord, CallError> {
        ExchangeWord::read(&self.send(&of(request_id)).await?, request_id)
    }
}

fn of(request_id: &RequestId) -> Call {
    Call::get(format!("/v1/exchanges/{}", segment(request_id.as_str())))
}
