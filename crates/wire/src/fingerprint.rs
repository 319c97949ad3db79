//! Fingerprints, by which programs and people recognise the public keys of a device.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{Rule, base64url, keys::KeyBundle, written::written_as_string};

/// Identifies the two public keys of a device: SHA-256 over both. The proof of a pairing is not part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    const DOMAIN: &[u8] = b"countersign fingerprint v1\0";

    /// The fingerprint of a device's public keys.
    pub fn of(bundle: &KeyBundle) -> Self {
        let mut hash = Sha256::new_with_prefix(Self::DOMAIN);
        hash.update(bundle.signing.as_bytes());
        hash.update(bundle.agreement.as_bytes());
        Self(hash.finalize().into())
    }

    /// The fingerprint that was written as base64url.
    pub fn parse(text: &str) -> Option<Self> {
        base64url::decode(text).map(Self)
    }

    /// The digest, for comparisons by programs.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Eight hex digits for lists, such as `9F3C-41AA`. They tell devices apart; they prove nothing.
    pub fn short(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{a:02X}{b:02X}-{c:02X}{d:02X}")
    }

    /// Thirty digits in groups of five, for people who compare two screens.
    pub fn digits(&self) -> String {
        digits(&self.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

impl FromStr for Fingerprint {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        Self::parse(text).ok_or(Rule("is not 32 bytes in base64url without padding"))
    }
}

written_as_string!(Fingerprint);

/// Thirty digits in groups of five, for people: each group is five bytes of the digest, modulo 100,000.
pub fn digits(digest: &[u8; 32]) -> String {
    let group =
        |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) % 100_000;
    let groups: Vec<String> =
        digest[..30].chunks_exact(5).map(|bytes| format!("{:05}", group(bytes))).collect();
    groups.join(" ")
}
