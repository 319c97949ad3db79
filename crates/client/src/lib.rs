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
//! | the two ends | [`enforcer`], [`approver`] |
//! | vouching for others; how far a request has come | [`vouching`], [`progress`] |

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
pub mod request;

pub mod reply;

pub mod enforcer;

pub mod approver;

pub mod progress;
pub mod vouching;
