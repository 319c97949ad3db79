//! A client acknowledges messages: they are not pushed to it again.

use countersign_wire::{
    ack::MessageAck,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use crate::{
    audit::Actor,
    error::Error,
    gateway::{Commit, Evaluation, Gateway},
    load::{Load, ReadFrom, Reading, record_of},
    model::{
        exchange::{
            Command, Exchange, MAX_NAMED_APPROVERS, Seen, State, Transition, TransitionError,
            TransitionResult, evaluate,
        },
        pairing::PairedApprover,
        prompt::Prompt,
        session::Session,
        viewer::Viewer,
    },
    store::{Change, Delivery, Guard, Mailbox, Mark, MarkKind, Removal, StoreError, Stored as _, Versioned},
    transitions::{ExchangeRef, transition_change},
};

/// Who acknowledges, and what it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledger<'a> {
    /// Of decisions, refresh requests, prompts.
    Enforcer(&'a EnforcerId),
    /// Of requests, withdrawals, prompt acknowledgements, session events.
    Approver(&'a ApproverId),
}

impl Gateway {
    /// Acknowledges one message about `request_id`, or all of them.
    pub async fn acknowledge(
        &self,
        tenant: &TenantId,
        by: Acknowledger<'_>,
        request_id: &RequestId,
        ack: &MessageAck,
    ) -> Result<(), Error> {
        let msg_id = ack.msg_id.as_ref();
        let exchange = ExchangeRef::new(tenant, request_id);
        if self.acknowledge_known(exchange, by, msg_id).await? {
            return Ok(());
        }
        let load = Acknowledgeable { exchange, by };
        self.update_exchange(ReadFrom::Store, exchange, by.viewer(), &load, |known, loaded, now| {
            if known.is_none() && !loaded.concerns(by) {
                return Err(TransitionError::NotFound.into());
            }
            let named: Vec<&(Mailbox, Delivery)> = loaded
                .deliveries
                .iter()
                .filter(|(_, delivery)| msg_id.is_none_or(|msg_id| delivery.msg_id == *msg_id))
                .collect();
            let is_named = |msg_type: MsgType| {
                named.iter().any(|(mailbox, delivery)| by.owns(mailbox) && delivery.msg_type == msg_type)
            };
            let names_refresh = is_named(MsgType::RefreshRequest);
            let mut change = match known {
                Some(known) if is_named(MsgType::DecisionDeliver) => {
                    self.deliver_change(&exchange, by, known, names_refresh, now)?
                }
                Some(known) => progress_change(&exchange, by, known, names_refresh, ack, now)?,
                None => Change::new(tenant.clone()),
            };
            if named.is_empty() {
                // It was acknowledged before; the answer rests on the records.
                if change.guards.is_empty() {
                    change.guards.extend(known.map(|known| Guard::unchanged(exchange.key(), Some(known))));
                }
                change.guards.extend(loaded.guards(request_id));
            }
            for (mailbox, delivery) in named {
                by.settle(mailbox, delivery, &mut change);
            }
            Ok(Evaluation::commit_and_ring(change, exchange.ring(), ()))
        })
        .await
    }

    /// The common way: the enforcer acknowledges a decision of an exchange that this node knows. Reads nothing. Returns
    /// false if it is anything else, or has changed meanwhile.
    async fn acknowledge_known(
        &self,
        exchange: ExchangeRef<'_>,
        by: Acknowledger<'_>,
        msg_id: Option<&MsgId>,
    ) -> Result<bool, Error> {
        let Some(now) = self.store.estimated_now(exchange.tenant) else { return Ok(false) };
        let key = exchange.key();
        let Some(known) = self.cache.known.get(exchange.tenant, &key, None) else { return Ok(false) };
        let Some(known) = Exchange::read(known.record.as_ref())? else { return Ok(false) };
        let names_decision = matches!((&known.value.state, msg_id), (State::Decided(decided), Some(msg_id))
            if decided.msg_id == *msg_id);
        if !names_decision || !by.viewer().sees(&known.value) {
            return Ok(false);
        }
        let mut change = self.deliver_change(&exchange, by, &known, false, now)?;
        if change.puts.is_empty() {
            return Ok(false);
        }
        change.removals.extend(msg_id.cloned().map(|msg_id| Removal::ByMessage { subject: key, msg_id }));
        Ok(self.commit(change, None).await? == Commit::Done)
    }

    /// Decided → delivered, where the owning enforcer acknowledges the decision; else an empty change.
    fn deliver_change(
        &self,
        exchange: &ExchangeRef<'_>,
        by: Acknowledger<'_>,
        known: &Versioned<Exchange>,
        names_refresh: bool,
        now: Timestamp,
    ) -> Result<Change, Error> {
        if let Acknowledger::Enforcer(enforcer) = by
            && let TransitionResult::Apply(Transition::Deliver) =
                evaluate(Some(&known.value), Command::Acknowledge, now)
            && let State::Decided(decided) = &known.value.state
        {
            let state = State::Delivered { decided: decided.clone(), at: now };
            // An acknowledgement of everything is one of the refresh request too.
            let refresh = known.value.refresh.filter(|_| !names_refresh);
            let next = Exchange { refresh, state, ..known.value.clone() };
            let actor = Actor::Enforcer(enforcer.as_str());
            let mut change = transition_change(exchange, Some(known), &next, &self.retention, actor)?;
            change.drop_payloads.extend(known.value.refresh.filter(|_| names_refresh));
            return Ok(change);
        }
        Ok(Change::new(exchange.tenant.clone()))
    }
}

/// What an acknowledgement changes of a request that it does not deliver: an approver's is shown to the enforcer, and an
/// enforcer's of a refresh request ends it.
fn progress_change(
    exchange: &ExchangeRef<'_>,
    by: Acknowledger<'_>,
    known: &Versioned<Exchange>,
    names_refresh: bool,
    ack: &MessageAck,
    now: Timestamp,
) -> Result<Change, Error> {
    let mut next = known.value.clone();
    let mut change = exchange.unchanged(known);
    match by {
        Acknowledger::Approver(approver) => {
            let names_request = ack.msg_id.as_ref().is_none_or(|msg_id| *msg_id == next.request);
            let known_before = next.seen.iter().position(|seen| seen.approver == *approver);
            if next.state != State::Pending || !names_request {
                return Ok(Change::new(exchange.tenant.clone()));
            }
            let status = ack.status.as_ref().map(|status| status.as_str().to_owned());
            let seen = Seen::next(known_before.map(|index| &next.seen[index]), approver, status, now);
            match known_before {
                Some(index) => next.seen[index] = seen,
                None if next.seen.len() < MAX_NAMED_APPROVERS => next.seen.push(seen),
                None => return Ok(Change::new(exchange.tenant.clone())),
            }
        }
        Acknowledger::Enforcer(_) => {
            if !names_refresh {
                return Ok(Change::new(exchange.tenant.clone()));
            }
            change.drop_payloads.extend(next.refresh.take());
        }
    }
    change.puts.push(next.put(exchange.key())?);
    Ok(change)
}

/// What an acknowledgement may be about: an exchange, a prompt or a session, and the messages about it.
struct Acknowledgeable<'a> {
    exchange: ExchangeRef<'a>,
    by: Acknowledger<'a>,
}

struct LoadedSubjects {
    prompt: Option<Versioned<Prompt>>,
    session: Option<Versioned<Session>>,
    /// The approver's pairs, which say whose sessions it sees; `None` for an enforcer.
    paired: Option<Versioned<PairedApprover>>,
    deliveries: Vec<(Mailbox, Delivery)>,
}

impl Load for Acknowledgeable<'_> {
    type Loaded = (Option<Versioned<Exchange>>, LoadedSubjects);

    async fn load(
        &self,
        reading: &Reading<'_>,
        tenant: &TenantId,
    ) -> Result<(Self::Loaded, Timestamp), StoreError> {
        let request_id = self.exchange.request_id;
        let approver = match self.by {
            Acknowledger::Enforcer(_) => None,
            Acknowledger::Approver(approver) => Some(record_of::<PairedApprover>(approver)),
        };
        let records = (
            self.exchange.record(),
            record_of::<Prompt>(request_id),
            record_of::<Session>(request_id),
            approver,
        );
        let ((known, prompt, session, paired), now) = records.load(reading, tenant).await?;
        let deliveries = match known.is_some() || prompt.is_some() || session.is_some() {
            true => reading.store.deliveries_by_subject(tenant, request_id.as_str()).await?,
            false => Vec::new(),
        };
        Ok(((known, LoadedSubjects { prompt, session, paired, deliveries }), now))
    }
}

