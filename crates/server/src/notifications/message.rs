//! What a notification says. Pure.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use countersign_wire::{hash::Sha256Hex, id::RequestId, timestamp::Timestamp};
use serde_json::json;

use super::{
    batches::Waiting,
    contents::{Address, ChannelName},
};

/// Requests that a message names.
const MAX_NAMED: usize = 10;
const MAX_NAMED_ID: usize = 64;

/// A push service keeps a message for at most this long.
const MAX_TTL: u64 = 28 * 24 * 60 * 60;

const TITLE: &str = "Countersign";
const WAITING: &str = "A request is waiting.";
const TEST: &str = "This is a test. Notifications work.";

/// What a notification says.
pub(super) enum Message {
    /// These requests wait.
    Waiting(Vec<Waiting>),
    Test,
}

impl Message {
    pub(super) fn text(&self) -> &'static str {
        match self {
            Self::Waiting(_) => WAITING,
            Self::Test => TEST,
        }
    }

    /// For how many seconds a push service keeps it.
    pub(super) fn ttl(&self, now: Timestamp) -> u64 {
        match self {
            Self::Waiting(waiting) => {
                let last = waiting.iter().map(|one| one.expires_at).max().unwrap_or(now);
                last.since(now).as_secs().clamp(1, MAX_TTL)
            }
            Self::Test => 60,
        }
    }
}

pub(super) fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.unix_micros() / 1_000_000).unwrap_or_default()
}

/// A newer message replaces an older one that its service still has. One for each person; it tells the service nothing.
pub(super) fn topic(name: &ChannelName) -> String {
    let text = format!("{}\n{}", name.tenant, name.approver);
    let digest = Sha256Hex::digest(text.as_bytes()).to_string();
    URL_SAFE_NO_PAD.encode(&digest.as_bytes()[..24])
}

/// What a device reads: what Safari shows by itself, and for the page's own worker which requests it is about.
pub(super) fn content(name: &ChannelName, address: &Address, message: &Message) -> serde_json::Value {
    let (kind, requests) = match message {
        Message::Waiting(waiting) => ("request", waiting.as_slice()),
        Message::Test => ("test", &[][..]),
    };
    // The ids of our own clients are short; a longer one is found in the inbox.
    let named = requests.iter().rev().map(|one| &one.request).filter(|id| id.as_str().len() <= MAX_NAMED_ID);
    let newest: Vec<&RequestId> = named.take(MAX_NAMED).collect();
    json!({
        "web_push": 8030,
        "mutable": true,
        "notification": {"title": TITLE, "body": message.text(), "navigate": address.page, "tag": "countersign"},
        "countersign": {
            "version": 1,
            "kind": kind,
            "approverId": name.approver,
            "channel": name.channel,
            "requestIds": newest,
        },
    })
}
