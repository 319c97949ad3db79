//! Who calls. Each route's group says which roles may call it, and a handler's signature which role it acts for.

mod access;
mod caller;
mod revocation;

pub(crate) use access::{Access, authenticate};
pub(crate) use caller::{
    Approver, Caller, Enforcer, GatewayOperator, Newcomer, Operator, OwnKey, Participant, offered_ticket,
};
pub(crate) use revocation::{KeyStatus, RevocationWatch};
