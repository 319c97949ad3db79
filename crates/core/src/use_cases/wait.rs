//! An enforcer waits for a decision.

use std::time::Duration;

use bytes::Bytes;
use countersign_wire::{
    exchange::State as WireState,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    timestamp::Timestamp,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    exchange::{Command, Exchange, Refusal, State, Verdict, judge},
};

/// What a wait came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// There is a decision.
    Decided {
        /// The message that carries it.
        msg_id: MsgId,
        /// Who asked.
        enforcer: EnforcerId,
        /// Who decided.
        approver: ApproverId,
        /// As it was submitted.
        decision: Bytes,
        /// When the store took it in.
        at: Timestamp,
        /// From when on it is void.
        expires_at: Timestamp,
    },
    /// There is none.
    Nothing {
        /// How the exchange stands.
        state: WireState,
    },
}

/// A wait on what ended without a decision is held for this long, so that a naive loop can't spin.
const HOLD: Duration = Duration::from_secs(1);

impl Gateway {
    /// Waits for the decision, for at most `patience`.
    pub async fn wait(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
        patience: Duration,
    ) -> Result<Waited, Error> {
        let started = now();
        let deadline = started + patience;
        let named = named(tenant, request_id);
        // Subscribe before reading: a decision between the two would be missed.
        let listener = self.doorbell.listen(vec![named.ring()]);
        loop {
            // Boxed, like what follows: a wait at rest does not carry the room for it.
            let looked = Box::pin(self.look(&named, viewer, &[])).await?;
            let Some(known) = looked.exchange else { return Err(Refusal::NotFound.into()) };
            let state = known.value.state_at(looked.now);
            match judge(Some(&known.value), Command::Wait, looked.now) {
                Verdict::Refuse(refusal) => return Err(refusal.into()),
                Verdict::Hold => {}
                Verdict::Nothing => {
                    sleep_until(deadline.min(started + HOLD)).await;
                    return Ok(Waited::Nothing { state: state.on_the_wire() });
                }
                // A decision that a failover could undo is not told.
                _ if !Box::pin(self.confirm(tenant, &named.key(), known.version)).await? => continue,
                _ => {
                    if let Some(waited) = Box::pin(self.decision_of(tenant, &known.value, &state)).await? {
                        return Ok(waited);
                    }
                }
            }
            if now() >= deadline {
                return Ok(Waited::Nothing { state: state.on_the_wire() });
            }
            let until_expiry = known.value.expires_at.since(looked.now);
            // Whether it rang or its time is up, the next thing to do is to look.
            drop(timeout_at(deadline.min(now() + until_expiry), listener.rung()).await);
        }
    }

    async fn decision_of(
        &self,
        tenant: &TenantId,
        exchange: &Exchange,
        state: &State,
    ) -> Result<Option<Waited>, Error> {
        let Some(decided) = state.decided() else { return Ok(None) };
        let Some(id) = decided.decision else { return Ok(None) };
        let Some(decision) = self.store.payloads(tenant, &[id]).await?.pop().flatten() else {
            return Ok(None);
        };
        Ok(Some(Waited::Decided {
            msg_id: decided.msg_id.clone(),
            enforcer: exchange.enforcer.clone(),
            approver: decided.by.clone(),
            decision,
            at: decided.at,
            expires_at: decided.expires_at,
        }))
    }
}

/// The runtime's time, which tests can pause. It measures patience, never expiry.
fn now() -> Instant {
    Instant::now()
}
