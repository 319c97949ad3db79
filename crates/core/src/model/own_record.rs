//! What the gateway keeps for itself: an account at an authority of certificates, for example. Its nodes encrypt it, and the
//! store can't read it.

use countersign_wire::timestamp::Timestamp;
use serde::{Deserialize, Serialize};

use super::channels::NodeId;
use crate::store::{Kind, Stored};

/// One record for all nodes, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnRecord {
    /// `None` before it was written first.
    pub sealed: Option<Sealed>,
    /// Who works on it.
    pub claim: Option<Claim>,
    /// Attempts that failed since the last one that did not.
    pub failures: u32,
    /// The next attempt is not before this.
    pub not_before: Option<Timestamp>,
}

/// Content that only nodes can decrypt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Names the key that it is encrypted with.
    pub key_id: String,
    /// Nonce, ciphertext and tag, in base64.
    pub text: String,
}

/// A node that works on the record, so that no other does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    pub node: NodeId,
    pub until: Timestamp,
}

impl Stored for OwnRecord {
    const KIND: Kind = Kind::Own;
}

impl OwnRecord {
    /// Whether a node may work on it now.
    pub fn is_free(&self, node: &NodeId, now: Timestamp) -> bool {
        let by_other = self.claim.as_ref().is_some_and(|claim| claim.node != *node && claim.until > now);
        !by_other && self.not_before.is_none_or(|not_before| not_before <= now)
    }

    /// Whether the node has claimed it, and may write it.
    pub fn is_claimed_by(&self, node: &NodeId, now: Timestamp) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.node == *node && claim.until > now)
    }
}
