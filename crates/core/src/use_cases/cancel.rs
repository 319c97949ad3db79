//! The operator cancels a request.

use countersign_wire::{
    exchange::{Accepted, ExchangeState},
    id::{RequestId, TenantId},
};

use crate::{
    audit::Actor,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::ReadFrom,
    model::{
        exchange::{Command, Exchange, State, TransitionError, TransitionResult, evaluate},
        viewer::Viewer,
    },
    transitions::{ExchangeRef, before_expiry, remove_from_inboxes, transition_change},
};

impl Gateway {
    /// Cancels what is still pending. Idempotent.
    pub async fn cancel(&self, tenant: &TenantId, request_id: &RequestId) -> Result<Accepted, Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let load = (exchange.record(), ());
        self.update_exchange(ReadFrom::Store, exchange, Viewer::Operator, &load, |known, (), now| {
            let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
            let accepted = Accepted {
                request_id: request_id.clone(),
                state: ExchangeState::Cancelled,
                artifact_hash: Some(known.value.artifact_hash),
            };
            match evaluate(Some(&known.value), Command::Cancel, now) {
                TransitionResult::Apply(_) => {
                    let next = Exchange { state: State::Cancelled { at: now }, ..known.value.clone() };
                    let actor = Actor::Operator;
                    let mut change =
                        transition_change(&exchange, Some(known), &next, &self.retention, actor)?;
                    change.guards.push(before_expiry(&next));
                    remove_from_inboxes(&mut change, &exchange.key());
                    Ok(Evaluation::commit_and_ring(change, exchange.ring(), accepted))
                }
                TransitionResult::Rejected(error) => {
                    Ok(Evaluation::reject_if_unchanged(exchange.unchanged(known), error))
                }
                TransitionResult::Unchanged | TransitionResult::NotYet | TransitionResult::EndedWithout => {
                    Ok(Evaluation::commit(exchange.unchanged(known), accepted))
                }
            }
        })
        .await
    }
}
