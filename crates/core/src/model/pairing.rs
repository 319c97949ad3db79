//! Pairing an enforcer with an approver: from a code to a completed pair. Pure.

use std::time::Duration;

use countersign_wire::{
    Label,
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, PairingNonce, RoutingToken},
    keys::{PublicKey, VerifyingKey},
    lock::RelayedLock,
    pairing::{PairingCode, PairingStatus, Progress as WireProgress},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Key, Kind, Stored, Versioned};

/// How long a code can be used.
pub const CODE_LIFE: Duration = Duration::from_mins(10);

/// One pairing as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    pub enforcer: EnforcerId,
    pub enforcer_label: Option<Label>,
    pub workspace_name: Option<Label>,
    /// The enforcer's key bundle, or whatever text it sent instead.
    pub public_key: PublicKey,
    /// The keyed hash of the code, which names the record that leads here.
    pub code_hash: String,
    /// It can be completed only before this time.
    pub expires_at: Timestamp,
    pub progress: Progress,
}

impl Stored for Pairing {
    const KIND: Kind = Kind::Pairing;
}

/// How far a pairing has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Progress {
    /// Nobody has resolved the code.
    Pending,
    /// This approver has resolved the code; no other can from now on.
    Resolved { approver: ApproverId },
    Completed {
        approver: ApproverId,
        /// The approver's key bundle, or whatever text it sent instead.
        public_key: PublicKey,
        /// Routes the enforcer's requests to this approver.
        routing_token: RoutingToken,
        /// What the approver's device calls itself.
        #[serde(default)]
        device_label: Option<Label>,
        /// The lock of the approver's device, unread.
        #[serde(default)]
        lock: Option<RelayedLock>,
    },
}

/// Why a step of a pairing is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// Unknown, expired, used, or another approver's: the caller can't tell which.
    #[error("not found")]
    NotFound,
    #[error("already completed")]
    AlreadyCompleted,
}

impl PairingError {
    /// The failure that the client sees.
    pub fn failure(self) -> Failure {
        match self {
            Self::NotFound => Failure::NotFound,
            Self::AlreadyCompleted => Failure::State,
        }
    }
}

impl Pairing {
    fn is_past(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// An approver has typed the code: the progress to store, or `None` if nothing changes. A wildcard credential
    /// (`by` is `None`) names no approver and binds nobody.
    pub fn resolve(&self, by: Option<&ApproverId>, now: Timestamp) -> Result<Option<Progress>, PairingError> {
        match (&self.progress, by) {
            _ if self.is_past(now) => Err(PairingError::NotFound),
            (Progress::Completed { .. }, _) => Err(PairingError::NotFound),
            (Progress::Pending, Some(by)) => Ok(Some(Progress::Resolved { approver: by.clone() })),
            (Progress::Resolved { approver }, Some(by)) if approver != by => Err(PairingError::NotFound),
            (Progress::Pending | Progress::Resolved { .. }, _) => Ok(None),
        }
    }

    /// Whether `by` may complete the pairing; a prior resolve is not needed.
    pub fn check_completion(&self, by: &ApproverId, now: Timestamp) -> Result<(), PairingError> {
        match &self.progress {
            Progress::Completed { .. } => Err(PairingError::AlreadyCompleted),
            _ if self.is_past(now) => Err(PairingError::NotFound),
            Progress::Resolved { approver } if approver != by => Err(PairingError::NotFound),
            Progress::Pending | Progress::Resolved { .. } => Ok(()),
        }
    }

    /// The status as its two parties see it.
    pub fn status(&self, now: Timestamp) -> PairingStatus {
        let progress = match &self.progress {
            Progress::Completed { approver, public_key, routing_token, device_label, lock } => {
                WireProgress::Completed {
                    approver_id: approver.clone(),
                    public_key: public_key.clone(),
                    routing_token: routing_token.clone(),
                    device_label: device_label.clone(),
                    lock: lock.clone(),
                }
            }
            _ if self.is_past(now) => WireProgress::Expired,
            Progress::Pending => WireProgress::Pending,
            Progress::Resolved { .. } => WireProgress::Resolved,
        };
        PairingStatus { expires_at: self.expires_at, progress }
    }

    /// Whether `approver` is one of the two parties.
    pub fn has_approver(&self, approver: &ApproverId) -> bool {
        match &self.progress {
            Progress::Pending => false,
            Progress::Resolved { approver: party } | Progress::Completed { approver: party, .. } => {
                party == approver
            }
        }
    }
}

/// A request that names no approver goes to all approvers of its enforcer, so their number is limited.
const MAX_APPROVERS: usize = 100;

const MAX_ENFORCERS: usize = 1_000;

/// Each key of an approver is tried on each of their decisions: one for every device is enough.
const MAX_SIGNING_KEYS: usize = 16;

/// The approvers that an enforcer is paired with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedEnforcer {
    /// Each once, in the order of pairing.
    pub approvers: Vec<ApproverId>,
}

