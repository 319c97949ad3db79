//! What both ends of a pairing compare and prove.

use countersign_wire::{canonical, fingerprint, keys::KeyBundle, lock::LockKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{error::PairingError, link::SECRET_BYTES};

/// What both ends must agree on: who pairs with whom, with which keys, in which run.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// Who asks, by its id at the gateway.
    pub enforcer_id: &'a str,
    /// Who asks, by its keys; a proof in it is ignored.
    pub enforcer: &'a KeyBundle,
    /// Who answers, by their id at the gateway.
    pub approver_id: &'a str,
    /// Who answers, by their keys; the proof in it is what is checked.
    pub approver: &'a KeyBundle,
    /// The gateway's nonce of this pairing.
    pub nonce: &'a str,
    /// The lock of who answers; `None` for a device without one, and for programs that know version 1 only.
    pub lock: Option<&'a LockKey>,
}

impl Transcript<'_> {
    /// One text for one transcript, whatever the ids contain.
    fn form(&self, purpose: &str) -> Result<Vec<u8>, PairingError> {
        let without_proof = |bundle: &KeyBundle| KeyBundle { proof: None, ..bundle.clone() }.to_string();
        let mut object = json!({
            "purpose": purpose,
            "v": 1,
            "enforcerId": self.enforcer_id,
            "enforcer": without_proof(self.enforcer),
            "approverId": self.approver_id,
            "approver": without_proof(self.approver),
            "nonce": self.nonce,
        });
        if let Some(lock) = self.lock {
            object["v"] = 2.into();
            object["lock"] = lock.to_string().into();
        }
        canonical::form(object.to_string().as_bytes()).map_err(|_| PairingError::UnknownKeys)
    }

    fn hmac(&self, secret: &[u8; SECRET_BYTES]) -> Result<Hmac<Sha256>, PairingError> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(&self.form("countersign pairing proof")?);
        Ok(mac)
    }

    /// The approver's proof that it saw the link: HMAC-SHA-256 under the link's secret.
    pub(super) fn proof(&self, secret: &[u8; SECRET_BYTES]) -> Result<[u8; 32], PairingError> {
        Ok(self.hmac(secret)?.finalize().into_bytes().into())
    }

    /// Whether it is the proof of this transcript, in constant time.
    pub(super) fn proves(&self, secret: &[u8; SECRET_BYTES], proof: &[u8; 32]) -> bool {
        self.hmac(secret).is_ok_and(|mac| mac.verify_slice(proof).is_ok())
    }

    /// The thirty digits that both screens show after a typed code. `fresh` are the approver's random bytes, which it
    /// makes after it has seen the enforcer's keys; without them a gateway could search for keys with the same digits.
    pub(super) fn digits(&self, fresh: &[u8; 32]) -> Result<String, PairingError> {
        let mut hash = Sha256::new_with_prefix(self.form("countersign pairing digits")?);
        hash.update(fresh);
        Ok(fingerprint::digits(&hash.finalize().into()))
    }
}
