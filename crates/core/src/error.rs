//! Why a use case did not do what it was asked for.

use std::time::Duration;

use countersign_wire::failure::Failure;

use crate::{
    model::{exchange::TransitionError, pairing::PairingError, session::SessionError},
    store::StoreError,
};

/// Why a use case did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("exchange: {0}")]
    Exchange(#[from] TransitionError),
    #[error("pairing: {0}")]
    Pairing(#[from] PairingError),
    #[error("session: {0}")]
    Session(#[from] SessionError),
    /// The request itself is at fault.
    #[error("rejected: {}", .0.code())]
    Rejected(Failure),
    /// One member of the request is at fault.
    #[error("rejected: {}", failure.code())]
    Invalid {
        failure: Failure,
        #[source]
        fault: countersign_wire::Error,
    },
    /// The tenant's policy does not permit it; the name is that of the policy's member.
    #[error("rejected by the policy {0}")]
    Policy(&'static str),
    /// A part of the request is larger than `limit` bytes.
    #[error("{member} is larger than {limit} bytes")]
    TooLarge { member: &'static str, limit: usize },
    /// The limit allows another attempt after this time.
    #[error("rate limited")]
    RateLimited(Duration),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The failure that the client sees.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Exchange(error) => error.failure(),
            Self::Pairing(error) => error.failure(),
            Self::Session(error) => error.failure(),
            Self::Rejected(failure) | Self::Invalid { failure, .. } => *failure,
            Self::Policy(_) => Failure::PolicyDeny,
            Self::TooLarge { .. } => Failure::TooLarge,
            Self::RateLimited(_) => Failure::RateLimited,
            Self::Store(StoreError::Corrupt(_)) => Failure::Internal,
            Self::Store(
                StoreError::Overloaded
                | StoreError::OutcomeUnknown
                | StoreError::Moved
                | StoreError::Unavailable(_),
            ) => Failure::Unavailable,
        }
    }

    /// A fault inside a body whose hash the gateway recomputes.
    pub fn in_hashed_body(fault: countersign_wire::Error) -> Self {
        let failure = match &fault {
            countersign_wire::Error::UnsafeInteger => Failure::Canonicalization,
            countersign_wire::Error::HashMismatch => Failure::HashMismatch,
            _ => Failure::Structure,
        };
        Self::Invalid { failure, fault }
    }

    /// Rejects a part of a request that is larger than `limit` bytes.
    pub(crate) fn check_size(member: &'static str, size: usize, limit: usize) -> Result<(), Self> {
        if size <= limit { Ok(()) } else { Err(Self::TooLarge { member, limit }) }
    }

    /// A member of the request breaks a rule of the protocol.
    pub(crate) fn breaks(member: &'static str, rule: &'static str) -> Self {
        Self::Invalid { failure: Failure::Validation, fault: countersign_wire::Error::breaks(member, rule) }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Rejected(failure)
    }
}
