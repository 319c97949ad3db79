//! What each transition of an exchange writes, whether a client or the sweeper causes it.

use countersign_wire::{
    id::{MsgId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    load::{RecordOf, record_of},
    model::exchange::{Exchange, State},
    notify::Ring,
    retention::Retention,
    store::{Change, Guard, Key, Mailbox, NewDelivery, Removal, StoreError, Stored as _, Versioned},
};

/// An exchange's tenant and request id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeRef<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) request_id: &'a RequestId,
}

impl<'a> ExchangeRef<'a> {
    pub(crate) fn new(tenant: &'a TenantId, request_id: &'a RequestId) -> Self {
        Self { tenant, request_id }
    }

    pub(crate) fn key(&self) -> Key {
        Exchange::key(self.request_id)
    }

    /// Names its record, for a load.
    pub(crate) fn record(&self) -> RecordOf<Exchange> {
        record_of(self.request_id)
    }

    /// The guard-only change that an answer about an unchanged exchange rests on.
    pub(crate) fn unchanged(&self, known: &Versioned<Exchange>) -> Change {
        let mut change = Change::new(self.tenant.clone());
        change.guards.push(Guard::unchanged(self.key(), Some(known)));
        change
    }

    pub(crate) fn ring(&self) -> Ring {
        Ring::Record(self.tenant.clone(), self.key())
    }
}

/// The part that all transitions have in common: the guard, the record, the audit row, the next due time.
pub(crate) fn transition_change(
    exchange: &ExchangeRef<'_>,
    known: Option<&Versioned<Exchange>>,
    next: &Exchange,
    retention: &Retention,
    actor: Actor<'_>,
) -> Result<Change, StoreError> {
    let key = exchange.key();
    let mut change = Change::new(exchange.tenant.clone());
    change.guards.push(Guard::unchanged(key.clone(), known));
    change.puts.push(next.put(key.clone())?);
    change.due.push((next_due_at(next, retention), key.clone()));
    let from = known.map(|known| known.value.state.to_wire());
    change.audit.push(audit::transition(key, actor, from, next)?);
    Ok(change)
}

/// When the sweeper has something to do for the exchange.
pub(crate) fn next_due_at(exchange: &Exchange, retention: &Retention) -> Timestamp {
    match exchange.ended_at() {
        None => {
            let notified_at = exchange.notifying.as_ref().and_then(|notifying| notifying.next_at);
            let before = [notified_at, exchange.next_turn_at()].into_iter().flatten().min();
            before.map_or(exchange.expires_at, |at| at.min(exchange.expires_at))
        }
        Some(ended_at) if exchange.is_tombstone() => ended_at.plus(retention.tombstone),
        Some(ended_at) => ended_at.plus(retention.after_end),
    }
}

/// Removes the request from every active inbox.
pub(crate) fn remove_from_inboxes(change: &mut Change, key: &Key) {
    let msg_types = vec![MsgType::ApprovalRequest];
    change.removals.push(Removal::BySubject { subject: key.clone(), msg_types });
}

/// A message about the exchange to one mailbox, without a body.
pub(crate) fn new_delivery(
    key: &Key,
    mailbox: Mailbox,
    msg_id: MsgId,
    msg_type: MsgType,
    until: Timestamp,
) -> NewDelivery {
    NewDelivery { mailbox, msg_id, msg_type, subject: key.clone(), payload: None, until }
}

/// The request itself, for these of its mailboxes.
pub(crate) fn requests<'a>(
    key: &'a Key,
    exchange: &'a Exchange,
    mailboxes: &'a [Mailbox],
) -> impl Iterator<Item = NewDelivery> + 'a {
    mailboxes.iter().map(move |mailbox| {
        let (id, until) = (exchange.request.clone(), exchange.expires_at);
        let delivery = new_delivery(key, mailbox.clone(), id, MsgType::ApprovalRequest, until);
        NewDelivery { payload: exchange.artifact, ..delivery }
    })
}

/// Pending → expired, with `expires_at` as the time of the transition.
pub(crate) fn expire(
    exchange: &ExchangeRef<'_>,
    known: &Versioned<Exchange>,
    retention: &Retention,
) -> Result<Change, StoreError> {
    let state = State::Expired { at: known.value.expires_at };
    let next = Exchange { state, ..known.value.clone() };
    let key = exchange.key();
    let mut change = transition_change(exchange, Some(known), &next, retention, Actor::Clock)?;
    remove_from_inboxes(&mut change, &key);
    let until = next_due_at(&next, retention);
    let is_hidden = |mailbox: &&Mailbox| match mailbox {
        Mailbox::Approver(approver) => next.hidden_by.contains(approver),
        _ => false,
    };
    let listed = next.mailboxes.iter().filter(|mailbox| !is_hidden(mailbox));
    for expired in listed.filter_map(Mailbox::expired) {
        // The same message, moved to the list of expired requests.
        change.deliveries.push(NewDelivery {
            payload: next.artifact,
            ..new_delivery(&key, expired, next.request.clone(), MsgType::ApprovalRequest, until)
        });
    }
    Ok(change)
}

/// Holds while the exchange can be decided, by the store's clock at the commit.
pub(crate) fn before_expiry(exchange: &Exchange) -> Guard {
    Guard::Before(exchange.expires_at)
}
