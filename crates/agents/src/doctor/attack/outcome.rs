//! What came of an attempt.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// What came of one attempt from one point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum Outcome {
    /// It was refused, and how.
    Held { by: String },
    /// It succeeded: nothing keeps an agent from it.
    Open,
    /// It could not be tried, and why.
    NotTried { why: String },
}

/// Why an attempt shows nothing, among the errors of which all others say that it was refused.
#[derive(Debug)]
pub(super) struct ShowsNothing(pub(super) String);

impl fmt::Display for ShowsNothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShowsNothing {}

impl Outcome {
    /// In a place of its own, where what is hidden is refused too.
    pub(super) fn in_place(tried: io::Result<()>) -> Self {
        match tried {
            Ok(()) => Self::Open,
            Err(error) if error.get_ref().and_then(|why| why.downcast_ref::<ShowsNothing>()).is_some() => {
                Self::NotTried { why: error.to_string() }
            }
            Err(error) => Self::Held { by: error.to_string() },
        }
    }

    /// On the machine itself.
    pub(super) fn on_machine(tried: io::Result<()>) -> Self {
        match tried {
            Ok(()) => Self::Open,
            Err(error) if is_open(error.kind()) => Self::Open,
            Err(error) if is_refusal(error.kind()) => Self::Held { by: error.to_string() },
            Err(error) => Self::NotTried { why: error.to_string() },
        }
    }
}

/// Only two answers say that this account may not.
pub(super) fn is_refusal(refused: io::ErrorKind) -> bool {
    matches!(refused, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// A program that runs can't be changed by whoever may change it either.
pub(super) fn is_open(refused: io::ErrorKind) -> bool {
    refused == io::ErrorKind::ExecutableFileBusy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_that_this_account_may_not_holds_on_the_machine() {
        let on_machine = |kind: io::ErrorKind| Outcome::on_machine(Err(kind.into()));
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            assert!(matches!(on_machine(kind), Outcome::Held { .. }), "{kind}");
        }
        for kind in [
            io::ErrorKind::NotFound,
            io::ErrorKind::AddrInUse,
            io::ErrorKind::DirectoryNotEmpty,
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::StorageFull,
        ] {
            assert!(matches!(on_machine(kind), Outcome::NotTried { .. }), "{kind}");
        }
        assert_eq!(on_machine(io::ErrorKind::ExecutableFileBusy), Outcome::Open);
    }

    #[test]
    fn what_shows_nothing_does_not_hold() {
        let nothing = io::Error::other(ShowsNothing("the hook says neither".to_owned()));
        assert!(matches!(Outcome::in_place(Err(nothing)), Outcome::NotTried { .. }));
        assert!(matches!(Outcome::in_place(Err(io::ErrorKind::NotFound.into())), Outcome::Held { .. }));
    }
}
