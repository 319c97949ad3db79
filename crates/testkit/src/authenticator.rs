//! The lock of a device for tests: it signs what it is asked, as an authenticator and a browser do, or worse.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use countersign_wire::{
    base64url,
    hash::Sha256Hex,
    lock::{Assertion, LockAlgorithm, LockKey},
};
use serde_json::{Value, json};

/// What stands before a point of P-256 in a `SubjectPublicKeyInfo`.
const FRAME: &[u8] =
    b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\0";

/// The flags of somebody who was present, and verified.
const FLAGS: u8 = 0x05;

/// A credential with its private key.
pub struct Authenticator {
    keys: EcdsaKeyPair,
    lock: LockKey,
}

/// What is signed, before it is.
pub struct Signed {
    /// What the browser says.
    pub client: Value,
    /// What the authenticator says.
    pub data: Vec<u8>,
    /// The credential that is named.
    pub credential: Vec<u8>,
}

impl Authenticator {
    /// A new credential for the page of a host.
    pub fn new(host: &str) -> Self {
        Self::named(host, b"credential")
    }

    /// A new credential with this id.
    pub fn named(host: &str, id: &[u8]) -> Self {
        let keys = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let spki = [FRAME, keys.public_key().as_ref()].concat();
        let origin = format!("https://{host}");
        let lock = LockKey::new(LockAlgorithm::Es256, id.to_vec(), spki, host, &origin).unwrap();
        Self { keys, lock }
    }

    /// The public half, as a machine pins it.
    pub fn lock(&self) -> &LockKey {
        &self.lock
    }

    /// Confirms a decision as an honest device does.
    pub fn confirm(&self, challenge: [u8; 32]) -> Option<Assertion> {
        Some(self.sign(challenge, |_| ()))
    }

    /// Signs something else than it should.
    pub fn sign(&self, challenge: [u8; 32], change: impl FnOnce(&mut Signed)) -> Assertion {
        let client = json!({
            "type": "webauthn.get", "challenge": base64url::encode(&challenge), "origin": self.lock.origin(),
            "crossOrigin": false,
        });
        let site = digest(self.lock.rp_id().as_bytes());
        let data = [site.as_slice(), &[FLAGS], &7_u32.to_be_bytes()].concat();
        let mut signed = Signed { client, data, credential: self.lock.credential_id().to_vec() };
        change(&mut signed);
        let client = signed.client.to_string();
        let message = [signed.data.as_slice(), &digest(client.as_bytes())].concat();
        let signature = self.keys.sign(&SystemRandom::new(), &message).unwrap();
        Assertion {
            credential_id: signed.credential.as_slice().into(),
            authenticator_data: signed.data.as_slice().into(),
            client_data_json: client.as_bytes().into(),
            signature: signature.as_ref().into(),
        }
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    *Sha256Hex::digest(bytes).as_bytes()
}
