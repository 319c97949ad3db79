//! API keys: `csk_<tenant>_<key id>_<secret and checksum>`.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::{Rule, hash::Sha256Hex, id::TenantId};

const PREFIX: &str = "csk_";
const KEY_ID_LENGTH: usize = 26;
const SECRET_LENGTH: usize = 64;
const CHECKSUM_LENGTH: usize = 8;

/// The id of a key, which is not secret: 26 lowercase letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Box<str>);

impl KeyId {
    /// A key id from the text of a ULID, whatever its case.
    pub fn from_ulid_text(ulid: &str) -> Self {
        Self(ulid.to_ascii_lowercase().into())
    }

    /// The id as it appears in the key and in lists of keys.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyId {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if text.len() == KEY_ID_LENGTH && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(Rule("must be 26 lowercase letters and digits"))
        }
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks that a tenant's id can be part of a key: 1 to 63 lowercase letters, digits and dashes.
pub fn check_tenant(tenant: &TenantId) -> Result<(), Rule> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if tenant.as_str().len() <= 63 && tenant.as_str().bytes().all(fits) {
        Ok(())
    } else {
        Err(Rule("must be 1 to 63 lowercase letters, digits and dashes"))
    }
}

/// A key that a client authenticates with. It is a secret: `Debug` shows only its id and tenant, and the gateway stores
/// only its [`ApiKey::secret_hash`], never the key.
///
/// The checksum lets a scanner distinguish a key from similar texts, and lets a gateway reject a typo without a
/// query of its store.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    tenant: TenantId,
    key_id: KeyId,
    secret: [u8; SECRET_LENGTH],
}

impl ApiKey {
    /// Builds a key. `secret` must come from a cryptographic random source.
    pub fn new(tenant: TenantId, key_id: KeyId, secret: [u8; 32]) -> Result<Self, Rule> {
        check_tenant(&tenant)?;
        let hex = Sha256Hex::from_bytes(secret).to_string();
        let mut secret = [0; SECRET_LENGTH];
        secret.copy_from_slice(hex.as_bytes());
        Ok(Self { tenant, key_id, secret })
    }

    /// The tenant that the key claims to belong to; trust it only after a comparison of [`ApiKey::secret_hash`].
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The public part of the key, which the store looks it up by.
    pub fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// SHA-256 of the secret: what the gateway stores and compares.
    pub fn secret_hash(&self) -> Sha256Hex {
        Sha256Hex::digest(&self.secret)
    }

    /// The complete key in plain text, to be shown to its owner once.
    pub fn expose(&self) -> String {
        let text = self.without_checksum();
        let checksum = checksum(&text);
        text + &checksum
    }

    fn without_checksum(&self) -> String {
        let secret = String::from_utf8_lossy(&self.secret);
        format!("{PREFIX}{}_{}_{secret}", self.tenant, self.key_id)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({} of {})", self.key_id, self.tenant)
    }
}

impl FromStr for ApiKey {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let rule = Rule("must be an API key, csk_…");
        let mut parts = text.strip_prefix(PREFIX).ok_or(rule)?.split('_');
        let (Some(tenant), Some(key_id), Some(rest), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(rule);
        };
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if rest.len() != SECRET_LENGTH + CHECKSUM_LENGTH || !rest.bytes().all(hex) {
            return Err(rule);
        }
        let mut secret = [0; SECRET_LENGTH];
        secret.copy_from_slice(&rest.as_bytes()[..SECRET_LENGTH]);
        let key = Self { tenant: TenantId::new(tenant)?, key_id: key_id.parse()?, secret };
        check_tenant(&key.tenant)?;
        if checksum(&key.without_checksum()) == rest[SECRET_LENGTH..] { Ok(key) } else { Err(rule) }
    }
}

fn checksum(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    Sha256Hex::from_bytes(digest).to_string()[..CHECKSUM_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        let key_id = KeyId::from_ulid_text("01J2V8V3K6B2Z9X6G1V7Y2QK8H");
        ApiKey::new("acme".parse().unwrap(), key_id, [7; 32]).unwrap()
    }

    #[test]
    fn a_key_is_read_back_as_it_was_written() {
        let text = key().expose();
        assert!(text.starts_with("csk_acme_01j2v8v3k6b2z9x6g1v7y2qk8h_0707"), "{text}");
        assert_eq!(text.parse::<ApiKey>().unwrap(), key());
    }

    #[test]
    fn a_key_with_any_one_character_changed_is_refused() {
        let text = key().expose();
        for place in 0..text.len() {
            for other in ["0", "b", "_", "-"] {
                let mut typo = text.clone();
                typo.replace_range(place..=place, other);
                assert!(typo == text || typo.parse::<ApiKey>().is_err(), "{typo}");
            }
        }
    }

    #[test]
    fn a_key_does_not_show_its_secret_when_debugged() {
        assert!(!format!("{:?}", key()).contains("07"), "{:?}", key());
    }

    #[test]
    fn a_tenant_that_would_make_keys_ambiguous_is_rejected() {
        for tenant in ["a_b", "A", "ä", &"a".repeat(64), "a b"] {
            let tenant = TenantId::new(tenant).unwrap();
            assert!(ApiKey::new(tenant, key().key_id, [0; 32]).is_err());
        }
    }
}
