//! Composes a message from a delivery and the record that it is about.

use bytes::Bytes;
use countersign_wire::{
    exchange::{Accepted, ExchangeState},
    msg_type::{MsgType, Origin},
    timestamp::Timestamp,
};

use crate::{
    model::{
        exchange::Exchange,
        message::{Message, Party},
        prompt::Prompt,
        session::Session,
    },
    store::{Delivery, Kind, PayloadId, Record, StoreError, Stored as _},
};

/// What the record adds to the delivery.
pub(crate) struct MessageParts {
    from: Party,
    /// `None`: the time of the delivery.
    created_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    pub(crate) trace: Option<PayloadId>,
    /// Used where the delivery has no payload.
    pub(crate) body: Bytes,
}

impl MessageParts {
    fn from(from: Party) -> Self {
        Self { from, created_at: None, expires_at: None, trace: None, body: Bytes::new() }
    }

    pub(crate) fn into_message(
        self,
        delivery: &Delivery,
        body: Bytes,
        trace: Option<Bytes>,
    ) -> Result<Message, StoreError> {
        let request_id = delivery.subject.id.parse();
        Ok(Message {
            msg_id: delivery.msg_id.clone(),
            msg_type: delivery.msg_type.clone(),
            request_id: request_id.map_err(|_| StoreError::corrupt("not a request id"))?,
            created_at: self.created_at.unwrap_or(delivery.at),
            expires_at: self.expires_at,
            from: self.from,
            body,
            trace,
        })
    }
}

// CONTRIBUTING: add a record kind, step 4
/// What the record adds; `None` if it has nothing to do with such a message any more.
pub(crate) fn parts(delivery: &Delivery, record: &Record) -> Result<Option<MessageParts>, StoreError> {
    let Some(origin) = delivery.msg_type.pushed_for() else { return Ok(None) };
    match delivery.subject.kind {
        Kind::Exchange => match Exchange::read(Some(record))? {
            Some(known) => exchange_parts(delivery, origin, &known.value),
            None => Ok(None),
        },
        Kind::Prompt => Ok(Prompt::read(Some(record))?.map(|known| match origin {
            Origin::Enforcer => MessageParts::from(Party::Enforcer(known.value.enforcer)),
            Origin::Approver => MessageParts::from(Party::Approver(known.value.approver)),
        })),
        Kind::Session => Ok(Session::read(Some(record))?
            .map(|known| MessageParts::from(Party::Enforcer(known.value.enforcer)))),
        // No message is about these.
        Kind::SessionEvent
        | Kind::Pairing
        | Kind::PairingCode
        | Kind::Enforcer
        | Kind::Approver
        | Kind::Route
        | Kind::Idempotency
        | Kind::Presence
        | Kind::Credential
        | Kind::Policy
        | Kind::FailedCodeAttempts
        | Kind::Channels
        | Kind::Lease
        | Kind::Ticket
        | Kind::Pairs
        | Kind::SecretChecks
        | Kind::Invitation
        | Kind::Tenant
        | Kind::Own
        | Kind::Notifications => Ok(None),
    }
}

// CONTRIBUTING: add a message type, step 5
/// A message about an exchange has the time of its delivery and no trace, unless it is one of these.
fn exchange_parts(
    delivery: &Delivery,
    origin: Origin,
    exchange: &Exchange,
) -> Result<Option<MessageParts>, StoreError> {
    let decided = exchange.state.decided();
    let from = match origin {
        Origin::Enforcer => Some(Party::Enforcer(exchange.enforcer.clone())),
        Origin::Approver => decided.map(|decided| Party::Approver(decided.by.clone())),
    };
    let Some(parts) = from.map(MessageParts::from) else { return Ok(None) };
    Ok(Some(match (&delivery.msg_type, decided) {
        (MsgType::ApprovalRequest, _) => MessageParts {
            created_at: Some(exchange.created_at),
            expires_at: Some(exchange.expires_at),
            trace: exchange.trace,
            ..parts
        },
        (MsgType::DecisionDeliver, Some(decided)) => {
            MessageParts { created_at: Some(decided.at), expires_at: Some(decided.expires_at), ..parts }
        }
        (MsgType::ExchangeWithdrawn, _) => {
            let request_id = delivery.subject.id.parse();
            let withdrawn = Accepted {
                request_id: request_id.map_err(|_| StoreError::corrupt("not a request id"))?,
                state: ExchangeState::Withdrawn,
                artifact_hash: Some(exchange.artifact_hash),
            };
            let body = serde_json::to_vec(&withdrawn).map_err(StoreError::corrupt)?;
            MessageParts { body: body.into(), ..parts }
        }
        _ => parts,
    }))
}
