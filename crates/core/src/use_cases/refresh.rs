//! An approver asks the enforcer to submit anew.

use std::time::Duration;

use bytes::Bytes;
use countersign_wire::{
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
    refresh::RefreshBody,
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    edges::{Actor, note, tell},
    exchange::{Command, Exchange, Refusal, Verdict, judge},
    gateway::Attempt,
    store::{Change, Mailbox, NewDelivery, Removal},
    stored::{Stored as _, unchanged},
};

/// Asking twice within this time is asking once.
const COALESCE: Duration = Duration::from_mins(1);

/// An enforcer that has not come back after this need not be told any more.
const LIFE: Duration = Duration::from_hours(24);

impl Gateway {
    /// Puts the question into the enforcer's mailbox.
    pub async fn refresh(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request_id: &RequestId,
        body: &RefreshBody,
    ) -> Result<(), Error> {
        let named = named(tenant, request_id);
        loop {
            let looked = self.look_to_write(&named, Viewer::Approver(approver), &[]).await?;
            let Some(known) = &looked.exchange else { return Err(Refusal::NotFound.into()) };
            if let Verdict::Refuse(refusal) = judge(Some(&known.value), Command::Refresh, looked.now) {
                return self.refuse(&named, Some(known), refusal).await;
            }
            if known.value.refreshed_at.is_some_and(|last| looked.now < last.plus(COALESCE)) {
                match self.still_stands(&named, known).await? {
                    true => return Ok(()),
                    false => continue,
                }
            }
            let key = named.key();
            let payload = self.chance.payload_id(looked.now);
            let next =
                Exchange { refreshed_at: Some(looked.now), refresh: Some(payload), ..known.value.clone() };
            let text = serde_json::to_vec(body)
                .map_err(|error| crate::store::StoreError::Corrupt(error.to_string()))?;
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(key.clone(), Some(known)));
            change.puts.push(next.put(key.clone())?);
            change.audit.push(note(key.clone(), Actor::Approver(approver.as_str()), "refresh.requested")?);
            // One that has not been heard yet says no more than the new one.
            let msg_types = vec![MsgType::RefreshRequest];
            change.removals.push(Removal::About { subject: key.clone(), msg_types });
            change.drop_payloads.extend(known.value.refresh);
            change.payloads.push((payload, Bytes::from(text)));
            let enforcer = Mailbox::Enforcer(next.enforcer.clone());
            let msg_id = self.chance.msg_id(looked.now);
            let told = tell(&key, enforcer, msg_id, MsgType::RefreshRequest, looked.now.plus(LIFE));
            change.deliveries.push(NewDelivery { payload: Some(payload), ..told });
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(());
            }
        }
    }
}
