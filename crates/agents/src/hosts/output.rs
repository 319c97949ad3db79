//! How a hook ends, in the words of a host.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a host is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// What the host reads as the verdict.
    pub stdout: String,
    /// What the host shows to the agent or its person.
    pub stderr: String,
    /// The exit code. 2 denies in every host, if stderr is not empty.
    pub code: u8,
}

impl Output {
    /// Denied in the one way that every host knows.
    pub fn refused(reason: &str) -> Self {
        Self { stderr: format!("{reason}\n"), code: 2, ..Self::default() }
    }

    /// A verdict that the host reads as JSON.
    pub fn json(value: &Value) -> Self {
        Self { stdout: format!("{value}\n"), ..Self::default() }
    }

    /// Denied in every way that a host knows: hosts differ in what they obey, and a denial must not depend on it.
    pub fn denied(value: &Value, reason: &str) -> Self {
        Self { stdout: format!("{value}\n"), stderr: format!("{reason}\n"), code: 2 }
    }
}
