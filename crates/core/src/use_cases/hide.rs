//! An approver removes a request from their own inbox. Nobody else notices, and it can still be decided.

use countersign_wire::{
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{Load, ReadFrom, Reading},
    model::{
        exchange::{Command, Exchange, MAX_NAMED_APPROVERS, TransitionError, TransitionResult, evaluate},
        viewer::Viewer,
    },
    store::{DeliveryQuery, Mailbox, Mark, MarkKind, Store, StoreError, Stored as _, Versioned},
    transitions::ExchangeRef,
};

impl Gateway {
    /// Hides a request from one approver's lists.
    pub async fn hide(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request_id: &RequestId,
    ) -> Result<(), Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let load = ExchangeAndMarks { exchange, approver };
        self.update_exchange(
            ReadFrom::Store,
            exchange,
            Viewer::Approver(approver),
            &load,
            |known, marks, now| {
                let Some(known) = known else { return Err(TransitionError::NotFound.into()) };
                let mut change = exchange.unchanged(known);
                if let TransitionResult::Rejected(error) = evaluate(Some(&known.value), Command::Hide, now) {
                    return Ok(Evaluation::reject_if_unchanged(change, error));
                }
                if marks.is_empty() || known.value.hidden_by.contains(approver) {
                    return Ok(Evaluation::reject_if_unchanged(change, TransitionError::NotFound));
                }
                change.marks = marks;
                // The record remembers it too, for the list of expired requests and for pushes.
                if known.value.hidden_by.len() < MAX_NAMED_APPROVERS {
                    let mut next = known.value.clone();
                    next.hidden_by.push(approver.clone());
                    change.puts.push(next.put(exchange.key())?);
                }
                let actor = Actor::Approver(approver.as_str());
                change.audit.push(audit::action(exchange.key(), actor, "inbox.hidden")?);
                Ok(Evaluation::commit(change, ()))
            },
        )
        .await
    }
}

/// An exchange, and one mark for each delivery of it that the approver still sees.
struct ExchangeAndMarks<'a> {
    exchange: ExchangeRef<'a>,
    approver: &'a ApproverId,
}

impl Load for ExchangeAndMarks<'_> {
    type Loaded = (Option<Versioned<Exchange>>, Vec<Mark>);

    async fn load(
        &self,
        reading: &Reading<'_>,
        tenant: &TenantId,
    ) -> Result<(Self::Loaded, Timestamp), StoreError> {
        let (known, now) = self.exchange.record().load(reading, tenant).await?;
        let marks = match &known {
            Some(_) => self.marks(reading.store, tenant).await?,
            None => Vec::new(),
        };
        Ok(((known, marks), now))
    }
}

impl ExchangeAndMarks<'_> {
    async fn marks(&self, store: &dyn Store, tenant: &TenantId) -> Result<Vec<Mark>, StoreError> {
        let mut marks = Vec::new();
        let request_id = self.exchange.request_id.as_str();
        for (mailbox, delivery) in store.deliveries_by_subject(tenant, request_id).await? {
            let reads = match &mailbox {
                Mailbox::Approver(owner) | Mailbox::ExpiredOfApprover(owner) => owner == self.approver,
                Mailbox::Shared | Mailbox::ExpiredShared => true,
                Mailbox::Enforcer(_) | Mailbox::News(_) | Mailbox::SharedNews => false,
            };
            if !reads || delivery.msg_type != MsgType::ApprovalRequest {
                continue;
            }
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after: delivery.number - 1,
                up_to: Some(delivery.number),
                limit: 1,
                unless_marked: Some((self.approver.clone(), MarkKind::Hidden)),
                only_relevant: false,
            };
            let visible = store.deliveries(tenant, query).await?.deliveries;
            if !visible.is_empty() {
                // Acknowledged too: what is hidden is not pushed again.
                for kind in [MarkKind::Hidden, MarkKind::Acknowledged] {
                    marks.push(Mark {
                        mailbox: mailbox.clone(),
                        number: delivery.number,
                        subject: delivery.subject.clone(),
                        reader: self.approver.clone(),
                        kind,
                    });
                }
            }
        }
        Ok(marks)
    }
}
