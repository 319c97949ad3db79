//! A delivery with everything that its envelope needs. Fetched when it is sent, and not before.

use bytes::Bytes;
use countersign_wire::{
    exchange::{Accepted, State as WireState},
    failure::Failure,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    msg_type::{MsgType, PushedType},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::Gateway,
    model::{exchange::Exchange, prompt::Prompt, session::Session},
    store::{Delivery, Kind, PayloadId, Record, StoreError, Stored as _},
};

impl Gateway {
    /// The message of a delivery; `None` if what it is about no longer exists.
    pub async fn message(&self, tenant: &TenantId, delivery: &Delivery) -> Result<Option<Message>, Error> {
        // Both at once: neither depends on the other.
        let (record, payload) =
            tokio::try_join!(self.durable_subject(tenant, delivery), self.payload(tenant, delivery.payload))?;
        let Some(record) = record else { return Ok(None) };
        let Some(parts) = parts(delivery, &record)? else { return Ok(None) };
        let body = if delivery.payload.is_some() { payload } else { Some(parts.body) };
        let Some(body) = body else { return Ok(None) };
        let trace = self.payload(tenant, parts.trace).await?;
        Ok(Some(Message {
            msg_id: delivery.msg_id.clone(),
            msg_type: delivery.msg_type.clone(),
            request_id: delivery.subject.id.parse().map_err(|_| Error::Rejected(Failure::Internal))?,
            created_at: parts.created_at.unwrap_or(delivery.at),
            expires_at: parts.expires_at,
            from: parts.from,
            body,
            trace,
        }))
    }

    async fn payload(&self, tenant: &TenantId, id: Option<PayloadId>) -> Result<Option<Bytes>, Error> {
        match id {
            Some(id) => Ok(self.store.payloads(tenant, &[id]).await?.pop().flatten()),
            None => Ok(None),
        }
    }

    /// The record that a delivery is about. A decision is returned only once a failover can't undo it.
    async fn durable_subject(&self, tenant: &TenantId, delivery: &Delivery) -> Result<Option<Record>, Error> {
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&delivery.subject)).await?;
            let Some(record) = loaded.records.into_iter().next().flatten() else { return Ok(None) };
            if delivery.msg_type != MsgType::DecisionDeliver
                || self.confirm_unchanged(tenant, &record.key, record.version).await?
            {
                return Ok(Some(record));
            }
        }
    }
}

/// What the record adds to the delivery.
struct MessageParts {
    from: Party,
    /// `None`: the time of the delivery.
    created_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    trace: Option<PayloadId>,
    /// Used where the delivery has no payload.
    body: Bytes,
}

impl MessageParts {
    fn from(from: Party) -> Self {
        Self { from, created_at: None, expires_at: None, trace: None, body: Bytes::new() }
    }
}

fn parts(delivery: &Delivery, record: &Record) -> Result<Option<MessageParts>, Error> {
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
