//! Which enforcers are online. Cheap to lose, and never a reason to reject anything. Pure.

use std::time::Duration;

use countersign_wire::{
    Label,
    id::EnforcerId,
    presence::{Capabilities, PresenceRecord, Status, Transport},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Kind, Stored};

/// How long an enforcer counts as online after its last call.
pub const ONLINE_AFTER_CALL: Duration = Duration::from_mins(10);

/// A call within this time of a recorded one is not recorded; it counts for all of [`ONLINE_AFTER_CALL`] nevertheless.
pub const PRESENCE_WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// How often the presence of an enforcer that does nothing but hold a channel open is renewed, once it would be deleted
/// otherwise. So it is known to a day when it went offline, even if its node died and recorded nothing.
pub(crate) const PRESENCE_TOUCH_INTERVAL: Duration = Duration::from_hours(24);

/// When and how an enforcer was last seen, and what it said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    pub last_seen_at: Timestamp,
    pub transport: Transport,
    pub workspace_name: Option<Label>,
    pub enforcer_label: Option<Label>,
    /// From the `hello` of its last WebSocket; `None` if it never sent one.
    pub capabilities: Option<Capabilities>,
    /// When its last channel was closed: it is offline until it is seen after that. `None` if it never had one.
    #[serde(default)]
    pub closed_at: Option<Timestamp>,
}

impl Stored for Presence {
    const KIND: Kind = Kind::Presence;
}

impl Presence {
    /// The record that others see. `channel` is the transport of its newest live channel; `None` if it has none.
    pub fn record(&self, enforcer: EnforcerId, channel: Option<Transport>, now: Timestamp) -> PresenceRecord {
        let seen_since_closing = self.closed_at.is_none_or(|closed_at| closed_at < self.last_seen_at);
        let called_lately =
            seen_since_closing && now < self.last_seen_at.plus(ONLINE_AFTER_CALL + PRESENCE_WRITE_INTERVAL);
        PresenceRecord {
            enforcer_device_id: enforcer,
            status: if channel.is_some() || called_lately { Status::Online } else { Status::Offline },
            last_seen_at: if channel.is_some() { now } else { self.last_seen_at },
            transport: channel.unwrap_or(self.transport),
            workspace_name: self.workspace_name.clone(),
            enforcer_label: self.enforcer_label.clone(),
            capabilities: self.capabilities.clone(),
        }
    }
}
