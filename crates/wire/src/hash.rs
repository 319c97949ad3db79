//! SHA-256 in lowercase hex, and the hash of an object over its canonical form.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{Error, RawObject, Rule, canonical, vocabulary::vocabulary, written::written_as_string};

vocabulary! {
    /// The hash algorithms that the protocol defines.
    pub enum HashAlg {
        /// SHA-256; the protocol has no other.
        Sha256 = "SHA-256",
    }
}

/// A SHA-256 digest, written as 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Hex([u8; 32]);

impl Sha256Hex {
    /// Hashes bytes as they are, without canonicalization.
    pub fn digest(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes the canonical form of `object` without its member `field`, which is where an object
    /// carries its own hash.
    pub fn of_object_without(object: RawObject<'_>, field: &str) -> Result<Self, Error> {
        Ok(Self::digest(&canonical::form_without(object, field)?))
    }

    /// Rejects an object whose hash, by [`Sha256Hex::of_object_without`], is a different one.
    pub fn check(&self, object: RawObject<'_>, field: &str) -> Result<(), Error> {
        if Self::of_object_without(object, field)? == *self { Ok(()) } else { Err(Error::HashMismatch) }
    }

    /// A digest that was computed elsewhere.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest, not its hex digits.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Sha256Hex {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        const RULE: Rule = Rule("is not 64 lowercase hex digits");
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| RULE)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0]).ok_or(RULE)? << 4 | nibble(pair[1]).ok_or(RULE)?;
        }
        Ok(Self(bytes))
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every message contains several hashes: write one piece, not 32.
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl fmt::Debug for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Sha256Hex {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

written_as_string!(Sha256Hex);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_lowercase_hex_digits_are_a_hash() {
        let good = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";
        assert_eq!(good.parse::<Sha256Hex>().unwrap().to_string(), good);
        for bad in ["", &good[1..], &format!("{good}0"), &good.to_uppercase(), &good.replace('8', "g")] {
            assert!(bad.parse::<Sha256Hex>().is_err(), "{bad}");
        }
    }
}
