//! A delivery with everything that its envelope needs. Fetched when it is sent, and not before.

use bytes::Bytes;
use countersign_wire::{
    exchange::{Accepted, State as WireState},
    failure::Failure,
    id::{ApproverId, EnforcerId, MsgId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};

use crate::{
    Error, Gateway,
    exchange::Exchange,
    prompt::Prompt,
    session::Session,
    store::{Delivery, Kind, PayloadId, Record, StoreError},
    stored::Stored as _,
};

/// One message to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name, the same however often it is sent.
    pub msg_id: MsgId,
    /// What it says.
    pub msg_type: MsgType,
    /// The exchange, prompt or session.
    pub request_id: RequestId,
    /// When the store took in what it tells of.
    pub created_at: Timestamp,
    /// From when on it is void.
    pub expires_at: Option<Timestamp>,
    /// Who caused it.
    pub from: Party,
    /// The body, byte for byte as it was submitted where somebody submitted one.
    pub body: Bytes,
    /// The trace.
    pub trace: Option<Bytes>,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Party {
    /// An enforcer.
    Enforcer(EnforcerId),
    /// An approver.
    Approver(ApproverId),
}

impl Gateway {
    /// The message that a delivery stands for; none if what it told of is gone.
    pub async fn message(&self, tenant: &TenantId, delivery: &Delivery) -> Result<Option<Message>, Error> {
        // Both at once: what they find does not depend on each other.
        let (record, payload) =
            tokio::try_join!(self.durable_subject(tenant, delivery), self.payload(tenant, delivery.payload))?;
        let Some(record) = record else { return Ok(None) };
        let Some(about) = about(delivery, &record)? else { return Ok(None) };
        let body = if delivery.payload.is_some() { payload } else { Some(about.body) };
        let Some(body) = body else { return Ok(None) };
        let trace = self.payload(tenant, about.trace).await?;
        Ok(Some(Message {
            msg_id: delivery.msg_id.clone(),
            msg_type: delivery.msg_type.clone(),
            request_id: delivery.subject.id.parse().map_err(|_| Error::Refused(Failure::Internal))?,
            created_at: about.created_at.unwrap_or(delivery.at),
            expires_at: about.expires_at,
            from: about.from,
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

    /// The record that a delivery is about. A decision that a failover could undo is not told.
    async fn durable_subject(&self, tenant: &TenantId, delivery: &Delivery) -> Result<Option<Record>, Error> {
        loop {
            let loaded = self.store.load(tenant, std::slice::from_ref(&delivery.subject)).await?;
            let Some(record) = loaded.records.into_iter().next().flatten() else { return Ok(None) };
            if delivery.msg_type != MsgType::DecisionDeliver
                || self.confirm(tenant, &record.key, record.version).await?
            {
                return Ok(Some(record));
            }
        }
    }
}

/// What the record adds to the delivery.
struct About {
    from: Party,
    created_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    trace: Option<PayloadId>,
    body: Bytes,
}

fn about(delivery: &Delivery, record: &Record) -> Result<Option<About>, Error> {
    let plain = |from| About { from, created_at: None, expires_at: None, trace: None, body: Bytes::new() };
    Ok(match delivery.subject.kind {
        Kind::Exchange => Exchange::read(Some(record))?
            .map(|known| about_exchange(delivery, &known.value))
            .transpose()?
            .flatten(),
        Kind::Prompt => Prompt::read(Some(record))?.map(|known| match delivery.msg_type {
            MsgType::PromptAck => plain(Party::Enforcer(known.value.enforcer)),
            _ => plain(Party::Approver(known.value.approver)),
        }),
        Kind::Session => {
            Session::read(Some(record))?.map(|known| plain(Party::Enforcer(known.value.enforcer)))
        }
        _ => None,
    })
}

fn about_exchange(delivery: &Delivery, exchange: &Exchange) -> Result<Option<About>, StoreError> {
    let from = Party::Enforcer(exchange.enforcer.clone());
    Ok(Some(match delivery.msg_type {
        MsgType::DecisionDeliver => {
            let Some(decided) = exchange.state.decided() else { return Ok(None) };
            About {
                from: Party::Approver(decided.by.clone()),
                created_at: Some(decided.at),
                expires_at: Some(decided.expires_at),
                trace: None,
                body: Bytes::new(),
            }
        }
        MsgType::ExchangeWithdrawn => {
            let withdrawn = Accepted {
                request_id: delivery.subject.id.parse().map_err(|_| corrupt("request id"))?,
                state: WireState::Withdrawn,
                artifact_hash: Some(exchange.artifact_hash),
            };
            let body = serde_json::to_vec(&withdrawn).map_err(|error| corrupt(&error.to_string()))?;
            About { from, created_at: None, expires_at: None, trace: None, body: body.into() }
        }
        // Only an approver asks for a refresh, but which of them is not kept.
        MsgType::RefreshRequest => {
            About { from, created_at: None, expires_at: None, trace: None, body: Bytes::new() }
        }
        _ => About {
            from,
            created_at: Some(exchange.created_at),
            expires_at: Some(exchange.expires_at),
            trace: exchange.trace,
            body: Bytes::new(),
        },
    }))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
