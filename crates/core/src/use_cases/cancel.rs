//! The operator ends a request.

use countersign_wire::{
    exchange::{Accepted, State as WireState},
    id::{RequestId, TenantId},
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    edges::{Actor, leave_inboxes, moving, not_expired},
    exchange::{Command, Edge, Exchange, Refusal, State, Verdict, judge},
    gateway::Attempt,
};

impl Gateway {
    /// Cancels what is still pending; again is as good as once.
    pub async fn cancel(&self, tenant: &TenantId, request_id: &RequestId) -> Result<Accepted, Error> {
        let named = named(tenant, request_id);
        loop {
            let looked = self.look_to_write(&named, Viewer::Operator, &[]).await?;
            let Some(known) = &looked.exchange else { return Err(Refusal::NotFound.into()) };
            let accepted = Accepted {
                request_id: request_id.clone(),
                state: WireState::Cancelled,
                artifact_hash: Some(known.value.artifact_hash),
            };
            match judge(Some(&known.value), Command::Cancel, looked.now) {
                Verdict::Go(Edge::Cancel) => {
                    let next = Exchange { state: State::Cancelled { at: looked.now }, ..known.value.clone() };
                    let mut change = moving(&named, Some(known), &next, &self.retention, Actor::Operator)?;
                    change.guards.push(not_expired(&next));
                    leave_inboxes(&mut change, &named.key());
                    if let Attempt::Done = self.commit(change, Some(named.ring())).await? {
                        return Ok(accepted);
                    }
                }
                Verdict::Refuse(refusal) => return self.refuse(&named, Some(known), refusal).await,
                _ => {
                    if self.still_stands(&named, known).await? {
                        return Ok(accepted);
                    }
                }
            }
        }
    }
}
