//! Composes a message from a delivery and the record that it is about.

use bytes::Bytes;
use countersign_wire::{
    exchange::{Accepted, State as WireState},
    msg_type::{MsgType, PushedType},
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

/// What the record adds; `None` if it has nothing to do with such a message any more.
pub(crate) fn parts(delivery: &Delivery, record: &Record) -> Result<Option<MessageParts>, StoreError> {
    match delivery.subject.kind {
        Kind::Exchange => match Exchange::read(Some(record))? {
            Some(known) => Ok(exchange_parts(delivery, &known.value)?),
            None => Ok(None),
        },
        Kind::Prompt => Ok(Prompt::read(Some(record))?.map(|known| match delivery.msg_type {
            MsgType::PromptAck => MessageParts::from(Party::Enforcer(known.value.enforcer)),
            _ => MessageParts::from(Party::Approver(known.value.approver)),
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
        | Kind::Invitation => Ok(None),
    }
}

/// A new message about an exchange must say here who sends it and what it carries, or it does not compile.
fn exchange_parts(delivery: &Delivery, exchange: &Exchange) -> Result<Option<MessageParts>, StoreError> {
    let from_enforcer = || MessageParts::from(Party::Enforcer(exchange.enforcer.clone()));
    let Some(msg_type) = delivery.msg_type.pushed() else { return Ok(None) };
    Ok(match msg_type {
        PushedType::ApprovalRequest => Some(MessageParts {
            created_at: Some(exchange.created_at),
            expires_at: Some(exchange.expires_at),
            trace: exchange.trace,
            ..from_enforcer()
        }),
        PushedType::DecisionDeliver => exchange.state.decided().map(|decided| MessageParts {
            created_at: Some(decided.at),
            expires_at: Some(decided.expires_at),
            ..MessageParts::from(Party::Approver(decided.by.clone()))
        }),
        PushedType::ExchangeWithdrawn => {
            let request_id = delivery.subject.id.parse();
            let withdrawn = Accepted {
                request_id: request_id.map_err(|_| StoreError::corrupt("not a request id"))?,
                state: WireState::Withdrawn,
                artifact_hash: Some(exchange.artifact_hash),
            };
            let body = serde_json::to_vec(&withdrawn).map_err(StoreError::corrupt)?;
            Some(MessageParts { body: body.into(), ..from_enforcer() })
        }
        // Only an approver asks for a refresh, but which of them is not stored.
        PushedType::RefreshRequest => Some(from_enforcer()),
        // These are about prompts and sessions.
        PushedType::PromptSend
        | PushedType::PromptAck
        | PushedType::SessionStart
        | PushedType::SessionSnapshot
        | PushedType::SessionStatus
        | PushedType::SessionEnd => None,
    })
}
