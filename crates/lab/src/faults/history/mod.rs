//! What every client did and saw, one JSON object to a line, with one clock for all of them.
//!
//! An operation has a line when it begins and one when it ends: `ok`, `fail` (it certainly did nothing) or `unknown`. What
//! was pushed, acts of enforcers and faults have lines of their own.

mod event;
mod read;
mod recorder;

pub(crate) use event::{
    Act, Answer, Call, Caller, ExchangeState, Hash, Message, Push, Transport, marked, tenants_in,
};
#[cfg(test)]
pub(crate) use event::{Event, Notified, What};
pub(crate) use read::{Fault, History, Operation, Outcome};
pub(crate) use recorder::{Counts, Open, Recorder};

#[cfg(test)]
mod tests;
