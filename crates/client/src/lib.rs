//! The two ends of Countersign, for enforcers and approvers that do not trust the gateway between them.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | private keys, fingerprints | [`keys`] |
//! | which decisions were used | [`journal`] |
//! | what pairing compares, proves and signs | [`pairing`] |
//! | what artifacts say, and how it is shown | [`payload`] |
//! | who one is, kept in a folder: credential, keys, pins | [`profile`] |
//! | encryption from one end to the other | [`seal`] |
//! | calls to a gateway | [`http`] |
//! | trading an invitation for an API key | [`join`] |
//! | a request, built or opened; a decision, signed or verified | [`request`], [`reply`] |
//! | the part of the shell language that is understood | [`shell`] |
//! | which commands an approval covers, and for how long | [`pattern`], [`grant`] |
//! | a decision that was recorded as used, and for what | [`taken`], [`effect_hash`] |
//! | the two ends | [`enforcer`], [`approver`] |
//! | vouching for others; how far a request has come | [`vouching`], [`progress`] |
//! | what a session is doing, what became of a decision | [`session`], [`receipt`] |
//! | a finished exchange that others can verify | [`bundle`] |
//! | acting: by a grant or by asking, at most once for each use, with a receipt | [`authorize`], [`finish`] |
//! | acting by a grant that was given while a request waits | [`waiting`] |
//! | what an approver says to an enforcer without being asked | [`prompt`] |
//! | what the gateway pushes, live | [`channel`] |

#![warn(missing_docs)]

pub mod clock;
mod json;
mod object;
mod random;

pub mod keys;

pub mod journal;
pub mod pairing;
pub mod payload;
pub mod profile;
pub mod seal;

pub mod http;

pub mod join;
pub mod pattern;
pub mod request;
pub mod shell;

pub mod reply;

pub mod effect_hash;
pub mod taken;

#[cfg(test)]
mod fixture;

pub mod grant;

pub mod enforcer;

pub mod approver;

pub mod progress;
pub mod vouching;

pub mod session;

pub mod receipt;

pub mod bundle;

pub mod finish;

pub mod authorize;

pub mod waiting;

pub mod prompt;

pub mod channel;
