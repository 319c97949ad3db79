//! API keys: `csk_<tenant>_<key id>_<secret and checksum>`.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::{
    Rule,
    hash::Sha256Hex,
    id::TenantId,
    key_nonce::KeyNonce,
    mac::{MAC_LENGTH, MacKey},
};

const PREFIX: &str = "csk_";
const ULID_LENGTH: usize = 26;
const SECRET_LENGTH: usize = 64;
const CHECKSUM_LENGTH: usize = 8;
const MAC_PURPOSE: &str = "API key";
const SUCCESSOR_PURPOSE: &str = "secret of an API key by rotation";

/// The id of a key, which is not secret: a ULID of 26 lowercase letters and digits, and the 16 hex digits of a MAC. The
/// ids of keys that were made before there was a MAC end after the ULID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Box<str>);

impl KeyId {
    /// A key id without a MAC, from the text of a ULID, whatever its case.
    pub fn from_ulid_text(ulid: &str) -> Self {
        Self(ulid.to_ascii_lowercase().into())
    }

    /// The id as it appears in the key and in lists of keys.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id without its MAC.
    pub fn ulid(&self) -> &str {
        self.0.get(..ULID_LENGTH).unwrap_or(&self.0)
    }
}

impl FromStr for KeyId {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let length = text.len() == ULID_LENGTH || text.len() == ULID_LENGTH + MAC_LENGTH;
        if length && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(Rule("must be 26 or 42 lowercase letters and digits"))
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
/// query of its store. The MAC in the key id lets a gateway reject what it did not make, also without a query.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    tenant: TenantId,
    key_id: KeyId,
    secret: [u8; SECRET_LENGTH],
}

/// What the MAC in a key's id says of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacCheck {
    /// A gateway with this MAC key made it. Whether it is still active is in the store.
    Valid,
    /// No gateway with this MAC key made it.
    Invalid,
    /// The id has no MAC: only the store can tell.
    Absent,
}

impl ApiKey {
    /// Builds a key whose id carries a MAC. `ulid` is the text of a ULID, whatever its case; `secret` must come from a
    /// cryptographic random source.
    pub fn with_mac(tenant: TenantId, ulid: &str, secret: [u8; 32], mac_key: &MacKey) -> Result<Self, Rule> {
        let mut key = Self::new(tenant, KeyId::from_ulid_text(ulid), secret)?;
        let mac = mac_key.mac(MAC_PURPOSE, &key.mac_parts(key.key_id.as_str()));
        key.key_id = format!("{}{mac}", key.key_id).parse()?;
        Ok(key)
    }

    /// Checks the MAC in the id. It covers the secret too: with the id of a real key, which is not secret, nobody can
    /// make up another key that passes.
    pub fn check_mac(&self, mac_key: &MacKey) -> MacCheck {
        match self.key_id.0.split_at_checked(ULID_LENGTH) {
            Some((ulid, mac)) if !mac.is_empty() => {
                match mac_key.verifies(MAC_PURPOSE, &self.mac_parts(ulid), mac) {
                    true => MacCheck::Valid,
                    false => MacCheck::Invalid,
                }
            }
            _ => MacCheck::Absent,
        }
    }

    fn mac_parts<'a>(&'a self, ulid: &'a str) -> [&'a [u8]; 3] {
        [self.tenant.as_str().as_bytes(), ulid.as_bytes(), &self.secret]
    }

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

    /// The secret of the key that takes the place of this one. It takes this key, the nonce and the gateway's key
    /// together.
    pub fn successor_secret(&self, nonce: &KeyNonce, mac_key: &MacKey) -> [u8; 32] {
        let (tenant, id) = (self.tenant.as_str().as_bytes(), self.key_id.as_str().as_bytes());
        mac_key.derive(SUCCESSOR_PURPOSE, &[tenant, id, &self.secret, nonce.as_str().as_bytes()])
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
    fn a_mac_is_for_one_tenant_id_and_secret() {
        let mac_key = MacKey::new([1; 32]);
        let ulid = "01J2V8V3K6B2Z9X6G1V7Y2QK8H";
        let made = ApiKey::with_mac("acme".parse().unwrap(), ulid, [7; 32], &mac_key).unwrap();
        assert_eq!(made.expose().parse::<ApiKey>().unwrap(), made);
        assert!(made.key_id.as_str().starts_with("01j2v8v3k6b2z9x6g1v7y2qk8h"));
        assert_eq!(made.key_id.as_str().len(), 42);
        assert_eq!(made.check_mac(&mac_key), MacCheck::Valid);
        assert_eq!(made.check_mac(&MacKey::new([2; 32])), MacCheck::Invalid);
        assert_eq!(key().check_mac(&mac_key), MacCheck::Absent);
        let other_ulid = format!("01k{}", &made.key_id.as_str()[3..]).parse().unwrap();
        for (tenant, key_id, secret) in
            [("acm", &made.key_id, 7), ("acme", &other_ulid, 7), ("acme", &made.key_id, 8)]
        {
            let forged = ApiKey::new(tenant.parse().unwrap(), key_id.clone(), [secret; 32]).unwrap();
            assert_eq!(forged.check_mac(&mac_key), MacCheck::Invalid, "{forged:?}");
        }
    }

    #[test]
    fn the_secret_of_a_successor_takes_the_key_the_nonce_and_the_gateways_key() {
        let nonce = |text: &str| text.parse::<KeyNonce>().unwrap();
        let (mac_key, first) = (MacKey::new([1; 32]), nonce("0123456789abcdef"));
        let secret = key().successor_secret(&first, &mac_key);
        assert_eq!(key().successor_secret(&first, &mac_key), secret);
        assert_ne!(key().successor_secret(&nonce("0123456789abcdeg"), &mac_key), secret);
        assert_ne!(key().successor_secret(&first, &MacKey::new([2; 32])), secret);
        for (tenant, random) in [("acm", 7), ("acme", 8)] {
            let other = ApiKey::new(tenant.parse().unwrap(), key().key_id, [random; 32]).unwrap();
            assert_ne!(other.successor_secret(&first, &mac_key), secret, "{other:?}");
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