/// The enforcers that an approver is paired with, and the keys that its decisions may be signed with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedApprover {
    /// Each once, in the order of pairing.
    pub enforcers: Vec<EnforcerId>,
    /// Each once, in the order of registration.
    pub signing_keys: Vec<RegisteredKey>,
    /// Whether a signing key was ever registered: then unsigned decisions stay rejected, also when all are removed.
    #[serde(default)]
    pub had_signing_key: bool,
}

/// A key that an approver's decisions may be signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredKey")]
pub struct RegisteredKey {
    pub key: VerifyingKey,
    /// The pairs without an end that brought it; it goes with the last pair. `None` for a key from before pairs were
    /// recorded, which goes with the approver's last pair.
    pub pairs: Option<u32>,
    /// The ends of the pairs that were vouched for and brought it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Timestamp>,
}

impl RegisteredKey {
    /// Whether decisions may be signed with it at this time.
    pub(crate) fn counts(&self, now: Timestamp) -> bool {
        self.pairs != Some(0) || self.ends.iter().any(|end| now < *end)
    }
}

/// A key that a pair brings, and until when; `None` if it was paired and not vouched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BroughtKey {
    pub(crate) key: VerifyingKey,
    pub(crate) until: Option<Timestamp>,
}

/// A registered key, also as it was stored before its pairs were counted.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredKey {
    Counted {
        key: VerifyingKey,
        pairs: Option<u32>,
        #[serde(default)]
        ends: Vec<Timestamp>,
    },
    Uncounted(VerifyingKey),
}

impl From<StoredKey> for RegisteredKey {
    fn from(stored: StoredKey) -> Self {
        match stored {
            StoredKey::Counted { key, pairs, ends } => Self { key, pairs, ends },
            StoredKey::Uncounted(key) => Self { key, pairs: None, ends: Vec::new() },
        }
    }
}

impl Stored for PairedEnforcer {
    const KIND: Kind = Kind::Enforcer;
}

impl Stored for PairedApprover {
    const KIND: Kind = Kind::Approver;
}

impl PairedEnforcer {
    /// Whether this approver may prompt the enforcer and see its sessions. One that was never paired has no record, and
    /// admits every approver of its tenant; one that has lost its last pair admits nobody.
    pub(crate) fn admits(known: Option<&Versioned<Self>>, approver: &ApproverId) -> bool {
        known.is_none_or(|known| known.value.approvers.contains(approver))
    }

    /// Adds an approver, once. Returns false if the limit is exceeded.
    pub(crate) fn add(&mut self, approver: &ApproverId) -> bool {
        if !self.approvers.contains(approver) {
            self.approvers.push(approver.clone());
        }
        self.approvers.len() <= MAX_APPROVERS
    }

    /// The last pair with this approver is removed.
    pub(crate) fn remove(&mut self, approver: &ApproverId) {
        self.approvers.retain(|known| known != approver);
    }
}

impl PairedApprover {
    /// Adds an enforcer, and the signing key that a new pair brings, each once. Returns false if a limit is exceeded.
    pub(crate) fn add(&mut self, enforcer: &EnforcerId, brought: Option<BroughtKey>) -> bool {
        if !self.enforcers.contains(enforcer) {
            self.enforcers.push(enforcer.clone());
        }
        if let Some(BroughtKey { key, until }) = brought {
            self.had_signing_key = true;
            let place = self.signing_keys.iter().position(|known| known.key == key).unwrap_or_else(|| {
                self.signing_keys.push(RegisteredKey { key, pairs: Some(0), ends: Vec::new() });
                self.signing_keys.len() - 1
            });
            let known = &mut self.signing_keys[place];
            match until {
                Some(until) => known.ends.push(until),
                None => known.pairs = known.pairs.map(|pairs| pairs.saturating_add(1)),
            }
        }
        self.enforcers.len() <= MAX_ENFORCERS && self.signing_keys.len() <= MAX_SIGNING_KEYS
    }

