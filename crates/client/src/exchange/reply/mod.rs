//! A decision: made and signed by an approver; verified by the enforcer that asked. No I/O.

mod decide;
mod verify;
mod words;

#[cfg(test)]
pub(in crate::exchange) use self::decide::decide_unchecked;
pub(crate) use self::words::decision_hash;
pub use self::{
    decide::{Choice, ChoiceError, SentDecision, decide, decide_with},
    verify::{Rejected, VerifiedDecision, Verifier},
    words::Words,
};

#[cfg(test)]
mod tests;
