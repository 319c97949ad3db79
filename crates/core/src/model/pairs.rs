//! The pairs of an enforcer and an approver, one for each of the approver's devices. Pure.

use countersign_wire::{
    Label,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, RoutingToken},
    keys::{PublicKey, VerifyingKey},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::viewer::Viewer;
use crate::store::{Key, Kind, Stored};

/// Devices of one approver that one enforcer can be paired with. More than there are signing keys: a device without one
/// needs its place too.
const MAX_DEVICES: usize = 64;

/// A device that is paired again gets a new routing token. So many stay valid, for an enforcer that still uses an old
/// one.
const MAX_ROUTING_TOKENS: usize = 16;

/// Names one pair: who, and with which device. Pairs are listed in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairId {
    pub enforcer: EnforcerId,
    pub approver: ApproverId,
    /// The hash of the key that the approver's device sent. See `device`.
    pub device: Sha256Hex,
}

impl PairId {
    /// Whether the viewer is one of the two parties, or may act as one.
    pub(crate) fn is_seen_by(&self, viewer: Viewer<'_>) -> bool {
        match viewer {
            Viewer::Enforcer(enforcer) => self.enforcer == *enforcer,
            Viewer::Approver(approver) => self.approver == *approver,
            Viewer::AnyEnforcer | Viewer::AnyApprover | Viewer::Operator => true,
        }
    }
}

/// An enforcer and one device of an approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub device: Sha256Hex,
    /// The key that it registered; `None` if it sent no key bundle.
    pub signing_key: Option<VerifyingKey>,
    pub enforcer_label: Option<Label>,
    pub workspace_name: Option<Label>,
    /// `None` for a pair from before this was recorded.
    pub created_at: Option<Timestamp>,
    /// All tokens that it was given and that are valid, the oldest first.
    pub routing_tokens: Vec<RoutingToken>,
}

/// All pairs of one enforcer and one approver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// One for each device, in the order of pairing.
    pub pairs: Vec<Pair>,
}

impl Stored for Pairs {
    const KIND: Kind = Kind::Pairs;
}

/// What a completed pairing changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AddedPair {
    /// False if this device was paired with this enforcer before.
    pub(crate) is_new: bool,
    /// A token that is one too many.
    pub(crate) ended: Option<RoutingToken>,
}

/// The record of the pairs of these two. No id contains a line break, so no two couples have the same.
pub(crate) fn pairs_record(enforcer: &EnforcerId, approver: &ApproverId) -> Key {
    Pairs::key(format_args!("{enforcer}\n{approver}"))
}

/// Identifies a device by its key: the signing key of a bundle, whose proof differs each time, or the whole text of
/// anything else.
pub(crate) fn device(public_key: &PublicKey) -> Sha256Hex {
    match public_key {
        PublicKey::Bundle(bundle) => Sha256Hex::digest(bundle.signing.as_bytes()),
        PublicKey::Opaque(text) => Sha256Hex::digest(text.as_bytes()),
    }
}

impl Pairs {
    /// The pairs as they are stored. Two that were paired before pairs were recorded have one, of which nothing is
    /// known.
    pub(crate) fn of(known: Option<&Self>, are_paired: bool) -> Self {
        let unrecorded = || Pair {
            device: Sha256Hex::from_bytes([0; 32]),
            signing_key: None,
            enforcer_label: None,
            workspace_name: None,
            created_at: None,
            routing_tokens: Vec::new(),
        };
        match known {
            Some(known) => known.clone(),
            None if are_paired => Self { pairs: vec![unrecorded()] },
            None => Self::default(),
        }
    }

    /// Adds a pair; a device that was paired before gets a new token and new labels. `None` if there are too many.
    pub(crate) fn add(&mut self, pair: Pair) -> Option<AddedPair> {
        let Some(known) = self.pairs.iter_mut().find(|known| known.device == pair.device) else {
            self.pairs.push(pair);
            return (self.pairs.len() <= MAX_DEVICES).then_some(AddedPair { is_new: true, ended: None });
        };
        known.enforcer_label = pair.enforcer_label;
        known.workspace_name = pair.workspace_name;
        known.routing_tokens.extend(pair.routing_tokens);
        let too_many = known.routing_tokens.len() > MAX_ROUTING_TOKENS;
        let ended = too_many.then(|| known.routing_tokens.remove(0));
        Some(AddedPair { is_new: false, ended })
    }

    /// Takes the pair of this device out; `None` if there is none.
    pub(crate) fn remove(&mut self, device: Sha256Hex) -> Option<Pair> {
        let place = self.pairs.iter().position(|pair| pair.device == device)?;
        Some(self.pairs.remove(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(key: &str, token: &str) -> Pair {
        Pair {
            device: device(&key.parse().unwrap()),
            signing_key: None,
            enforcer_label: None,
            workspace_name: None,
            created_at: None,
            routing_tokens: vec![token.parse().unwrap()],
        }
    }

    #[test]
    fn a_device_that_is_paired_again_keeps_its_last_tokens() {
        let mut pairs = Pairs::default();
        assert!(pairs.add(pair("phone", "token-0")).unwrap().is_new);
        for number in 1..16 {
            let added = pairs.add(pair("phone", &format!("token-{number}"))).unwrap();
            assert_eq!(added, AddedPair { is_new: false, ended: None });
        }
        let added = pairs.add(pair("phone", "token-16")).unwrap();
        assert_eq!(added.ended, Some("token-0".parse().unwrap()));
        assert_eq!((pairs.pairs.len(), pairs.pairs[0].routing_tokens.len()), (1, 16));
    }

    #[test]
    fn devices_are_limited_and_a_removed_one_makes_room() {
        let mut pairs = Pairs::default();
        for number in 0..64 {
            assert!(pairs.add(pair(&format!("phone-{number}"), "t")).is_some());
        }
        assert!(pairs.clone().add(pair("one more", "t")).is_none());
        assert!(pairs.clone().add(pair("phone-7", "t")).is_some(), "it has its place");
        assert!(pairs.remove(device(&"phone-7".parse().unwrap())).is_some());
        assert!(pairs.add(pair("one more", "t")).is_some());
    }
}