impl LoadedSubjects {
    /// Whether `by` is a party of the prompt, or sees the session.
    fn concerns(&self, by: Acknowledger<'_>) -> bool {
        let prompt = self.prompt.as_ref().map(|known| &known.value);
        let session = self.session.as_ref().map(|known| &known.value);
        match by {
            Acknowledger::Enforcer(enforcer) => {
                prompt.is_some_and(|prompt| prompt.enforcer == *enforcer)
                    || session.is_some_and(|session| session.enforcer == *enforcer)
            }
            Acknowledger::Approver(approver) => {
                let paired = |session: &Session| {
                    self.paired
                        .as_ref()
                        .is_some_and(|known| known.value.enforcers.contains(&session.enforcer))
                };
                prompt.is_some_and(|prompt| prompt.approver == *approver) || session.is_some_and(paired)
            }
        }
    }

    fn guards(&self, request_id: &RequestId) -> impl Iterator<Item = Guard> {
        let prompt = self.prompt.as_ref().map(|it| Guard::unchanged(Prompt::key(request_id), Some(it)));
        let session = self.session.as_ref().map(|it| Guard::unchanged(Session::key(request_id), Some(it)));
        prompt.into_iter().chain(session)
    }
}

impl<'a> Acknowledger<'a> {
    fn viewer(self) -> Viewer<'a> {
        match self {
            Self::Enforcer(enforcer) => Viewer::Enforcer(enforcer),
            Self::Approver(approver) => Viewer::Approver(approver),
        }
    }

    fn owns(self, mailbox: &Mailbox) -> bool {
        match (self, mailbox) {
            (Self::Enforcer(enforcer), Mailbox::Enforcer(owner)) => enforcer == owner,
            (Self::Approver(approver), Mailbox::Approver(owner) | Mailbox::News(owner)) => approver == owner,
            _ => false,
        }
    }

    /// Removes the delivery from the reader's own mailbox. What others read too, or what must stay in the inbox, is
    /// only marked.
    fn settle(self, mailbox: &Mailbox, delivery: &Delivery, change: &mut Change) {
        let (mailbox, number) = (mailbox.clone(), delivery.number);
        match self {
            Self::Approver(approver)
                if matches!(mailbox, Mailbox::Shared | Mailbox::SharedNews)
                    || self.owns(&mailbox) && matches!(mailbox, Mailbox::Approver(_)) =>
            {
                let reader = approver.clone();
                let (subject, kind) = (delivery.subject.clone(), MarkKind::Acknowledged);
                change.marks.push(Mark { mailbox, number, subject, reader, kind });
            }
            _ if self.owns(&mailbox) => change.removals.push(Removal::ByNumber { mailbox, number }),
            _ => {}
        }
    }
}
