//! An enforcer takes its request back.

use countersign_wire::{
    exchange::{Accepted, State as WireState},
    id::{EnforcerId, RequestId, TenantId},
    msg_type::MsgType,
};

use super::{Viewer, named};
use crate::{
    Error, Gateway,
    edges::{Actor, leave_inboxes, moving, not_expired, tell},
    exchange::{Command, Edge, Exchange, Refusal, State, Verdict, judge},
    gateway::Attempt,
    store::Mailbox,
};

impl Gateway {
    /// Withdraws what is still pending, and tells the approvers.
    pub async fn withdraw(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        request_id: &RequestId,
    ) -> Result<Accepted, Error> {
        let named = named(tenant, request_id);
        loop {
            let looked = self.look_to_write(&named, Viewer::Enforcer(enforcer), &[]).await?;
            let Some(known) = &looked.exchange else { return Err(Refusal::NotFound.into()) };
            match judge(Some(&known.value), Command::Withdraw, looked.now) {
                Verdict::Go(Edge::Withdraw) => {
                    let next = Exchange { state: State::Withdrawn { at: looked.now }, ..known.value.clone() };
                    let actor = Actor::Enforcer(enforcer.as_str());
                    let mut change = moving(&named, Some(known), &next, &self.retention, actor)?;
                    change.guards.push(not_expired(&next));
                    let key = named.key();
                    leave_inboxes(&mut change, &key);
                    for news in next.mailboxes.iter().filter_map(Mailbox::news) {
                        let msg_id = self.chance.msg_id(looked.now);
                        let told = tell(&key, news, msg_id, MsgType::ExchangeWithdrawn, next.expires_at);
                        change.deliveries.push(told);
                    }
                    if let Attempt::Done = self.commit(change, Some(named.ring())).await? {
                        return Ok(Accepted {
                            request_id: request_id.clone(),
                            state: WireState::Withdrawn,
                            artifact_hash: Some(next.artifact_hash),
                        });
                    }
                }
                Verdict::Refuse(refusal) => return self.refuse(&named, Some(known), refusal).await,
                _ => {}
            }
        }
    }
}
