//! The operations that are measured, and what has to be able to do all of them.

use serde::Serialize;

use crate::Failure;

/// What is measured, in the order of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Seal,
    Open,
    Sign,
    Verify,
}

impl Operation {
    pub(super) const ALL: [Self; 4] = [Self::Seal, Self::Open, Self::Sign, Self::Verify];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Seal => "build and seal a request",
            Self::Open => "open and check it",
            Self::Sign => "sign a decision about it",
            Self::Verify => "verify the decision",
        }
    }
}

/// An implementation of every operation. Each call returns the number of bytes that it made or read.
pub(super) trait Side {
    fn run(&self, operation: Operation) -> Result<usize, Failure>;
}
