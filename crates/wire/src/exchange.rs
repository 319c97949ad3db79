//! How an exchange stands (section 2.5), and the short answers that say so.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject, hash::Sha256Hex, id::RequestId, timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The states of an exchange.
    pub enum State {
        /// Waiting for a person.
        PendingApproval = "pendingApproval",
        /// Decided; the enforcer has not acknowledged the decision.
        Decided = "decided",
        /// The enforcer has acknowledged the decision.
        Delivered = "delivered",
        /// Nobody decided in time.
        Expired = "expired",
        /// The enforcer took it back.
        Withdrawn = "withdrawn",
        /// The operator ended it.
        Cancelled = "cancelled",
    }
}

/// The body of `exchange.status`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeStatus<'a> {
    /// The exchange.
    pub request_id: RequestId,
    /// Its state.
    pub state: State,
    /// When the store took it in.
    pub created_at: Timestamp,
    /// Until when it can be decided.
    pub expires_at: Timestamp,
    /// What is to be decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_hash: Option<Sha256Hex>,
    /// The decision as it was submitted, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for ExchangeStatus<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let status = Self {
            request_id: members.required("requestId")?,
            state: members.required("state")?,
            created_at: members.required("createdAt")?,
            expires_at: members.required("expiresAt")?,
            artifact_hash: members.optional("artifactHash")?,
            decision: members.optional("decision")?,
        };
        members.close()?;
        Ok(status)
    }
}

/// The body of `artifact.accepted`, `decision.accepted` and `exchange.withdrawn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The exchange.
    pub request_id: RequestId,
    /// Its state after what was accepted.
    pub state: State,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_hash: Option<Sha256Hex>,
}

impl FromMembers<'_> for Accepted {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            request_id: members.required("requestId")?,
            state: members.required("state")?,
            artifact_hash: members.optional("artifactHash")?,
        })
    }
}
