//! Keys: Ed25519 for signatures, X25519 for encryption, and the bundle that pairing exchanges.

use std::{fmt, str::FromStr};

use curve25519_dalek::montgomery::MontgomeryPoint;
use ed25519_dalek::Signer as _;
use serde::{Serialize, Serializer};

use crate::{Rule, SignatureFault, base64url, limits::MAX_PUBLIC_KEY_CHARS, written::written_as_string};

/// The private half of a signing key. It is wiped from memory when dropped and never printed.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of a 32-byte secret seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// The public key that verifies this key's signatures.
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Signs `message`: 64 bytes in base64url.
    pub fn sign(&self, message: &[u8]) -> String {
        base64url::encode(&self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// The public half of a signing key: 32 bytes, in base64url when written.
///
/// The constructor rejects weak keys, under which one signature verifies for many messages, and non-canonical
/// encodings, with which one key would have two texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

impl VerifyingKey {
    /// Checks that the bytes are a key that is neither weak nor encoded in a non-canonical way.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Rule> {
        const RULE: Rule = Rule("is not an Ed25519 public key");
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| RULE)?;
        if key.is_weak() {
            return Err(Rule("is a weak Ed25519 key"));
        }
        if key.to_edwards().compress().as_bytes() == bytes { Ok(Self(key)) } else { Err(RULE) }
    }

    /// The 32 bytes of the key, without encoding.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Verifies strictly (no small-order points, no unreduced scalar) a signature in base64url.
    pub fn verify(&self, message: &[u8], signature: &str) -> Result<(), SignatureFault> {
        let bytes = base64url::decode(signature).ok_or(SignatureFault::Malformed)?;
        let signature = ed25519_dalek::Signature::from_bytes(&bytes);
        self.0.verify_strict(message, &signature).map_err(|_| SignatureFault::DoesNotVerify)
    }
}

impl FromStr for VerifyingKey {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let bytes = base64url::decode(text).ok_or(Rule("is not 32 bytes in base64url without padding"))?;
        Self::from_bytes(&bytes)
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(self.as_bytes()))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The public half of an X25519 key, to which artifacts are encrypted.
///
/// The constructor rejects points of small order, with which the shared secret is constant, and non-canonical encodings,
/// with which one key would have two texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgreementKey([u8; 32]);

impl AgreementKey {
    /// Checks that the bytes are a key that is neither weak nor encoded in a non-canonical way.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, Rule> {
        if !is_reduced(&bytes) {
            return Err(Rule("is not an X25519 public key in its one encoding"));
        }
        // Every clamped scalar is a multiple of the cofactor, so it maps exactly the points of small order to zero.
        if MontgomeryPoint(bytes).mul_clamped([1; 32]).to_bytes() == [0; 32] {
            return Err(Rule("is a weak X25519 key"));
        }
        Ok(Self(bytes))
    }

    /// The 32 bytes of the key, without encoding.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Whether the little-endian number is below 2^255 − 19.
fn is_reduced(bytes: &[u8; 32]) -> bool {
    const PRIME: [u8; 32] = {
        let mut prime = [0xff; 32];
        prime[0] = 0xed;
        prime[31] = 0x7f;
        prime
    };
    bytes.iter().rev().lt(PRIME.iter().rev())
}

impl fmt::Debug for AgreementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

/// The two public keys of one endpoint: `v1.<Ed25519>.<X25519>[.<proof>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBundle {
    /// Verifies this endpoint's signatures.
    pub signing: VerifyingKey,
    /// Others encrypt to this key what only this endpoint may read.
    pub agreement: AgreementKey,
    /// In an approver's answer to a QR code, HMAC-SHA-256 over the pairing transcript under the code's secret; in one to
    /// a typed code, fresh random bytes. Absent in the enforcer's own bundle. The gateway relays it unchecked.
    pub proof: Option<[u8; 32]>,
}

impl KeyBundle {
    const PREFIX: &'static str = "v1.";
}

impl FromStr for KeyBundle {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        const RULE: Rule = Rule("is not v1.<Ed25519>.<X25519>[.<proof>] in base64url");
        let mut parts = text.strip_prefix(Self::PREFIX).ok_or(RULE)?.split('.');
        let signing = parts.next().and_then(base64url::decode).ok_or(RULE)?;
        let agreement = parts.next().and_then(base64url::decode).ok_or(RULE)?;
        let proof = parts.next().map(|proof| base64url::decode(proof).ok_or(RULE)).transpose()?;
        if parts.next().is_some() {
            return Err(RULE);
        }
        if signing == agreement {
            return Err(Rule("uses one key for two purposes"));
        }
        Ok(Self {
            signing: VerifyingKey::from_bytes(&signing)?,
            agreement: AgreementKey::from_bytes(agreement)?,
            proof,
        })
    }
}

impl fmt::Display for KeyBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agreement = base64url::encode(self.agreement.as_bytes());
        write!(f, "{}{}.{agreement}", Self::PREFIX, self.signing)?;
        self.proof.iter().try_for_each(|proof| write!(f, ".{}", base64url::encode(proof)))
    }
}

/// A `publicKey` of pairing: a bundle of known format, or an opaque text that is only relayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKey {
    /// A key bundle; pairing registers its signing key.
    Bundle(Box<KeyBundle>),
    /// Any other text, which is relayed and registers no key; 1 to 4,096 characters.
    Opaque(Box<str>),
}

impl PublicKey {
    /// The key that pairing registers; `None` if this is no bundle.
    pub fn signing_key(&self) -> Option<VerifyingKey> {
        match self {
            Self::Bundle(bundle) => Some(bundle.signing),
            Self::Opaque(_) => None,
        }
    }

    /// Whether both contain the same key, regardless of their proofs.
    pub fn shares_a_key_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bundle(one), Self::Bundle(other)) => {
                one.signing == other.signing || one.agreement == other.agreement
            }
            // Other texts have no meaning that could be compared.
            _ => false,
        }
    }
}

impl FromStr for PublicKey {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        if text.starts_with(KeyBundle::PREFIX) {
            return text.parse().map(|bundle| Self::Bundle(Box::new(bundle)));
        }
        match text.chars().count() {
            1..=MAX_PUBLIC_KEY_CHARS => Ok(Self::Opaque(text.into())),
            _ => Err(Rule("must be 1 to 4096 characters long")),
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle(bundle) => fmt::Display::fmt(bundle, f),
            Self::Opaque(text) => f.write_str(text),
        }
    }
}

impl Serialize for VerifyingKey {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

written_as_string!(PublicKey, VerifyingKey);
