//! Pairing that a gateway can't subvert: what is compared, proven and signed (docs/pairing.md). No I/O.
//!
//! The gateway relays both public keys, so it could replace them. Whoever scans the enforcer's [`link::PairingLink`] has
//! its fingerprint and a secret from another channel than the gateway: the approver compares the fingerprint, and proves
//! the secret over the [`Transcript`]. Whoever types a code has neither; then people compare thirty digits that both
//! screens derive from the transcript and from random bytes of the approver.

mod error;

pub mod code;
pub mod link;
pub mod recovery;
pub mod statement;

mod transcript;

mod answer;

pub use answer::{Answer, answer_link, answer_typed, new_link, typed_digits, verify_link};
pub use error::PairingError;
pub use transcript::Transcript;