    /// A pair that brought this key is removed: the key goes unless another pair brought it too.
    pub(crate) fn release(&mut self, BroughtKey { key, until }: BroughtKey) {
        for known in self.signing_keys.iter_mut().filter(|known| known.key == key) {
            match until {
                Some(until) => {
                    if let Some(place) = known.ends.iter().position(|end| *end == until) {
                        known.ends.swap_remove(place);
                    }
                }
                None => known.pairs = known.pairs.map(|pairs| pairs.saturating_sub(1)),
            }
        }
        self.retain_keys(|known| known.pairs != Some(0) || !known.ends.is_empty());
    }

    /// The last pair with this enforcer is removed. Without any enforcer there is no pair that could have brought a key.
    pub(crate) fn remove(&mut self, enforcer: &EnforcerId) {
        self.enforcers.retain(|known| known != enforcer);
        let has_pairs = !self.enforcers.is_empty();
        self.retain_keys(|_| has_pairs);
    }

    /// Records first that there were keys: a record may be older than that member.
    fn retain_keys(&mut self, keep: impl Fn(&RegisteredKey) -> bool) {
        self.had_signing_key |= !self.signing_keys.is_empty();
        self.signing_keys.retain(keep);
    }
}

/// The approver behind a routing token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub approver: ApproverId,
    /// The pair's enforcer. `None` for a token from before pairs were recorded: no pair names it, so it is not deleted
    /// with one.
    #[serde(default)]
    pub enforcer: Option<EnforcerId>,
}

impl Route {
    /// Whether the pair is still there. A recorded pair deletes its tokens when it is removed; older tokens are good for
    /// an enforcer that is still paired with their approver.
    pub(crate) fn is_valid(&self, paired: Option<&PairedEnforcer>) -> bool {
        self.enforcer.is_some() || paired.is_some_and(|paired| paired.approvers.contains(&self.approver))
    }
}

impl Stored for Route {
    const KIND: Kind = Kind::Route;
}

/// The pairing behind a code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CodePointer {
    pub(crate) nonce: PairingNonce,
}

impl Stored for CodePointer {
    const KIND: Kind = Kind::PairingCode;
}

/// The key of the hash under which codes are stored, and those before it, newest first: codes are short, and a reader of the
/// store could try all of them.
#[derive(Clone)]
pub struct CodeKey {
    pub newest: [u8; 32],
    pub older: Vec<[u8; 32]>,
}

impl std::fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CodeKey(…)")
    }
}

impl From<[u8; 32]> for CodeKey {
    /// Without any before it.
    fn from(newest: [u8; 32]) -> Self {
        Self { newest, older: Vec::new() }
    }
}

impl CodeKey {
    /// The hash of a new code.
    pub(crate) fn hash(&self, code: PairingCode) -> String {
        hash_with(&self.newest, code)
    }

    /// The hashes under which a code may be stored.
    pub(crate) fn hashes(&self, code: PairingCode) -> impl Iterator<Item = String> {
        std::iter::once(&self.newest).chain(&self.older).map(move |key| hash_with(key, code))
    }
}

/// SHA-256 over key and code. Both have a fixed length, so nothing can be appended.
fn hash_with(key: &[u8; 32], code: PairingCode) -> String {
    Sha256Hex::digest(&[key.as_slice(), code.letters()].concat()).to_string()
}

/// The record that a code's keyed hash names.
pub(crate) fn code_record(code_hash: &str) -> Key {
    CodePointer::key(code_hash)
}

/// A principal may fail this often within [`FAILED_ATTEMPTS_WINDOW`].
pub(crate) const MAX_FAILED_ATTEMPTS: u32 = 5;

/// How long failed attempts count, from the first.
pub(crate) const FAILED_ATTEMPTS_WINDOW: Duration = Duration::from_mins(10);

