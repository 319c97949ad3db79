//! What the checker reports.

use std::fmt;

use serde::Serialize;

use super::super::history::{Operation, Push};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Invariant {
    SubmissionKept,
    DecisionKept,
    OneDecision,
    StateTable,
    Expiry,
    Delivered,
    NotPushedAgain,
    ReplayEqual,
    MailboxOrder,
    Tenants,
    Revoked,
    ActedOnce,
    AllOrNothing,
    Notified,
    NotNotifiedLate,
}

impl Invariant {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 15] = [
        Self::SubmissionKept,
        Self::DecisionKept,
        Self::OneDecision,
        Self::StateTable,
        Self::Expiry,
        Self::Delivered,
        Self::NotPushedAgain,
        Self::ReplayEqual,
        Self::MailboxOrder,
        Self::Tenants,
        Self::Revoked,
        Self::ActedOnce,
        Self::AllOrNothing,
        Self::Notified,
        Self::NotNotifiedLate,
    ];

    /// The sentence of docs/guarantees.md.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::SubmissionKept => "An acknowledged submission is never lost or changed.",
            Self::DecisionKept => "An acknowledged decision is never lost or changed.",
            Self::OneDecision => "At most one decision wins an exchange.",
            Self::StateTable => "An exchange takes no step outside of the state table, and none backward.",
            Self::Expiry => "An expired exchange is never decided, and none expires before its time.",
            Self::Delivered => "Every decision is delivered to its enforcer.",
            Self::NotPushedAgain => "An acknowledged message is not pushed again.",
            Self::ReplayEqual => "A replay has the same answer as the original.",
            Self::MailboxOrder => "The messages of a mailbox come in order, and a list has each item once.",
            Self::Tenants => "Nothing crosses from one tenant to another.",
            Self::Revoked => "A revoked credential does nothing after its bound.",
            Self::ActedOnce => "An enforcer of the client library acts on a `once` decision at most once.",
            Self::AllOrNothing => {
                "An operation with an unknown outcome has happened as a whole or not at all."
            }
            Self::Notified => "Whoever has a channel is notified of a request that waits, at least once.",
            Self::NotNotifiedLate => {
                "Nobody is notified of a request more than a second after its end was acknowledged."
            }
        }
    }
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
    /// The operations that contradict each other, or opened the connections that do.
    pub(crate) operations: Vec<u64>,
    pub(crate) clients: Vec<String>,
    /// What happened, for people.
    pub(crate) text: String,
}

impl Violation {
    pub(super) fn new(invariant: Invariant, tenant: &str, at: u64, text: String) -> Self {
        let (tenant, request) = (tenant.to_owned(), None);
        Self { invariant, tenant, request, at, operations: Vec::new(), clients: Vec::new(), text }
    }

    pub(super) fn about(self, request: &str) -> Self {
        Self { request: Some(request.to_owned()), ..self }
    }

    pub(super) fn with(self, operation: &Operation) -> Self {
        self.involving(operation.number, &operation.by.client)
    }

    pub(super) fn pushed(self, push: &Push) -> Self {
        self.involving(push.connection, &push.by.client)
    }

    pub(super) fn involving(mut self, operation: u64, client: &str) -> Self {
        self.operations.push(operation);
        if !self.clients.iter().any(|known| known == client) {
            self.clients.push(client.to_owned());
        }
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.at / 1_000_000, self.at / 1_000 % 1_000);
        let request = self.request.as_deref().unwrap_or("-");
        write!(f, "{seconds}.{millis:03} s, {:?}, {}, {request}: {}", self.invariant, self.tenant, self.text)
    }
}
