//! An enforcer waits for a decision.

use std::time::Duration;

use bytes::Bytes;
use countersign_wire::{
    exchange::ExchangeState,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    timestamp::Timestamp,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{
    error::Error,
    gateway::Gateway,
    model::{
        exchange::{Command, Exchange, State, TransitionError, TransitionResult, evaluate},
        viewer::Viewer,
    },
    transitions::ExchangeRef,
};

/// What a wait came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOutcome {
    Decided {
        /// The id of the `decision.deliver`, as on any other channel.
        msg_id: MsgId,
        enforcer: EnforcerId,
        approver: ApproverId,
        /// The decision as it was submitted.
        decision: Bytes,
        /// The store's time of the submission.
        at: Timestamp,
        /// The decision's own expiry.
        expires_at: Timestamp,
    },
    /// The timeout passed, or the exchange ended without a decision.
    NotDecided { state: ExchangeState },
}

/// What a wait does after it has read its exchange.
enum WaitStep {
    Decided(WaitOutcome),
    Ended {
        state: ExchangeState,
    },
    Pending {
        state: ExchangeState,
        until_expiry: Duration,
    },
    /// The exchange is another one by now: read again.
    Changed,
}

/// A wait on an exchange that ended without a decision is answered after this, so that a naive loop can't spin.
const MIN_ANSWER_TIME: Duration = Duration::from_secs(1);

impl Gateway {
    /// Waits for the decision, for at most `timeout`.
    pub async fn wait(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
        timeout: Duration,
    ) -> Result<WaitOutcome, Error> {
        let started = now();
        let deadline = started + timeout;
        let exchange = ExchangeRef::new(tenant, request_id);
        // Listen before reading: a decision between the two would be missed.
        let listener = self.listen(vec![exchange.ring()]);
        loop {
            // Boxed: an idle wait does not carry the memory for it, nor the exchange.
            let (state, until_expiry) = match Box::pin(self.next_step(exchange, viewer)).await? {
                WaitStep::Decided(decided) => return Ok(decided),
                WaitStep::Pending { state, until_expiry } => (state, until_expiry),
                WaitStep::Changed => continue,
                WaitStep::Ended { state } => {
                    sleep_until(deadline.min(started + MIN_ANSWER_TIME)).await;
                    return Ok(WaitOutcome::NotDecided { state });
                }
            };
            if now() >= deadline {
                return Ok(WaitOutcome::NotDecided { state });
            }
            // Whether it rang or the time is up, the next step is to read again.
            drop(timeout_at(deadline.min(now() + until_expiry), listener.rung()).await);
        }
    }

    /// Reads the exchange. What it returns is durable.
    async fn next_step(&self, exchange: ExchangeRef<'_>, viewer: Viewer<'_>) -> Result<WaitStep, Error> {
        let (known, now) = self.read_exchange(exchange, viewer).await?;
        let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
        // Write the expiry before it is told: what is told as expired must not be decided a moment later.
        if known.value.is_overdue(now) {
            self.expire(exchange, &known).await?;
            return Ok(WaitStep::Changed);
        }
        let state = known.value.state_at(now);
        let pending =
            WaitStep::Pending { state: state.to_wire(), until_expiry: known.value.expires_at.since(now) };
        let result = evaluate(Some(&known.value), Command::Wait, now);
        match result {
            TransitionResult::Rejected(error) => return Err(error.into()),
            TransitionResult::NotYet => return Ok(pending),
            TransitionResult::EndedWithout | TransitionResult::Apply(_) | TransitionResult::Unchanged => {}
        }
        // Don't tell of a decision, or of an end, that a failover could undo.
        if !self.confirm_unchanged(exchange.tenant, &exchange.key(), known.version).await? {
            return Ok(WaitStep::Changed);
        }
        if matches!(result, TransitionResult::EndedWithout) {
            return Ok(WaitStep::Ended { state: state.to_wire() });
        }
        let decided = self.decision_of(exchange.tenant, &known.value, &state).await?;
        Ok(decided.map_or(pending, WaitStep::Decided))
    }

    async fn decision_of(
        &self,
        tenant: &TenantId,
        exchange: &Exchange,
        state: &State,
    ) -> Result<Option<WaitOutcome>, Error> {
        let Some(decided) = state.decided() else { return Ok(None) };
        let Some(id) = decided.decision else { return Ok(None) };
        let Some(decision) = self.store.payloads(tenant, &[id]).await?.pop().flatten() else {
            return Ok(None);
        };
        Ok(Some(WaitOutcome::Decided {
            msg_id: decided.msg_id.clone(),
            enforcer: exchange.enforcer.clone(),
            approver: decided.by.clone(),
            decision,
            at: decided.at,
            expires_at: decided.expires_at,
        }))
    }
}

/// The runtime's time, which tests can pause. It measures timeouts, never expiry.
fn now() -> Instant {
    Instant::now()
}