/// How often one principal has tried codes that were wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCodeAttempts {
    pub count: u32,
    /// The count starts again at this time.
    pub until: Timestamp,
}

impl Stored for FailedCodeAttempts {
    const KIND: Kind = Kind::FailedCodeAttempts;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> VerifyingKey {
        countersign_wire::keys::SigningKey::from_seed(&[seed; 32]).verifying_key()
    }

    fn paired(seed: u8) -> BroughtKey {
        BroughtKey { key: key(seed), until: None }
    }

    fn vouched(seed: u8, until: i64) -> BroughtKey {
        BroughtKey { key: key(seed), until: Some(Timestamp::from_unix_micros(until)) }
    }

    fn keys(approver: &PairedApprover) -> Vec<VerifyingKey> {
        approver.signing_keys.iter().map(|known| known.key).collect()
    }

    #[test]
    fn a_key_goes_with_the_last_pair_that_brought_it() {
        let mut ada = PairedApprover::default();
        let (robot, crane) = ("robot".parse().unwrap(), "crane".parse().unwrap());
        assert!(ada.add(&robot, Some(paired(1))) && ada.add(&crane, Some(paired(1))));
        ada.release(paired(1));
        ada.remove(&robot);
        assert_eq!((ada.enforcers.as_slice(), keys(&ada)), ([crane.clone()].as_slice(), vec![key(1)]));
        ada.release(paired(1));
        ada.remove(&crane);
        assert_eq!((ada.enforcers.len(), ada.signing_keys.len(), ada.had_signing_key), (0, 0, true));
    }

    #[test]
    fn a_key_that_was_vouched_for_counts_until_the_last_end_unless_it_is_paired_too() {
        let mut ada = PairedApprover::default();
        let robot = "robot".parse().unwrap();
        let counts = |ada: &PairedApprover, now| {
            let now = Timestamp::from_unix_micros(now);
            ada.signing_keys.iter().filter(|known| known.counts(now)).count()
        };
        assert!(ada.add(&robot, Some(vouched(1, 100))) && ada.add(&robot, Some(vouched(1, 200))));
        assert_eq!((counts(&ada, 199), counts(&ada, 200)), (1, 0));
        ada.release(vouched(1, 200));
        assert_eq!((counts(&ada, 99), counts(&ada, 100)), (1, 0));
        assert!(ada.add(&robot, Some(paired(1))));
        let text = serde_json::to_string(&ada).unwrap();
        let mut ada: PairedApprover = serde_json::from_str(&text).unwrap();
        ada.release(vouched(1, 100));
        assert_eq!(counts(&ada, 1_000), 1);
        ada.release(paired(1));
        assert_eq!((keys(&ada).len(), ada.had_signing_key), (0, true));
    }

    #[test]
    fn a_record_from_before_pairs_were_counted_is_read_and_its_keys_go_with_the_last_pair() {
        let text = format!(r#"{{"enforcers":["robot","crane"],"signing_keys":["{}"]}}"#, key(1));
        let mut ada: PairedApprover = serde_json::from_str(&text).unwrap();
        let (robot, crane) = ("robot".parse().unwrap(), "crane".parse().unwrap());
        assert!(ada.add(&robot, Some(paired(1))));
        let text = serde_json::to_string(&ada).unwrap();
        let mut ada: PairedApprover = serde_json::from_str(&text).unwrap();
        ada.release(paired(1));
        ada.remove(&robot);
        assert_eq!(keys(&ada), [key(1)], "nobody knows which pair brought it");
        ada.had_signing_key = false;
        ada.remove(&crane);
        assert_eq!((keys(&ada).len(), ada.had_signing_key), (0, true));
    }

    #[test]
    fn a_token_from_before_pairs_were_recorded_is_valid_while_the_two_are_paired() {
        let route: Route = serde_json::from_str(r#"{"approver":"ada"}"#).unwrap();
        let mut robot = PairedEnforcer { approvers: vec!["ada".parse().unwrap()] };
        assert!(route.is_valid(Some(&robot)));
        robot.remove(&route.approver);
        assert!(!route.is_valid(Some(&robot)) && !route.is_valid(None));
        assert!(Route { enforcer: Some("robot".parse().unwrap()), ..route }.is_valid(None));
    }
}
