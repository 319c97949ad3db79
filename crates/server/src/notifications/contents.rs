//! What is kept, encrypted, of a channel: where it leads, and its keys.

use countersign_core::model::notification::ChannelId;
use countersign_wire::{
    id::{ApproverId, TenantId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

/// Names a channel among those of all people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ChannelName {
    pub(crate) tenant: TenantId,
    pub(crate) approver: ApproverId,
    pub(crate) channel: ChannelId,
}

/// The address of a channel with everything that is needed to send to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) endpoint: String,
    /// The page that a notification opens.
    pub(crate) page: String,
    pub(crate) service: Service,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Service {
    /// Web Push or `UnifiedPush`.
    #[serde(rename_all = "camelCase")]
    Push {
        p256dh: String,
        auth: String,
        /// The public key of the sender that the subscription was made for.
        sender: String,
    },
    #[serde(rename_all = "camelCase")]
    Webhook {
        /// What messages are signed with; the newest first.
        secrets: Vec<WebhookSecret>,
        template: Option<String>,
        content_type: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WebhookSecret {
    pub(crate) secret: String,
    /// Until when messages are signed with it; `None` for the newest.
    pub(crate) until: Option<Timestamp>,
}

impl ChannelName {
    /// What its address is encrypted for, so that it opens for no other channel.
    pub(crate) fn sealed_for(&self) -> String {
        // No id has a line break.
        format!("notifications\n{}\n{}\n{}", self.tenant, self.approver, self.channel)
    }
}
