//! The two ends of Countersign, for enforcers and approvers that do not trust the gateway between them.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | private keys, fingerprints | [`keys`] |
//! | encryption from one end to the other | [`seal`] |
//! | what pairing compares, proves and signs | [`pairing`] |

#![warn(missing_docs)]

mod object;
mod random;

pub mod keys;

pub mod pairing;
pub mod seal;
