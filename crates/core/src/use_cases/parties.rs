//! The parties of an exchange or a prompt, for wildcard credentials that name nobody.

use countersign_wire::id::{ApproverId, EnforcerId, RequestId, TenantId};

use crate::{
    error::Error,
    gateway::Gateway,
    load::record_of,
    model::{exchange::Exchange, prompt::Prompt},
    store::Mailbox,
};

/// Who takes part in an exchange or a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties {
    pub enforcer: EnforcerId,
    /// The first approver that it is addressed to; `None` for a request to every approver.
    pub approver: Option<ApproverId>,
}

impl Gateway {
    /// The parties of what this id names; `None` if there is neither an exchange nor a prompt.
    pub async fn parties(&self, tenant: &TenantId, request_id: &RequestId) -> Result<Option<Parties>, Error> {
        let load = (record_of::<Exchange>(request_id), record_of::<Prompt>(request_id));
        let ((exchange, prompt), _) = self.load(tenant, &load).await?;
        if let Some(exchange) = exchange {
            let approver = exchange.value.mailboxes.iter().find_map(|mailbox| match mailbox {
                Mailbox::Approver(approver) => Some(approver.clone()),
                _ => None,
            });
            return Ok(Some(Parties { enforcer: exchange.value.enforcer, approver }));
        }
        let parties = |prompt: Prompt| Parties { enforcer: prompt.enforcer, approver: Some(prompt.approver) };
        Ok(prompt.map(|prompt| parties(prompt.value)))
    }
}
