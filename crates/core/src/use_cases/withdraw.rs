//! An enforcer withdraws its request.

use countersign_wire::{
    exchange::{Accepted, ExchangeState},
    failure::Failure,
    id::{EnforcerId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
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
    store::{Change, Mailbox, Versioned},
    transitions::{ExchangeRef, before_expiry, new_delivery, remove_from_inboxes, transition_change},
};

// CONTRIBUTING: add an endpoint, step 3
impl Gateway {
    /// Withdraws what is still pending, and tells the approvers.
    pub async fn withdraw(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        request_id: &RequestId,
    ) -> Result<Accepted, Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let load = (exchange.record(), ());
        self.update_exchange(
            ReadFrom::Store,
            exchange,
            Viewer::Enforcer(enforcer),
            &load,
            |known, (), now| {
                let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
                match evaluate(Some(&known.value), Command::Withdraw, now) {
                    TransitionResult::Apply(_) => {
                        let accepted = Accepted {
                            request_id: request_id.clone(),
                            state: ExchangeState::Withdrawn,
                            artifact_hash: Some(known.value.artifact_hash),
                        };
                        let change = self.withdraw_change(&exchange, enforcer, known, now)?;
                        Ok(Evaluation::commit_and_ring(change, exchange.ring(), accepted))
                    }
                    TransitionResult::Rejected(error) => {
                        Ok(Evaluation::reject_if_unchanged(exchange.unchanged(known), error))
                    }
                    // Withdrawing either applies or is rejected.
                    _ => Err(Failure::Internal.into()),
                }
            },
        )
        .await
    }

    fn withdraw_change(
        &self,
        exchange: &ExchangeRef<'_>,
        enforcer: &EnforcerId,
        known: &Versioned<Exchange>,
        now: Timestamp,
    ) -> Result<Change, Error> {
        let next = Exchange { state: State::Withdrawn { at: now }, ..known.value.clone() };
        let actor = Actor::Enforcer(enforcer.as_str());
        let mut change = transition_change(exchange, Some(known), &next, &self.retention, actor)?;
        change.guards.push(before_expiry(&next));
        let key = exchange.key();
        remove_from_inboxes(&mut change, &key);
        for news in next.mailboxes.iter().filter_map(Mailbox::news) {
            let msg_id = self.random.msg_id(now);
            let withdrawn = new_delivery(&key, news, msg_id, MsgType::ExchangeWithdrawn, next.expires_at);
            change.deliveries.push(withdrawn);
        }
        Ok(change)
    }
}
