//! A delivery with everything that its envelope needs. Fetched when it is sent, and not before.

use bytes::Bytes;
use countersign_wire::{id::TenantId, msg_type::MsgType};

pub use crate::model::message::{Message, Party};
use crate::{
    compose::parts,
    error::Error,
    gateway::Gateway,
    store::{Delivery, PayloadId, Record},
};

impl Gateway {
    /// The message of a delivery; `None` if what it is about no longer exists.
    pub async fn message(&self, tenant: &TenantId, delivery: &Delivery) -> Result<Option<Message>, Error> {
        // Both at once: neither depends on the other.
        let (record, payload) =
            tokio::try_join!(self.durable_subject(tenant, delivery), self.payload(tenant, delivery.payload))?;
        let Some(record) = record else { return Ok(None) };
        let Some(parts) = parts(delivery, &record)? else { return Ok(None) };
        let body = if delivery.payload.is_some() { payload } else { Some(parts.body.clone()) };
        let Some(body) = body else { return Ok(None) };
        let trace = self.payload(tenant, parts.trace).await?;
        Ok(Some(parts.into_message(delivery, body, trace)?))
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
