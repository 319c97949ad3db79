//! An enforcer waits for a decision.

use std::time::Duration;

use bytes::Bytes;
use countersign_wire::{
    exchange::State as WireState,
    id::{EnforcerId, MsgId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    exchange::{Command, Refusal, Verdict, judge},
};

/// What a wait came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// There is a decision.
    Decided {
        /// The message that carries it, where it has not been acknowledged yet.
        msg_id: Option<MsgId>,
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

/// A ring can be lost, so a wait also looks by itself from time to time.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

impl Gateway {
    /// Waits for the decision, for at most `patience`.
    pub async fn wait(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        request_id: &RequestId,
        patience: Duration,
    ) -> Result<Waited, Error> {
        let started = now();
        let deadline = started + patience;
        let named = named(tenant, request_id);
        // Subscribe before reading: a decision between the two would be missed.
        let mut listener = self.doorbell.listen(named.ring());
        loop {
            let looked = self.look(&named, Viewer::Enforcer(enforcer), &[]).await?;
            let Some(known) = looked.exchange else { return Err(Refusal::NotFound.into()) };
            let state = known.value.state_at(looked.now);
            match judge(Some(&known.value), Command::Wait, looked.now) {
                Verdict::Refuse(refusal) => return Err(refusal.into()),
                Verdict::Hold => {}
                Verdict::Nothing => {
                    sleep_until(deadline.min(started + HOLD)).await;
                    return Ok(Waited::Nothing { state: state.on_the_wire() });
                }
                _ => {
                    if let Some(waited) = self.decision_of(tenant, request_id, &state).await? {
                        return Ok(waited);
                    }
                }
            }
            if now() >= deadline {
                return Ok(Waited::Nothing { state: state.on_the_wire() });
            }
            let until_expiry = known.value.expires_at.since(looked.now);
            let look_again = now() + LOOK_AGAIN.min(until_expiry);
            // Whether it rang or not, the next thing to do is to look.
            drop(timeout_at(deadline.min(look_again), listener.rung()).await);
        }
    }

    async fn decision_of(
        &self,
        tenant: &TenantId,
        request_id: &RequestId,
        state: &crate::exchange::State,
    ) -> Result<Option<Waited>, Error> {
        let Some(decided) = state.decided() else { return Ok(None) };
        let Some(id) = decided.decision else { return Ok(None) };
        let deliveries = self.store.deliveries_about(tenant, request_id.as_str()).await?;
        let carries = |msg_type: &MsgType| *msg_type == MsgType::DecisionDeliver;
        let msg_id = deliveries.into_iter().find(|(_, delivery)| carries(&delivery.msg_type));
        let Some(decision) = self.store.payloads(tenant, &[id]).await?.pop().flatten() else {
            return Ok(None);
        };
        Ok(Some(Waited::Decided {
            msg_id: msg_id.map(|(_, delivery)| delivery.msg_id),
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
