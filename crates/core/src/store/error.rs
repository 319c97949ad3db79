//! Why a store could not answer.

use std::{error::Error, fmt, sync::Arc};

// CONTRIBUTING: add a store, step 1
/// Why a store could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Its queue is full, or the caller waited too long for a turn. Nothing was written.
    #[error("store overloaded")]
    Overloaded,
    /// The commit may or may not have happened. Never to be taken for success.
    #[error("commit outcome unknown")]
    OutcomeUnknown,
    /// The tenant is on another shard, or on its way there. Nothing was written.
    #[error("the tenant is being moved to another shard")]
    Moved,
    /// The engine can't be reached, or refuses. Nothing was written.
    #[error("store unavailable")]
    Unavailable(#[source] Cause),
    /// A stored value can't be decoded.
    #[error("store corrupt")]
    Corrupt(#[source] Cause),
}

impl StoreError {
    /// The engine can't be reached, or refuses; nothing was written.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Cause::new(cause))
    }

    /// A stored value can't be decoded.
    pub fn corrupt(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Corrupt(Cause::new(cause))
    }
}

/// The engine's own error. Shared, because one failed batch is answered to all of its callers.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Causes are compared by their text, which is all that a test can know of them.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}

/// An error and its causes in one line, each said once. Drivers call themselves "db error" and leave the reason to
/// their source.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
