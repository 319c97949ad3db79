//! How far a request has come, as the gateway tells it: for a line on a screen, and for no decision.

use countersign_wire::{
    Error, FromJson, FromMembers, Members,
    exchange::ExchangeState,
    id::{ApproverId, RequestId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde_json::{json, value::RawValue};

use crate::{
    ends::{approver::Approver, enforcer::Enforcer},
    gateway::http::{Call, CallError, segment},
};

/// How far a request has come. It is the gateway's word: nothing of it is signed, so nothing may depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The state of the exchange.
    pub state: ExchangeState,
    /// Everybody that it was sent to, as far as the gateway knows them.
    pub approvers: Vec<ApproverProgress>,
}

/// How far a request has come with one approver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverProgress {
    /// Who it is.
    pub approver_id: ApproverId,
    /// When the gateway rang: it put the request into their mailbox, and pushed it to the devices that were connected.
    pub rung: Option<Timestamp>,
    /// When a device of theirs first said that it has the request.
    pub received: Option<Timestamp>,
    /// When a device of theirs first said that it shows the request.
    pub seen: Option<Timestamp>,
    /// What became of notifications, on each of their channels. Other gateways than ours have none.
    pub notified: Vec<Notified>,
}

/// A notification on one of a person's channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified {
    /// What the person calls the channel.
    pub label: String,
    /// When its push service took the notification.
    pub accepted: Option<Timestamp>,
    /// When the device said that it shows it.
    pub displayed: Option<Timestamp>,
}

impl FromMembers<'_> for Notified {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            label: members.required("label")?,
            accepted: members.optional("acceptedAt")?,
            displayed: members.optional("displayedAt")?,
        })
    }
}

/// A time, or `null`.
struct Maybe(Option<Timestamp>);

impl FromJson<'_> for Maybe {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        if value.get() == "null" {
            Ok(Self(None))
        } else {
            Timestamp::from_json(value).map(|at| Self(Some(at)))
        }
    }
}

impl FromMembers<'_> for ApproverProgress {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            approver_id: members.required("approverId")?,
            rung: members.required::<Maybe>("rung")?.0,
            received: members.required::<Maybe>("received")?.0,
            seen: members.required::<Maybe>("seen")?.0,
            notified: members.optional("notified")?.unwrap_or_default(),
        })
    }
}

impl FromMembers<'_> for Progress {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self { state: members.required("state")?, approvers: members.required("approvers")? })
    }
}

/// What a device says of a request that it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It has the request.
    Received,
    /// It shows the request to a person.
    Seen,
}

impl Acknowledgement {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Seen => "seen",
        }
    }
}

impl Enforcer {
    /// How far one of its requests has come.
    pub async fn progress(&self, request_id: &RequestId) -> Result<Progress, CallError> {
        let path = format!("/platform/v1/exchanges/{}/progress", segment(request_id.as_str()));
        self.http.send(&Call::get(path)).await?.object()
    }
}

impl Approver {
    /// Tells the enforcer, through the gateway, that the request has arrived or is shown. It is not pushed again then, and
    /// stays in the inbox.
    pub async fn acknowledge(
        &self,
        request_id: &RequestId,
        status: Acknowledgement,
    ) -> Result<(), CallError> {
        let envelope = json!({
            "msgType": MsgType::AckSubmit, "requestId": request_id, "createdAt": self.clock.now(),
            "sender": { "approverId": self.id }, "body": { "status": status.as_str() },
        });
        self.http.send(&Call::post("/v1/acks", envelope.to_string())).await.map(drop)
    }
}
