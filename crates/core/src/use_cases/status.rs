//! Somebody looks at an exchange.

use bytes::Bytes;
use countersign_wire::{
    exchange::State as WireState,
    hash::Sha256Hex,
    id::{RequestId, TenantId},
    timestamp::Timestamp,
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    exchange::{Command, Refusal, Verdict, judge},
};

/// How an exchange stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its state; one whose time is up reads as expired.
    pub state: WireState,
    /// When the store took it in.
    pub created_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// What is to be decided on.
    pub artifact_hash: Sha256Hex,
    /// The decision as it was submitted, once there is one.
    pub decision: Option<Bytes>,
}

impl Gateway {
    /// How an exchange stands, for whoever may see it.
    pub async fn status(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        request_id: &RequestId,
    ) -> Result<Standing, Error> {
        let named = named(tenant, request_id);
        let (known, state) = loop {
            let looked = self.look(&named, viewer, &[]).await?;
            let Some(known) = looked.exchange else { return Err(Refusal::NotFound.into()) };
            if let Verdict::Refuse(refusal) = judge(Some(&known.value), Command::Status, looked.now) {
                return Err(refusal.into());
            }
            let state = known.value.state_at(looked.now);
            // A decision that a failover could undo is not told.
            if state.decided().is_none() || self.confirm(tenant, &named.key(), known.version).await? {
                break (known, state);
            }
        };
        let decision = match state.decided().and_then(|decided| decided.decision) {
            Some(id) => self.store.payloads(tenant, &[id]).await?.pop().flatten(),
            None => None,
        };
        Ok(Standing {
            state: state.on_the_wire(),
            created_at: known.value.created_at,
            expires_at: known.value.expires_at,
            artifact_hash: known.value.artifact_hash,
            decision,
        })
    }
}
