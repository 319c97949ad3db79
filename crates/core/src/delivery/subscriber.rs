//! Who is subscribed, and over which transport.

use countersign_wire::{id::TenantId, msg_type::MsgType, presence::Transport};

use super::{feed::Reader, message::Party};

/// Who is subscribed, and over which transport.
#[derive(Debug, Clone)]
pub struct Subscriber {
    pub tenant: TenantId,
    pub party: Party,
    pub transport: Transport,
}

impl Subscriber {
    pub(super) fn reader(&self) -> Reader {
        match (&self.party, self.transport) {
            (Party::Enforcer(enforcer), _) => Reader::Enforcer(enforcer.clone()),
            (Party::Approver(approver), Transport::Sse) => Reader::Requests(approver.clone()),
            (Party::Approver(approver), _) => Reader::Approver(approver.clone()),
        }
    }

    /// An SSE stream carries requests to approvers and decisions to enforcers; a WebSocket carries everything.
    pub(super) fn carries(&self, msg_type: &MsgType) -> bool {
        self.transport != Transport::Sse
            || matches!(msg_type, MsgType::ApprovalRequest | MsgType::DecisionDeliver)
    }
}
