//! The presence of enforcers, and `hello`, with which a client describes itself on a WebSocket (docs/protocol.md#websocket).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

use crate::{
    Error, FromJson as _, FromMembers, Label, Members, Verbatim,
    id::EnforcerId,
    machine::{self, MachineReport},
    parse,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// Whether an enforcer is reachable; informational only.
    pub enum Status {
        /// It has a live channel, or called within the last ten minutes.
        Online = "online",
        /// It has no live channel and has not called for ten minutes.
        Offline = "offline",
    }

    /// The transport of an enforcer's newest live channel, else of its last call.
    pub enum Transport {
        /// A WebSocket on `/v1/ws`.
        Websocket = "websocket",
        /// An SSE stream, which carries decisions only.
        Sse = "sse",
        /// Any other HTTP request, a wait included.
        Poll = "poll",
    }

    /// The `msgType` of the control object.
    pub enum HelloType {
        /// The only possible value, `hello`.
        Hello = "hello",
    }
}

/// The presence of one enforcer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceRecord {
    /// The enforcer's id, under the name that the specification gives it here.
    pub enforcer_device_id: EnforcerId,
    /// Whether it is reachable, by the store's clock.
    pub status: Status,
    /// The time of its last recorded call; recorded with a short delay.
    pub last_seen_at: Timestamp,
    /// The transport of its newest live channel, else of its last call.
    pub transport: Transport,
    /// The workspace that it reported; absent if it reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Label>,
    /// The name for people that it reported; absent if it reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_label: Option<Label>,
    /// The capabilities that it reported; absent if it reported none.
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

/// The capabilities that a client reports; an absent one is not claimed. Members that have no namespace, other than these
/// three, are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Whether it accepts pushed messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
    /// Whether it polls with waits; informational.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<bool>,
    /// Whether it can read SSE streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sse: Option<bool>,
    /// Capabilities outside of the specification, under namespaced keys such as `org.example.key`: any JSON, as it was
    /// written.
    #[serde(flatten)]
    pub extensions: BTreeMap<String, JsonText>,
}

/// A capability of ours: an approver's client with `true` hears at once of requests that have ended elsewhere
/// (docs/protocol.md#websocket).
pub const STATUS_CAPABILITY: &str = "org.countersign.status";

impl Capabilities {
    /// Whether the client wants to hear of requests that have ended elsewhere.
    pub fn wants_status(&self) -> bool {
        self.extensions.get(STATUS_CAPABILITY).is_some_and(|value| &*value.0 == "true")
    }

    /// What an enforcer says of its machine; `None` if it says nothing.
    pub fn machine(&self) -> Option<Result<MachineReport, Error>> {
        let text = self.extensions.get(machine::KEY)?;
        Some(parse::<MachineReport>(text.0.as_bytes()).map(Verbatim::into_view))
    }

    /// Bytes that they take as JSON, without what is ignored.
    pub fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |text| text.len())
    }
}

impl FromMembers<'_> for Capabilities {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let (push, poll, sse) =
            (members.optional("push")?, members.optional("poll")?, members.optional("sse")?);
        let namespaced = members.rest().filter(|(name, _)| name.contains('.'));
        let extensions = namespaced.map(|(name, value)| (name.to_owned(), JsonText::from(value))).collect();
        Ok(Self { push, poll, sse, extensions })
    }
}

/// As it is stored: what was accepted once is read again without its limits.
impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(reader)?;
        Self::from_json(&text).map_err(de::Error::custom)
    }
}

/// A JSON value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(Box<str>);

impl From<&RawValue> for JsonText {
    fn from(value: &RawValue) -> Self {
        Self(value.get().into())
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(ser::Error::custom)?.serialize(writer)
    }
}

/// `hello`: a bare control object, without an envelope. Other members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Always `hello`, which distinguishes it from other control objects.
    pub msg_type: HelloType,
    /// The client's capabilities; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The client's workspace; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<Label>,
    /// The client's name for people; absent if it reports none.
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
