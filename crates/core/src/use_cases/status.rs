//! Either side, or the operator, reads the state of an exchange.

use bytes::Bytes;
use countersign_wire::{
    exchange::ExchangeState,
    hash::Sha256Hex,
    id::{ApproverId, RequestId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::Gateway,
    model::{
        exchange::{Command, Exchange, Seen, State, TransitionError, TransitionResult, evaluate},
        notification::Notified,
        viewer::Viewer,
    },
    store::Mailbox,
    transitions::ExchangeRef,
};

/// An exchange as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeSnapshot {
    pub state: ExchangeState,
    /// The store's time of the submission.
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub artifact_hash: Sha256Hex,
    /// The decision as it was submitted; `None` in every state but decided and delivered.
    pub decision: Option<Bytes>,
    /// Which approvers have acknowledged the request, as the gateway knows it.
    pub seen: Vec<Seen>,
}

/// How far a request has come, as the gateway knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub state: ExchangeState,
    pub approvers: Vec<ApproverProgress>,
}

/// How far a request has come with one approver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverProgress {
    pub approver: ApproverId,
    /// When it was put into the approver's mailbox and pushed to the channels that were open.
    pub rung: Timestamp,
    /// The first acknowledgement.
    pub received: Option<Timestamp>,
    /// The first acknowledgement that said `seen`.
    pub seen: Option<Timestamp>,
    /// What became of notifications outside of the protocol, one for each channel.
    pub notified: Vec<Notified>,
}

impl Gateway {
    /// The state of an exchange, for a viewer that may see it.
    pub async fn status(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
    ) -> Result<ExchangeSnapshot, Error> {
        let (known, state) = self.current(tenant, viewer, request_id).await?;
        let decision = match state.decided().and_then(|decided| decided.decision) {
            Some(id) => self.store.payloads(tenant, &[id]).await?.pop().flatten(),
            None => None,
        };
        Ok(ExchangeSnapshot {
            state: state.to_wire(),
            created_at: known.created_at,
            expires_at: known.expires_at,
            artifact_hash: known.artifact_hash,
            decision,
            seen: known.seen,
        })
    }

    /// How far a request has come with each of its approvers, for a viewer that may see it.
    pub async fn progress(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
    ) -> Result<Progress, Error> {
        let (known, state) = self.current(tenant, viewer, request_id).await?;
        Ok(Progress { state: state.to_wire(), approvers: approvers(&known) })
    }

    /// An exchange and its state. If that is an end, no failover undoes it.
    async fn current(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
    ) -> Result<(Exchange, State), Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        loop {
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
            // Don't tell of an end that a failover could undo: what was withdrawn could be decided then.
            if state == State::Pending
                || self.confirm_unchanged(tenant, &exchange.key(), known.version).await?
            {
                return Ok((known.value, state));
            }
        }
    }
}

fn notified(exchange: &Exchange, approver: &ApproverId) -> Vec<Notified> {
    let log = exchange.notifying.iter().flat_map(|notifying| &notifying.log);
    log.filter(|notified| notified.approver == *approver).cloned().collect()
}

/// A request is put into mailboxes, and rings at them, in the commit that creates it, or when it is somebody's turn.
fn rung_at(exchange: &Exchange, approver: &ApproverId) -> Timestamp {
    let turn = exchange.turns.iter().find(|turn| turn.approver == *approver);
    turn.and_then(|turn| turn.begun_at).unwrap_or(exchange.created_at)
}

/// Everybody that the request is addressed to, then others of the shared mailbox: who have acknowledged it or were notified.
fn approvers(exchange: &Exchange) -> Vec<ApproverProgress> {
    let addressed = exchange.mailboxes.iter().filter_map(|mailbox| match mailbox {
        Mailbox::Approver(approver) => Some(approver),
        _ => None,
    });
    let mut all: Vec<ApproverProgress> = Vec::new();
    let acknowledged = exchange.seen.iter().map(|seen| &seen.approver);
    let notified_too = exchange.notifying.iter().flat_map(|it| &it.log).map(|notified| &notified.approver);
    for approver in addressed.chain(acknowledged).chain(notified_too) {
        if all.iter().any(|known| known.approver == *approver) {
            continue;
        }
        let seen = exchange.seen.iter().find(|seen| seen.approver == *approver);
        all.push(ApproverProgress {
            approver: approver.clone(),
            rung: rung_at(exchange, approver),
            received: seen.map(|seen| seen.received_at.unwrap_or(seen.at)),
            seen: seen.and_then(|seen| seen.seen_at),
            notified: notified(exchange, approver),
        });
    }
    all
}
