//! Which enforcers are there. Cheap to lose, and never a reason to refuse anything. Pure.

use std::time::Duration;

use countersign_wire::{
    Label,
    id::EnforcerId,
    presence::{Capabilities, PresenceRecord, Status, Transport},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

/// For how long an enforcer counts as online after its last call.
pub const POLLER_LIFE: Duration = Duration::from_mins(10);

/// Calls within this time of one that was noted are not noted; a call counts for all of [`POLLER_LIFE`] nevertheless.
pub const NOTED_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// When and how an enforcer was last heard of, and what it said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// When.
    pub last_seen_at: Timestamp,
    /// How.
    pub transport: Transport,
    /// What it works on.
    pub workspace_name: Option<Label>,
    /// What people call it.
    pub enforcer_label: Option<Label>,
    /// What it says it can do.
    pub capabilities: Option<Capabilities>,
}

impl Presence {
    /// The record that others see. `channel` is what its newest live channel is, where it has one.
    pub fn record(&self, enforcer: EnforcerId, channel: Option<Transport>, now: Timestamp) -> PresenceRecord {
        let called_lately = now < self.last_seen_at.plus(POLLER_LIFE + NOTED_AGAIN_AFTER);
        PresenceRecord {
            enforcer_device_id: enforcer,
            status: if channel.is_some() || called_lately { Status::Online } else { Status::Offline },
            last_seen_at: if channel.is_some() { now } else { self.last_seen_at },
            transport: channel.unwrap_or(self.transport),
            workspace_name: self.workspace_name.clone(),
            enforcer_label: self.enforcer_label.clone(),
            capabilities: self.capabilities,
        }
    }
}
