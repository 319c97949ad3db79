//! Which enforcers are there, and how a client introduces itself on a WebSocket (section 4.6).

use serde::{Deserialize, Serialize};

use crate::{
    Error, FromMembers, Label, Members, id::EnforcerId, timestamp::Timestamp, vocabulary::vocabulary,
};

vocabulary! {
    /// Whether an enforcer can be reached.
    pub enum Status {
        /// It has a live channel, or called not long ago.
        Online = "online",
        /// It has not been heard of for a while.
        Offline = "offline",
    }

    /// How an enforcer was last heard of.
    pub enum Transport {
        /// Over a WebSocket.
        Websocket = "websocket",
        /// Over an SSE stream.
        Sse = "sse",
        /// Over a request.
        Poll = "poll",
    }

    /// The `msgType` of the control object.
    pub enum HelloType {
        /// The only one.
        Hello = "hello",
    }
}

/// One enforcer, as presence lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceRecord {
    /// The enforcer's id.
    pub enforcer_device_id: EnforcerId,
    /// Whether it can be reached.
    pub status: Status,
    /// When it was last heard of.
    pub last_seen_at: Timestamp,
    /// How.
    pub transport: Transport,
    /// What it works on, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Label>,
    /// What people call it, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<Label>,
    /// What it says it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

impl FromMembers<'_> for PresenceRecord {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            enforcer_device_id: members.required("enforcerDeviceId")?,
            status: members.required("status")?,
            last_seen_at: members.required("lastSeenAt")?,
            transport: members.required("transport")?,
            workspace_name: members.optional("workspaceName")?,
            enforcer_label: members.optional("enforcerLabel")?,
            capabilities: members.optional("capabilities")?,
        })
    }
}

/// What a client says it can do; what is not said is not claimed. Members beside these are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// It takes pushed messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
    /// It polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<bool>,
    /// It reads SSE streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse: Option<bool>,
}

impl FromMembers<'_> for Capabilities {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            push: members.optional("push")?,
            poll: members.optional("poll")?,
            sse: members.optional("sse")?,
        })
    }
}

/// `hello`: a bare control object. Members beside these are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Always `hello`.
    pub msg_type: HelloType,
    /// What the client can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// What it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Label>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<Label>,
}

impl FromMembers<'_> for Hello {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            msg_type: members.required("msgType")?,
            capabilities: members.optional("capabilities")?,
            workspace_name: members.optional("workspaceName")?,
            enforcer_label: members.optional("enforcerLabel")?,
        })
    }
}
