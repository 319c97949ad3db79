//! The two ends as programs use them: they ask, decide, pair, vouch and prompt over a gateway.

pub mod names;

pub mod enforcer;

pub mod approver;

pub mod presence;
pub mod progress;
pub mod prompt;
pub mod vouching;
