//! The status of an exchange (docs/protocol.md#bodies), and the short responses that contain it.

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject, hash::Sha256Hex, id::RequestId, timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The state of an exchange; `docs/states.md` has all transitions.
    pub enum ExchangeState {
        /// No approver has decided yet, and `expiresAt` has not passed.
        PendingApproval = "pendingApproval",
        /// An approver has decided; the enforcer has not acknowledged the decision.
        Decided = "decided",
        /// The enforcer has acknowledged the decision; final.
        Delivered = "delivered",
        /// `expiresAt` passed without a decision; final.
        Expired = "expired",
        /// The enforcer withdrew it before a decision; final.
        Withdrawn = "withdrawn",
        /// The operator cancelled it before a decision; final.
        Cancelled = "cancelled",
    }
}

/// The body of `exchange.status`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeStatus<'a> {
    /// The id of the exchange.
    pub request_id: RequestId,
    /// The state at the time of the response.
    pub state: ExchangeState,
    /// When the store accepted the submission, by the store's clock.
    pub created_at: Timestamp,
    /// The time from which it can't be decided any more.
    pub expires_at: Timestamp,
    /// The hash that a decision has to name. Optional in the specification; this gateway always sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_hash: Option<Sha256Hex>,
    /// The decision as it was submitted; absent unless the state is `decided` or `delivered`.
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
    /// The id of the exchange.
    pub request_id: RequestId,
    /// The state after the accepted request.
    pub state: ExchangeState,
    /// The hash of the artifact. Optional in the specification; this gateway always sends it.
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
