//! Statements that one device signs about another: that it may approve too, or must not any more. Both ends and the gateway
//! read them, so their format is in the wire crate; what an enforcer makes of one is [`crate::profile::Pins::apply`].

pub use countersign_wire::statement::{Claim, Issue, MAX_VOUCH, Said, Statement, StatementError, Vouch};
