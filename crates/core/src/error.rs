//! Why a use case did not do what it was asked for.

use countersign_wire::failure::Failure;

use crate::{exchange, pairing, session, store::StoreError};

/// Why a use case did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The exchange machine refused.
    #[error("refused by the exchange: {0:?}")]
    Exchange(exchange::Refusal),
    /// The pairing refused.
    #[error("refused by the pairing: {0:?}")]
    Pairing(pairing::Refusal),
    /// The session refused.
    #[error("refused by the session: {0:?}")]
    Session(session::Refusal),
    /// Something about the request.
    #[error("refused: {}", .0.code())]
    Refused(Failure),
    /// The request, with the member at fault.
    #[error("refused: {}: {fault}", failure.code())]
    Faulty {
        /// What the client is told.
        failure: Failure,
        /// Which member, and why.
        fault: countersign_wire::Error,
    },
    /// Too often; to be tried again after this time.
    #[error("refused: too often")]
    TryLater(std::time::Duration),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// What the client is told.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Exchange(refusal) => refusal.failure(),
            Self::Pairing(refusal) => refusal.failure(),
            Self::Session(refusal) => refusal.failure(),
            Self::Refused(failure) | Self::Faulty { failure, .. } => *failure,
            Self::TryLater(_) => Failure::RateLimited,
            Self::Store(StoreError::Corrupt(_)) => Failure::Internal,
            Self::Store(StoreError::Overloaded | StoreError::OutcomeUnknown | StoreError::Unavailable(_)) => {
                Failure::Unavailable
            }
        }
    }

    /// A fault inside a body whose hash the gateway recomputes.
    pub fn in_hashed_body(fault: countersign_wire::Error) -> Self {
        let failure = match &fault {
            countersign_wire::Error::UnsafeInteger => Failure::Canonicalization,
            countersign_wire::Error::HashMismatch => Failure::HashMismatch,
            _ => Failure::Structure,
        };
        Self::Faulty { failure, fault }
    }
}

impl From<exchange::Refusal> for Error {
    fn from(refusal: exchange::Refusal) -> Self {
        Self::Exchange(refusal)
    }
}

impl From<pairing::Refusal> for Error {
    fn from(refusal: pairing::Refusal) -> Self {
        Self::Pairing(refusal)
    }
}

impl From<session::Refusal> for Error {
    fn from(refusal: session::Refusal) -> Self {
        Self::Session(refusal)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}
