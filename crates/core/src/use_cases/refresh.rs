//! An approver asks the enforcer to submit again.

use std::time::Duration;

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
    refresh::RefreshBody,
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::ReadFrom,
    model::{
        exchange::{Command, Exchange, TransitionError, TransitionResult, evaluate},
        viewer::Viewer,
    },
    store::{Change, Mailbox, NewDelivery, Removal, StoreError, Stored as _, Versioned},
    transitions::{ExchangeRef, new_delivery},
};

/// An enforcer that has not reconnected after this does not get the request any more.
const LIFE: Duration = Duration::from_hours(24);

impl Gateway {
    /// Puts a `refresh.request` into the enforcer's mailbox.
    pub async fn refresh(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request_id: &RequestId,
        body: &RefreshBody,
    ) -> Result<(), Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let text = Bytes::from(serde_json::to_vec(body).map_err(StoreError::corrupt)?);
        let load = (exchange.record(), ());
        self.update_exchange(
            ReadFrom::Store,
            exchange,
            Viewer::Approver(approver),
            &load,
            |known, (), now| {
                let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
                if let TransitionResult::Rejected(error) = evaluate(Some(&known.value), Command::Refresh, now)
                {
                    return Ok(Evaluation::reject_if_unchanged(exchange.unchanged(known), error));
                }
                // One that the enforcer has not acknowledged, and that is still delivered, says the same.
                let is_outstanding = known.value.refresh.is_some()
                    && known.value.refreshed_at.is_some_and(|last| now < last.plus(LIFE));
                if is_outstanding {
                    return Ok(Evaluation::commit(exchange.unchanged(known), ()));
                }
                let actor = Actor::Approver(approver.as_str());
                Ok(Evaluation::commit(self.refresh_change(&exchange, actor, known, text.clone(), now)?, ()))
            },
        )
        .await
    }

    fn refresh_change(
        &self,
        exchange: &ExchangeRef<'_>,
        actor: Actor<'_>,
        known: &Versioned<Exchange>,
        body: Bytes,
        now: Timestamp,
    ) -> Result<Change, Error> {
        let key = exchange.key();
        let payload = self.random.payload_id(now);
        let next = Exchange { refreshed_at: Some(now), refresh: Some(payload), ..known.value.clone() };
        let mut change = exchange.unchanged(known);
        change.puts.push(next.put(key.clone())?);
        change.audit.push(audit::action(key.clone(), actor, "refresh.requested")?);
        // An earlier one that is no longer delivered is replaced.
        let msg_types = vec![MsgType::RefreshRequest];
        change.removals.push(Removal::BySubject { subject: key.clone(), msg_types });
        change.drop_payloads.extend(known.value.refresh);
        change.payloads.push((payload, body));
        let enforcer = Mailbox::Enforcer(next.enforcer.clone());
        let msg_id = self.random.msg_id(now);
        let delivery = new_delivery(&key, enforcer, msg_id, MsgType::RefreshRequest, now.plus(LIFE));
        change.deliveries.push(NewDelivery { payload: Some(payload), ..delivery });
        Ok(change)
    }
}
