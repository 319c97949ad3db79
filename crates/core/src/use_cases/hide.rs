//! An approver takes a request out of their own inbox. Nobody else notices, and it can still be decided.

use countersign_wire::{
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    edges::{Actor, note},
    exchange::{Command, Refusal, Verdict, judge},
    gateway::Attempt,
    store::{Change, DeliveryQuery, Mailbox, Mark, MarkKind},
    stored::unchanged,
};

impl Gateway {
    /// Hides a request from one approver's lists.
    pub async fn hide(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request_id: &RequestId,
    ) -> Result<(), Error> {
        let named = named(tenant, request_id);
        loop {
            let looked = self.look_to_write(&named, Viewer::Approver(approver), &[]).await?;
            let Some(known) = &looked.exchange else { return Err(Refusal::NotFound.into()) };
            if let Verdict::Refuse(refusal) = judge(Some(&known.value), Command::Hide, looked.now) {
                return self.refuse(&named, Some(known), refusal).await;
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(named.key(), Some(known)));
            change.marks = self.marks_to_hide(tenant, approver, request_id).await?;
            if change.marks.is_empty() {
                return self.refuse(&named, Some(known), Refusal::NotFound).await;
            }
            change.audit.push(note(named.key(), Actor::Approver(approver.as_str()), "inbox.hidden")?);
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(());
            }
        }
    }

    /// One mark for each place where the approver still sees the request.
    async fn marks_to_hide(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request_id: &RequestId,
    ) -> Result<Vec<Mark>, Error> {
        let mut marks = Vec::new();
        for (mailbox, delivery) in self.store.deliveries_about(tenant, request_id.as_str()).await? {
            let reads = match &mailbox {
                Mailbox::Approver(owner) | Mailbox::ExpiredOfApprover(owner) => owner == approver,
                Mailbox::Shared | Mailbox::ExpiredShared => true,
                Mailbox::Enforcer(_) | Mailbox::News(_) | Mailbox::SharedNews => false,
            };
            if !reads || delivery.msg_type != MsgType::ApprovalRequest {
                continue;
            }
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after: delivery.number - 1,
                limit: 1,
                unless_marked: Some((approver.clone(), MarkKind::Hidden)),
                only_relevant: false,
            };
            let visible = self.store.deliveries(tenant, query).await?.deliveries;
            if visible.iter().any(|visible| visible.number == delivery.number) {
                let mark = Mark {
                    mailbox,
                    number: delivery.number,
                    reader: approver.clone(),
                    kind: MarkKind::Hidden,
                };
                marks.push(mark);
            }
        }
        Ok(marks)
    }
}
