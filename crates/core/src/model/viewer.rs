//! Who may see an exchange.

use countersign_wire::id::{ApproverId, EnforcerId};

use super::exchange::Exchange;
use crate::store::Mailbox;

/// Who reads an exchange, a session or a pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer<'a> {
    /// An enforcer sees its own.
    Enforcer(&'a EnforcerId),
    /// An approver sees what is in their mailbox, and what names no approver.
    Approver(&'a ApproverId),
    /// A wildcard credential for enforcers sees all of the tenant.
    AnyEnforcer,
    /// So does one for approvers.
    AnyApprover,
    /// The operator sees all of the tenant.
    Operator,
}

impl Viewer<'_> {
    pub(crate) fn sees(self, exchange: &Exchange) -> bool {
        match self {
            Self::Enforcer(enforcer) => exchange.enforcer == *enforcer,
            Self::Approver(approver) => exchange.mailboxes.iter().any(|mailbox| match mailbox {
                Mailbox::Approver(addressed) => addressed == approver,
                Mailbox::Shared => true,
                Mailbox::Enforcer(_)
                | Mailbox::News(_)
                | Mailbox::SharedNews
                | Mailbox::ExpiredOfApprover(_)
                | Mailbox::ExpiredShared => false,
            }),
            Self::AnyEnforcer | Self::AnyApprover | Self::Operator => true,
        }
    }
}
