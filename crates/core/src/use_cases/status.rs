//! Either side, or the operator, reads the state of an exchange.

use bytes::Bytes;
use countersign_wire::{
    exchange::State as WireState,
    hash::Sha256Hex,
    id::{RequestId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::Gateway,
    model::{
        exchange::{Command, Seen, TransitionError, TransitionResult, evaluate},
        viewer::Viewer,
    },
    transitions::ExchangeRef,
};

/// An exchange as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSnapshot {
    pub state: WireState,
    /// The store's time of the submission.
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub artifact_hash: Sha256Hex,
    /// The decision as it was submitted; `None` in every state but decided and delivered.
    pub decision: Option<Bytes>,
    /// Which approvers have acknowledged the request, as the gateway knows it.
    pub seen: Vec<Seen>,
}

impl Gateway {
    /// The state of an exchange, for a viewer that may see it.
    pub async fn status(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
    ) -> Result<ExchangeSnapshot, Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let (known, state) = loop {
            let (known, now) = self.read_exchange(exchange, viewer).await?;
            let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
            if let TransitionResult::Rejected(error) = evaluate(Some(&known.value), Command::Status, now) {
                return Err(error.into());
            }
            // Write the expiry before it is told: what is told as expired must not be decided a moment later.
            if known.value.is_overdue(now) {
                self.expire(exchange, &known).await?;
                continue;
            }
            let state = known.value.state_at(now);
            // Don't tell of a decision that a failover could undo.
            if state.decided().is_none()
                || self.confirm_unchanged(tenant, &exchange.key(), known.version).await?
            {
                break (known, state);
            }
        };
        let decision = match state.decided().and_then(|decided| decided.decision) {
            Some(id) => self.store.payloads(tenant, &[id]).await?.pop().flatten(),
            None => None,
        };
        Ok(ExchangeSnapshot {
            state: state.to_wire(),
            created_at: known.value.created_at,
            expires_at: known.value.expires_at,
            artifact_hash: known.value.artifact_hash,
            decision,
            seen: known.value.seen,
        })
    }
}
