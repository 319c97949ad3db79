//! The messages of the approval gateway protocol, for enforcers, approvers and the gateway.
//!
//! This crate reads, checks, signs and writes messages. It has no transport or storage: no I/O, no async, no clock,
//! no randomness.
//!
//! | to find | look in |
//! |---|---|
//! | ids, timestamps, hashes | [`id`], [`timestamp`], [`hash`] |
//! | the two envelopes and the message types | [`envelope`], [`core_envelope`], [`msg_type`]; input with either envelope or none: [`framed`] |
//! | bodies | [`artifact`], [`requested_actions`], [`decision`], [`exchange`], [`ack`], [`inbox`], [`refresh`], [`prompt`], [`session`], [`pairing`], [`lock`], [`presence`], [`failure`] |
//! | our own extension keys; what a machine says of itself | [`extension`]; [`machine`] |
//! | canonical form, keys, fingerprints, base64url | [`canonical`], [`keys`], [`fingerprint`], [`base64url`] |
//! | what one device says of another | [`statement`] |
//! | credentials of clients, and how they come | [`api_key`], [`invitation`], [`key_nonce`]; their MAC: [`mac`] |
//! | limits of sizes and counts | [`limits`] |
//!
//! # Bytes in, same bytes out
//!
//! One endpoint signs or encrypts a body and another one checks it, so nothing in between may rewrite it. [`parse`]
//! therefore returns a [`Verbatim`]: the received text together with a typed, read-only view of it. Serializing a
//! `Verbatim` writes the text.
//!
//! ```
//! use countersign_wire::{decision::Decision, envelope::Envelope, parse};
//!
//! let received = br#"{
//!     "msgType": "decision.submit", "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H",
//!     "createdAt": "2026-02-21T12:01:00Z", "sender": { "approverId": "ada" },
//!     "body": { "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H", "artifactHashAlg": "SHA-256",
//!         "artifactHash": "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1",
//!         "repoRef": "repo:acme/widgets", "decision": "approve", "scope": "once",
//!         "expiresAt": "2026-02-21T12:05:00Z", "nonce": "bm9uY2UtMDAx", "sigAlg": "Ed25519",
//!         "signerKeyId": "key-01",
//!         "signature": "pjTOxA0GQZmKUAbYiVvSjXVwVQLfe3vKp8zHWAXeE53vBwxn0zibbDRSk7O8N8Xml0tUbTu1ZjxmMIcJXVdkBQ" }
//! }"#;
//!
//! let envelope = parse::<Envelope>(received)?;
//! let decision = envelope.body.view::<Decision>()?;
//! let key = "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg".parse()?;
//! decision.verify(&key)?;
//! # Ok::<(), countersign_wire::Error>(())
//! ```
//!
//! # Strictness
//!
//! Duplicate member names at any depth, lone surrogates, a byte order mark, more than
//! [`limits::MAX_NESTING`] levels and `null` for an optional member are rejected, because two parsers
//! could read such a text differently. Every rejection is an [`Error`] that names the member and the rule, and never
//! repeats the input.

#![warn(missing_docs)]

pub mod base64url;
mod der;
mod error;
pub mod limits;
mod object;

mod members;
mod raw;
mod strict;
mod text;
mod vocabulary;
mod written;

pub mod canonical;
pub mod extension;
pub mod fingerprint;
pub mod hash;
pub mod id;
pub mod keys;
pub mod mac;
pub mod timestamp;

pub mod core_envelope;
pub mod envelope;
pub mod framed;
pub mod msg_type;

// CONTRIBUTING: add a message type, step 2
pub mod ack;
pub mod api_key;
pub mod artifact;
pub mod decision;
pub mod exchange;
pub mod failure;
pub mod inbox;
pub mod invitation;
pub mod key_nonce;
pub mod lock;
pub mod machine;
pub mod pairing;
pub mod presence;
pub mod prompt;
pub mod refresh;
pub mod requested_actions;
pub mod session;
pub mod statement;

pub use error::{Error, JsonFault, MemberFault, Problem, Rule, SignatureFault};
pub use members::{FromJson, FromMembers, Members};
pub use raw::{RawObject, Verbatim, parse};
pub use text::Label;
