//! What each edge of the exchange machine writes, whoever goes along it.

use countersign_wire::{
    id::{MsgId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    doorbell::Ring,
    exchange::{Exchange, State},
    gateway::Retention,
    store::{AuditRow, Change, Guard, Key, Mailbox, NewDelivery, Removal, StoreError},
    stored::{Stored as _, Versioned},
};

/// Who did something, for the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Actor<'a> {
    /// An enforcer.
    Enforcer(&'a str),
    /// An approver.
    Approver(&'a str),
    /// The operator.
    Operator,
    /// Time.
    Clock,
}

/// The exchange's name and where it is found.
#[derive(Debug, Clone)]
pub(crate) struct Named<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) request_id: &'a RequestId,
}

impl Named<'_> {
    pub(crate) fn key(&self) -> Key {
        Exchange::key(self.request_id)
    }

    pub(crate) fn ring(&self) -> Ring {
        Ring::Record(self.tenant.clone(), self.key())
    }
}

/// Begins a change that moves the exchange: the guard, the record, the audit, and the next time to look.
pub(crate) fn moving(
    named: &Named<'_>,
    known: Option<&Versioned<Exchange>>,
    next: &Exchange,
    retention: &Retention,
    actor: Actor<'_>,
) -> Result<Change, StoreError> {
    let key = named.key();
    let mut change = Change::new(named.tenant.clone());
    change.guards.push(crate::stored::unchanged(key.clone(), known));
    change.puts.push(next.put(key.clone())?);
    change.due.push((next_look(next, retention), key.clone()));
    let from = known.map(|known| known.value.state.on_the_wire());
    change.audit.push(audit(key, actor, from, next)?);
    Ok(change)
}

fn audit(
    subject: Key,
    actor: Actor<'_>,
    from: Option<countersign_wire::exchange::State>,
    next: &Exchange,
) -> Result<AuditRow, StoreError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Event<'e> {
        actor: Actor<'e>,
        from: Option<countersign_wire::exchange::State>,
        to: countersign_wire::exchange::State,
        artifact_hash: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        decision_digest: Option<String>,
    }
    let event = Event {
        actor,
        from,
        to: next.state.on_the_wire(),
        artifact_hash: next.artifact_hash.to_string(),
        decision_digest: next.state.decided().map(|decided| decided.digest.to_string()),
    };
    let event = serde_json::to_vec(&event).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(AuditRow { subject, event: event.into() })
}

/// A line for the audit about anything that is no edge of an exchange.
pub(crate) fn note(subject: Key, actor: Actor<'_>, did: &'static str) -> Result<AuditRow, StoreError> {
    #[derive(Serialize)]
    struct Event<'e> {
        actor: Actor<'e>,
        did: &'static str,
    }
    let event =
        serde_json::to_vec(&Event { actor, did }).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(AuditRow { subject, event: event.into() })
}

/// When the sweeper has something to do for the exchange.
pub(crate) fn next_look(exchange: &Exchange, retention: &Retention) -> Timestamp {
    match exchange.ended_at() {
        None => exchange.expires_at,
        Some(ended_at) if exchange.is_tombstone() => ended_at.plus(retention.tombstone),
        Some(ended_at) => ended_at.plus(retention.after_end),
    }
}

/// The request leaves every active inbox.
pub(crate) fn leave_inboxes(change: &mut Change, key: &Key) {
    change.removals.push(Removal::About { subject: key.clone(), msg_types: vec![MsgType::ApprovalRequest] });
}

/// A message about the exchange to one mailbox.
pub(crate) fn tell(
    key: &Key,
    mailbox: Mailbox,
    msg_id: MsgId,
    msg_type: MsgType,
    until: Timestamp,
) -> NewDelivery {
    NewDelivery { mailbox, msg_id, msg_type, subject: key.clone(), payload: None, until }
}

/// Pending → expired, at the time when it was due.
pub(crate) fn expire(
    named: &Named<'_>,
    known: &Versioned<Exchange>,
    retention: &Retention,
) -> Result<Change, StoreError> {
    let state = State::Expired { at: known.value.expires_at };
    let next = Exchange { state, ..known.value.clone() };
    let key = named.key();
    let mut change = moving(named, Some(known), &next, retention, Actor::Clock)?;
    change.no_longer_due.push((known.value.expires_at, key.clone()));
    leave_inboxes(&mut change, &key);
    let until = next_look(&next, retention);
    for expired in next.mailboxes.iter().filter_map(Mailbox::expired) {
        // The same message as it was, in another list.
        change.deliveries.push(NewDelivery {
            payload: next.artifact,
            ..tell(&key, expired, next.request.clone(), MsgType::ApprovalRequest, until)
        });
    }
    Ok(change)
}

/// Holds while the exchange can still be decided, by the store's clock at the commit.
pub(crate) fn not_expired(exchange: &Exchange) -> Guard {
    Guard::Before(exchange.expires_at)
}
