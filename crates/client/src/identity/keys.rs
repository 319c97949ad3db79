//! The private keys of one endpoint, and the fingerprints by which people recognise public ones.

use std::fmt;

pub use countersign_wire::fingerprint::Fingerprint;
use countersign_wire::{
    base64url,
    hash::Sha256Hex,
    keys::{AgreementKey, KeyBundle, SigningKey},
    lock::Assertion,
    statement::{Claim, Issue, Statement, StatementError},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use hpke::{Deserializable as _, Kem as _, Serializable as _, kem::X25519HkdfSha256};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::random::{self, NoRandomness};

/// The private keys of one device: Ed25519 to sign, X25519 to seal and to open. They are wiped from memory when dropped
/// and never printed.
pub struct DeviceKeys {
    signing_seed: Zeroizing<[u8; 32]>,
    agreement_secret: Zeroizing<[u8; 32]>,
    bundle: KeyBundle,
}

impl DeviceKeys {
    /// The number of bytes that [`DeviceKeys::to_secret`] returns.
    pub const SECRET_BYTES: usize = 64;

    /// New keys from the system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        loop {
            let secret = random::secret::<{ Self::SECRET_BYTES }>()?;
            // A weak key is as likely as guessing one.
            if let Some(keys) = Self::from_secret(&secret) {
                return Ok(keys);
            }
        }
    }

    /// The keys behind 64 secret bytes: the seed of the signing key, then the private X25519 key. `None` if the public
    /// halves are not keys that others accept.
    pub fn from_secret(secret: &[u8; Self::SECRET_BYTES]) -> Option<Self> {
        let (seed, agreement) = secret.split_at(32);
        let signing_seed: Zeroizing<[u8; 32]> = Zeroizing::new(seed.try_into().ok()?);
        let agreement_secret: Zeroizing<[u8; 32]> = Zeroizing::new(agreement.try_into().ok()?);
        let private = <X25519HkdfSha256 as hpke::Kem>::PrivateKey::from_bytes(agreement).ok()?;
        let public: [u8; 32] = X25519HkdfSha256::sk_to_pk(&private).to_bytes().into();
        let signing = SigningKey::from_seed(&signing_seed).verifying_key();
        let agreement = AgreementKey::from_bytes(public).ok()?;
        let bundle = KeyBundle { signing, agreement, proof: None };
        Some(Self { signing_seed, agreement_secret, bundle })
    }

    /// The 64 secret bytes, to be stored where nobody else reads them.
    pub fn to_secret(&self) -> Zeroizing<[u8; Self::SECRET_BYTES]> {
        let mut secret = Zeroizing::new([0; Self::SECRET_BYTES]);
        secret[..32].copy_from_slice(self.signing_seed.as_slice());
        secret[32..].copy_from_slice(self.agreement_secret.as_slice());
        secret
    }

    /// The public halves, without a proof.
    pub fn bundle(&self) -> &KeyBundle {
        &self.bundle
    }

    /// The key that signs.
    pub fn signing_key(&self) -> SigningKey {
        SigningKey::from_seed(&self.signing_seed)
    }

    /// How others recognise these keys.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.bundle)
    }

    /// Signs what is said of another device.
    pub fn sign_statement(&self, issue: Issue<'_>, claim: Claim) -> Result<Statement, StatementError> {
        self.sign_statement_with(issue, claim, |_| None)
    }

    /// As [`DeviceKeys::sign_statement`], with what the lock of this device signs for exactly this statement: it is asked with
    /// the challenge.
    pub fn sign_statement_with(
        &self,
        issue: Issue<'_>,
        claim: Claim,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<Statement, StatementError> {
        Statement::sign_with(&self.signing_key(), self.fingerprint(), issue, claim, lock)
    }

    /// An opaque reference to a repository: always the same for these keys, and meaningless to others.
    pub(crate) fn repo_ref(&self, name: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.signing_seed.as_slice()) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(b"countersign repoRef v1\0");
        mac.update(name.as_bytes());
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        format!("repo:{}", base64url::encode(&digest[..16]))
    }

    /// Stands for the value of a variable: always the same for these keys, and nobody else can try values until one fits.
    pub fn environment_mac(&self, name: &str, value: &[u8]) -> Sha256Hex {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.signing_seed.as_slice()) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(b"countersign environment v1\0");
        mac.update(&u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(name.as_bytes());
        mac.update(value);
        Sha256Hex::from_bytes(mac.finalize().into_bytes().into())
    }

    /// The private half of the agreement key.
    pub(crate) fn agreement_secret(&self) -> &[u8; 32] {
        &self.agreement_secret
    }
}

impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKeys({})", self.fingerprint().short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_being_stored() {
        let keys = DeviceKeys::generate().unwrap();
        let again = DeviceKeys::from_secret(&keys.to_secret()).unwrap();
        assert_eq!(again.bundle(), keys.bundle());
        assert_eq!(again.fingerprint(), keys.fingerprint());
        assert_ne!(DeviceKeys::generate().unwrap().fingerprint(), keys.fingerprint());
        assert!(!format!("{keys:?}").contains(&base64url::encode(&keys.to_secret()[..32])));
    }

    #[test]
    fn a_variable_has_a_mac_that_only_its_keys_give() {
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        let mac = keys.environment_mac("TOKEN", b"abc");
        assert_eq!(mac, DeviceKeys::from_secret(&[7; 64]).unwrap().environment_mac("TOKEN", b"abc"));
        assert_ne!(mac, DeviceKeys::from_secret(&[8; 64]).unwrap().environment_mac("TOKEN", b"abc"));
        assert_ne!(mac, keys.environment_mac("TOKE", b"Nabc"));
        assert_ne!(mac, keys.environment_mac("TOKEN", b"abd"));
    }

    #[test]
    fn a_fingerprint_has_three_forms() {
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        let fingerprint = keys.fingerprint();
        assert_eq!(Fingerprint::parse(&fingerprint.to_string()), Some(fingerprint));
        assert_eq!(fingerprint.short().len(), 9);
        let digits = fingerprint.digits();
        assert_eq!(digits.split(' ').map(str::len).collect::<Vec<_>>(), [5; 6]);
        assert!(digits.chars().all(|digit| digit == ' ' || digit.is_ascii_digit()));
        let with_proof = KeyBundle { proof: Some([1; 32]), ..keys.bundle().clone() };
        assert_eq!(Fingerprint::of(&with_proof), fingerprint);
    }
}
