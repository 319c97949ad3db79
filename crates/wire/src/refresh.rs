//! `refresh.request`: an approver asks the enforcer to submit again.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    Error, FromJson, FromMembers, Members,
    id::{MsgId, RequestId},
    msg_type::MsgType,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

/// The body of a `refresh.request` envelope. Other members are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RefreshBody {
    /// A text for the enforcer; absent if the approver gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FromJson<'_> for RefreshBody {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        Ok(Self { reason: Members::of(value)?.optional("reason")? })
    }
}

vocabulary! {
    /// The `msgType` of the control object.
    pub enum RefreshType {
        /// The only possible value, `refresh.request`.
        RefreshRequest = "refresh.request",
    }
}

impl From<RefreshType> for MsgType {
    fn from(_: RefreshType) -> Self {
        Self::RefreshRequest
    }
}

/// `refresh.request` as an enforcer gets it on a WebSocket: a bare control object (docs/protocol.md#websocket).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshRequest {
    /// Always `refresh.request`, which distinguishes it from other control objects.
    pub msg_type: RefreshType,
    /// Identifies this message in its acknowledgement.
    pub msg_id: MsgId,
    /// The exchange to submit again, under a new request id.
    pub request_id: RequestId,
    /// When the gateway accepted it, by the store's clock.
    pub created_at: Timestamp,
    /// The reason that the approver gave; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FromMembers<'_> for RefreshRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            msg_type: members.required("msgType")?,
            msg_id: members.required("msgId")?,
            request_id: members.required("requestId")?,
            created_at: members.required("createdAt")?,
            reason: members.optional("reason")?,
        })
    }
}
