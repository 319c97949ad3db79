//! The pairs of an enforcer and an approver, one for each of the approver's devices. Pure.

use countersign_wire::{
    Label,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, RoutingToken},
    keys::{PublicKey, VerifyingKey},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{pairing::BroughtKey, viewer::Viewer};
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
    /// Who signed for the device; `None` if it was paired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Vouched>,
}

/// Somebody has signed for a device instead of pairing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vouched {
    pub by: ApproverId,
    /// The pair ends at this time.
    pub until: Timestamp,
    /// Whether a recovery code signed for it. Then it stands in for a paired device, and may vouch as one may.
    pub recovered: bool,
}

impl Pair {
    /// The signing key that it registers, and until when.
    pub(crate) fn brought(&self) -> Option<BroughtKey> {
        let until = self.vouched.as_ref().map(|vouched| vouched.until);
        self.signing_key.map(|key| BroughtKey { key, until })
    }

    /// Whether it was paired, or stands in for a device that was: what such a device signs counts as a voucher.
    pub(crate) fn counts_as_paired(&self) -> bool {
        self.vouched.as_ref().is_none_or(|vouched| vouched.recovered)
    }
}

/// The keys of a recovery code: they sign for one device, and for no decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryKey {
    pub key: VerifyingKey,
    /// It signs for nothing from this time on.
    pub until: Timestamp,
    /// The device that it signed for; `None` while it has not.
    pub used_for: Option<Sha256Hex>,
}

/// A voucher that was accepted. It is remembered for as long as it would verify, so that it can't bring back what was
/// removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenVoucher {
    pub statement: Sha256Hex,
    pub until: Timestamp,
}

/// Recovery codes of one approver with one enforcer.
pub(crate) const MAX_RECOVERY_KEYS: usize = 8;

/// Vouchers of one approver for one enforcer that are remembered.
pub(crate) const MAX_TAKEN_VOUCHERS: usize = 256;

/// All pairs of one enforcer and one approver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// One for each device, in the order of pairing.
    pub pairs: Vec<Pair>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<RecoveryKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenVoucher>,
}

impl Stored for Pairs {
    const KIND: Kind = Kind::Pairs;
}

/// What a completed pairing changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AddedPair {
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
            vouched: None,
        };
        match known {
            Some(known) => known.clone(),
            None if are_paired => Self { pairs: vec![unrecorded()], ..Self::default() },
            None => Self::default(),
        }
    }

    /// Adds a pair; a device that was paired before gets a new token and new labels. `None` if there are too many.
    pub(crate) fn add(&mut self, pair: Pair) -> Option<AddedPair> {
        let Some(known) = self.pairs.iter_mut().find(|known| known.device == pair.device) else {
            self.pairs.push(pair);
            return (self.pairs.len() <= MAX_DEVICES).then_some(AddedPair::default());
        };
        known.enforcer_label = pair.enforcer_label;
        known.workspace_name = pair.workspace_name;
        let rank = |vouched: &Vouched| (vouched.recovered, vouched.until);
        match (&known.vouched, &pair.vouched) {
            // A pairing has no end, and is not shortened by a voucher.
            (_, None) => known.vouched = None,
            (Some(old), Some(new)) if rank(new) > rank(old) => known.vouched = pair.vouched,
            _ => {}
        }
        known.routing_tokens.extend(pair.routing_tokens);
        let too_many = known.routing_tokens.len() > MAX_ROUTING_TOKENS;
        let ended = too_many.then(|| known.routing_tokens.remove(0));
        Some(AddedPair { ended })
    }

    /// The pair of this device.
    pub(crate) fn get(&self, device: Sha256Hex) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.device == device)
    }

    /// Takes out what has ended at this time, and returns the pairs among it.
    pub(crate) fn take_ended(&mut self, now: Timestamp) -> Vec<Pair> {
        self.recovery.retain(|recovery| now < recovery.until);
        self.taken.retain(|taken| now < taken.until);
        let has_ended = |pair: &mut Pair| pair.vouched.as_ref().is_some_and(|vouched| now >= vouched.until);
        self.pairs.extract_if(.., has_ended).collect()
    }

    /// When something of it ends next; `None` if nothing does.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        let pairs = self.pairs.iter().filter_map(|pair| pair.vouched.as_ref()).map(|vouched| vouched.until);
        let recovery = self.recovery.iter().map(|recovery| recovery.until);
        pairs.chain(recovery).chain(self.taken.iter().map(|taken| taken.until)).min()
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
            vouched: None,
        }
    }

    #[test]
    fn a_device_that_is_paired_again_keeps_its_last_tokens() {
        let mut pairs = Pairs::default();
        pairs.add(pair("phone", "token-0")).unwrap();
        for number in 1..16 {
            let added = pairs.add(pair("phone", &format!("token-{number}"))).unwrap();
            assert_eq!(added, AddedPair { ended: None });
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
    #[test]
    fn a_pairing_takes_the_place_of_a_voucher_and_not_the_other_way_round() {
        let until = |until| {
            let until = Timestamp::from_unix_micros(until);
            Some(Vouched { by: "ada".parse().unwrap(), until, recovered: false })
        };
        let vouched = |end| Pair { vouched: until(end), ..pair("phone", "t") };
        let mut pairs = Pairs::default();
        pairs.add(vouched(10)).unwrap();
        pairs.add(vouched(20)).unwrap();
        pairs.add(vouched(5)).unwrap();
        assert_eq!(
            (pairs.pairs[0].vouched.clone(), pairs.next_end()),
            (until(20), Some(Timestamp::from_unix_micros(20)))
        );
        assert_eq!(pairs.clone().take_ended(Timestamp::from_unix_micros(20)).len(), 1);
        assert_eq!(pairs.take_ended(Timestamp::from_unix_micros(19)), []);
        pairs.add(pair("phone", "t")).unwrap();
        pairs.add(vouched(30)).unwrap();
        assert_eq!((pairs.pairs[0].vouched.clone(), pairs.next_end()), (None, None));
    }

    #[test]
    fn a_record_from_before_vouchers_is_read() {
        let text = format!(
            r#"{{"pairs":[{{"device":"{}","signing_key":null,"enforcer_label":null,"workspace_name":null,"created_at":null,"routing_tokens":[]}}]}}"#,
            "0".repeat(64)
        );
        let pairs: Pairs = serde_json::from_str(&text).unwrap();
        assert!(pairs.pairs[0].counts_as_paired());
        assert_eq!(serde_json::to_string(&pairs).unwrap(), text, "and written as before");
    }
}
