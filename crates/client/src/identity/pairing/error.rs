//! Why two ends are not paired.

use crate::random::NoRandomness;

/// Why two ends are not paired. Each is a reason to stop and to tell a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// The gateway relays other keys than those of the enforcer that shows the link.
    #[error(
        "the keys that the gateway relays are not those of the machine that shows the link: do not pair over this gateway"
    )]
    EnforcerReplaced,
    /// The approver's proof is missing or wrong.
    #[error(
        "whoever answered did not see the link, or the gateway replaced their keys; if the code was typed, start again with a typed code"
    )]
    ApproverUnproven,
    /// The relayed key is not a bundle of this format.
    #[error("the other side has no keys of a known format")]
    UnknownKeys,
    /// The gateway relays keys and does not say whose they are, and a typed code does not either.
    #[error("this gateway does not say which machine the code is of; name the machine, or use the link")]
    MachineNotNamed,
    /// Not a pairing code.
    #[error("this is not a pairing code")]
    NotACode,
    /// Not a pairing link.
    #[error("this is not a pairing link")]
    NotALink,
    /// Without randomness there is no pairing.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}
