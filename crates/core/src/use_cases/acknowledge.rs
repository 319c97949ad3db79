//! A client acknowledges messages: they are not pushed to it again.

use countersign_wire::{
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    msg_type::MsgType,
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    edges::{Actor, moving},
    exchange::{Command, Edge, Exchange, Refusal, State, Verdict, judge},
    gateway::Attempt,
    prompt::Prompt,
    session::Session,
    store::{Change, Delivery, Guard, Mailbox, Mark, MarkKind, Record, Removal},
    stored::{Stored as _, unchanged},
};

/// Who acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledger<'a> {
    /// An enforcer: decisions, refresh requests, prompts.
    Enforcer(&'a EnforcerId),
    /// An approver: requests, withdrawals, prompt acknowledgements, session events.
    Approver(&'a ApproverId),
}

impl Gateway {
    /// Acknowledges one message about `request_id`, or all of them.
    pub async fn acknowledge(
        &self,
        tenant: &TenantId,
        by: Acknowledger<'_>,
        request_id: &RequestId,
        msg_id: Option<&MsgId>,
    ) -> Result<(), Error> {
        let named = named(tenant, request_id);
        let others = [Prompt::key(request_id), Session::key(request_id)];
        loop {
            let viewer = match by {
                Acknowledger::Enforcer(enforcer) => Viewer::Enforcer(enforcer),
                Acknowledger::Approver(approver) => Viewer::Approver(approver),
            };
            let looked = self.look_to_write(&named, viewer, &others).await?;
            let concerned = looked.exchange.is_some()
                || by
                    .has_part_in(Prompt::read(looked.others[0].as_ref())?.as_ref().map(|known| &known.value))
                || self.sees_session(tenant, by, looked.others[1].as_ref()).await?;
            if !concerned {
                return Err(Refusal::NotFound.into());
            }
            let about = self.store.deliveries_about(tenant, request_id.as_str()).await?;
            let meant: Vec<(Mailbox, Delivery)> = about
                .into_iter()
                .filter(|(_, delivery)| msg_id.is_none_or(|msg_id| delivery.msg_id == *msg_id))
                .collect();
            let decision_meant = meant
                .iter()
                .any(|(mailbox, delivery)| by.owns(mailbox) && delivery.msg_type == MsgType::DecisionDeliver);
            let mut change = Change::new(tenant.clone());
            if meant.is_empty() {
                // It was acknowledged before, and the answer rests on the record.
                change
                    .guards
                    .extend(looked.exchange.as_ref().map(|known| unchanged(named.key(), Some(known))));
                let others = looked.others.iter().flatten();
                change.guards.extend(others.map(|it| Guard::Version(it.key.clone(), it.version)));
            }
            if let (Acknowledger::Enforcer(enforcer), Some(known), true) =
                (by, &looked.exchange, decision_meant)
                && let Verdict::Go(Edge::Deliver) =
                    judge(Some(&known.value), Command::Acknowledge, looked.now)
                && let State::Decided(decided) = &known.value.state
            {
                let state = State::Delivered { decided: decided.clone(), at: looked.now };
                let next = Exchange { state, ..known.value.clone() };
                change =
                    moving(&named, Some(known), &next, &self.retention, Actor::Enforcer(enforcer.as_str()))?;
            }
            for (mailbox, delivery) in meant {
                by.settle(mailbox, &delivery, &mut change);
            }
            if let Attempt::Done = self.commit(change, Some(named.ring())).await? {
                return Ok(());
            }
        }
    }
}

impl Gateway {
    async fn sees_session(
        &self,
        tenant: &TenantId,
        by: Acknowledger<'_>,
        record: Option<&Record>,
    ) -> Result<bool, Error> {
        let Some(session) = Session::read(record)? else { return Ok(false) };
        Ok(match by {
            Acknowledger::Enforcer(enforcer) => session.value.enforcer == *enforcer,
            Acknowledger::Approver(approver) => {
                self.paired_enforcers(tenant, approver).await?.contains(&session.value.enforcer)
            }
        })
    }
}

impl Acknowledger<'_> {
    fn has_part_in(&self, prompt: Option<&Prompt>) -> bool {
        match (self, prompt) {
            (Self::Enforcer(enforcer), Some(prompt)) => prompt.enforcer == **enforcer,
            (Self::Approver(approver), Some(prompt)) => prompt.approver == **approver,
            (_, None) => false,
        }
    }

    fn owns(&self, mailbox: &Mailbox) -> bool {
        match (self, mailbox) {
            (Self::Enforcer(enforcer), Mailbox::Enforcer(owner)) => *enforcer == owner,
            (Self::Approver(approver), Mailbox::Approver(owner) | Mailbox::News(owner)) => *approver == owner,
            _ => false,
        }
    }

    /// Takes the delivery out of the reader's own mailbox. What others read too, or what must stay in the
    /// inbox, is only marked.
    fn settle(&self, mailbox: Mailbox, delivery: &Delivery, change: &mut Change) {
        let number = delivery.number;
        match self {
            Self::Approver(approver)
                if matches!(mailbox, Mailbox::Shared | Mailbox::SharedNews)
                    || self.owns(&mailbox) && matches!(mailbox, Mailbox::Approver(_)) =>
            {
                let reader = (*approver).clone();
                change.marks.push(Mark { mailbox, number, reader, kind: MarkKind::Acknowledged });
            }
            _ if self.owns(&mailbox) => change.removals.push(Removal::One { mailbox, number }),
            _ => {}
        }
    }
}
