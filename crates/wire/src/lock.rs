//! The lock of a device: a credential with which a person's own device says that it has verified them, and what it signs
//! (docs/protocol.md#the-lock-of-a-device). What an assertion proves is checked by the enforcer; the gateway only relays.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{
    Error, FromMembers, Members, RawObject, Rule, base64url, canonical, der, keys::VerifyingKey,
    limits::MAX_PUBLIC_KEY_CHARS, objects, vocabulary::vocabulary, written::written_as_string,
};

vocabulary! {
    /// How a lock signs.
    pub enum LockAlgorithm {
        /// ECDSA on P-256 with SHA-256, in DER.
        Es256 = "ES256",
        /// Ed25519, verified as strictly as decisions are.
        EdDsa = "EdDSA",
        /// RSASSA-PKCS1-v1_5 with SHA-256, of 2,048 to 4,096 bits.
        Rs256 = "RS256",
    }
}

/// The member of `policyHints` that has an [`Assertion`].
pub const MEMBER: &str = "lock";

/// The extension that has a lock in a pairing.
pub const EXTENSION: &str = "org.countersign.lock";

/// The longest id of a credential, in bytes, as `WebAuthn` has it.
const MAX_CREDENTIAL_ID: usize = 1_023;

/// The longest name of a host.
const MAX_HOST: usize = 253;

/// The algorithms as a `SubjectPublicKeyInfo` writes them.
const P256: &[u8] = b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const ED25519: &[u8] = b"\x30\x05\x06\x03\x2b\x65\x70";
const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";

/// The public half of a device's lock: `v1.<algorithm>.<credentialId>.<publicKey>.<rpId>.<origin>`, all but the algorithm in
/// base64url. Two locks are the same if their texts are.
#[derive(Clone, PartialEq, Eq)]
pub struct LockKey {
    algorithm: LockAlgorithm,
    credential_id: Vec<u8>,
    public_key: Vec<u8>,
    rp_id: String,
    origin: String,
}

impl LockKey {
    const PREFIX: &'static str = "v1.";

    /// A lock from what a browser says of its credential; `public_key` is a `SubjectPublicKeyInfo`.
    pub fn new(
        algorithm: LockAlgorithm,
        credential_id: Vec<u8>,
        public_key: Vec<u8>,
        rp_id: &str,
        origin: &str,
    ) -> Result<Self, Rule> {
        if !(1..=MAX_CREDENTIAL_ID).contains(&credential_id.len()) {
            return Err(Rule("has a credential id that is empty or too long"));
        }
        check_origin(rp_id, origin)?;
        let (rp_id, origin) = (rp_id.to_owned(), origin.to_owned());
        let lock = Self { algorithm, credential_id, public_key, rp_id, origin };
        lock.find_key().ok_or(Rule("has a public key that is not one of its algorithm"))?;
        Ok(lock)
    }

    /// How the credential signs, as its page has asked for.
    pub fn algorithm(&self) -> LockAlgorithm {
        self.algorithm
    }

    /// By which the browser finds the credential.
    pub fn credential_id(&self) -> &[u8] {
        &self.credential_id
    }

    /// The `SubjectPublicKeyInfo` in DER, as browsers give it.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The domain to which the browser has bound the credential.
    pub fn rp_id(&self) -> &str {
        &self.rp_id
    }

    /// The one page that may ask for it.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The key without its frame: the point of ES256, the 32 bytes of `EdDSA`, the `RSAPublicKey` of RS256.
    pub fn raw_key(&self) -> &[u8] {
        self.find_key().unwrap_or_default()
    }

    fn find_key(&self) -> Option<&[u8]> {
        match self.algorithm {
            LockAlgorithm::Es256 => der::public_key(&self.public_key, P256)
                .filter(|point| point.len() == 65 && point.first() == Some(&4)),
            LockAlgorithm::EdDsa => der::public_key(&self.public_key, ED25519)
                .filter(|key| (*key).try_into().is_ok_and(|key| VerifyingKey::from_bytes(key).is_ok())),
            LockAlgorithm::Rs256 => der::public_key(&self.public_key, RSA).filter(|key| {
                // The length of the modulus in bytes is enough: its first bit is not zero.
                der::two_positives(key).is_some_and(|[modulus, exponent]| {
                    (256..=512).contains(&modulus.len()) && modulus[0] >= 0x80 && exponent == [1, 0, 1]
                })
            }),
        }
    }

    /// A signature in the form that has one text: of ES256, whose DER must be strict, the two numbers of 32 bytes.
    pub fn raw_signature(&self, signature: &[u8]) -> Option<Vec<u8>> {
        if self.algorithm != LockAlgorithm::Es256 {
            return Some(signature.to_vec());
        }
        let mut raw = vec![0; 64];
        for (number, place) in der::two_positives(signature)?.into_iter().zip(raw.chunks_exact_mut(32)) {
            let start = place.len().checked_sub(number.len())?;
            place[start..].copy_from_slice(number);
        }
        Some(raw)
    }
}

/// The origin is that of a page which the browser lets use the domain: its host, or a domain above it.
fn check_origin(rp_id: &str, origin: &str) -> Result<(), Rule> {
    const RULE: Rule = Rule("has an origin that is not https://<host>[:port], or http://localhost[:port]");
    let is_of_host =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let (is_plain, rest) = match origin.strip_prefix("https://") {
        Some(rest) => (false, rest),
        None => (true, origin.strip_prefix("http://").ok_or(RULE)?),
    };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let is_port =
        |port: &str| port.parse::<u16>().is_ok_and(|number| number != 0 && number.to_string() == port);
    let is_host = (1..=MAX_HOST).contains(&host.len()) && host.bytes().all(is_of_host);
    let is_local = host == "localhost" || host.ends_with(".localhost");
    if !is_host || !port.is_none_or(is_port) || is_plain && !is_local {
        return Err(RULE);
    }
    let above = host.strip_suffix(rp_id).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if rp_id.is_empty() || rp_id.starts_with('.') || !above {
        return Err(Rule("has an origin that may not use its domain"));
    }
    Ok(())
}

impl FromStr for LockKey {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        const RULE: Rule =
            Rule("is not v1.<algorithm>.<credentialId>.<publicKey>.<rpId>.<origin> in base64url");
        let parts: Vec<&str> = text.strip_prefix(Self::PREFIX).ok_or(RULE)?.split('.').collect();
        let [algorithm, credential_id, public_key, rp_id, origin] =
            <[&str; 5]>::try_from(parts).map_err(|_| RULE)?;
        let bytes = |part: &str| base64url::decode_all(part).ok_or(RULE);
        let words = |part: &str| String::from_utf8(bytes(part)?).map_err(|_| RULE);
        let (rp_id, origin) = (words(rp_id)?, words(origin)?);
        Self::new(algorithm.parse()?, bytes(credential_id)?, bytes(public_key)?, &rp_id, &origin)
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.algorithm)?;
        [&self.credential_id, &self.public_key, self.rp_id.as_bytes(), self.origin.as_bytes()]
            .into_iter()
            .try_for_each(|part| write!(f, ".{}", base64url::encode(part)))
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({} at {})", self.algorithm, self.origin)
    }
}

/// A lock as a gateway relays it, unread: letters of base64url and dots, at most 4,096 of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedLock(Box<str>);

impl RelayedLock {
    /// The lock; `None` if it is of no form that is known here.
    pub fn read(&self) -> Option<LockKey> {
        self.0.parse().ok()
    }
}

impl From<&LockKey> for RelayedLock {
    fn from(lock: &LockKey) -> Self {
        Self(lock.to_string().into())
    }
}

impl FromStr for RelayedLock {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        match (1..=MAX_PUBLIC_KEY_CHARS).contains(&text.len()) && text.bytes().all(is_plain) {
            true => Ok(Self(text.into())),
            false => Err(Rule("must be 1 to 4096 letters of base64url and dots")),
        }
    }
}

impl fmt::Display for RelayedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for LockKey {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

impl Serialize for RelayedLock {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

written_as_string!(LockKey, RelayedLock);

/// What a lock has signed for one decision, as `policyHints.lock` has it, or for one statement. Nothing in it is proven before it
/// is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Assertion {
    /// Which credential has signed.
    pub credential_id: Base64url,
    /// What the authenticator says: for which domain, whom it has verified, how often it has signed.
    pub authenticator_data: Base64url,
    /// What the browser says: for which challenge, and which page has asked.
    #[serde(rename = "clientDataJSON")]
    pub client_data_json: Base64url,
    /// Over what the authenticator says and the hash of what the browser says; of ES256 in DER.
    pub signature: Base64url,
}

objects!(Assertion);

impl Assertion {
    /// The assertion in the `policyHints` of a decision; `None` if there is none.
    pub fn of(hints: RawObject<'_>) -> Result<Option<Self>, Error> {
        hints.members()?.optional(MEMBER)
    }
}

impl FromMembers<'_> for Assertion {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let assertion = Self {
            credential_id: members.required("credentialId")?,
            authenticator_data: members.required("authenticatorData")?,
            client_data_json: members.required("clientDataJSON")?,
            signature: members.required("signature")?,
        };
        members.close()?;
        Ok(assertion)
    }
}

/// Bytes that are written in base64url, at least one.
#[derive(Clone, PartialEq, Eq)]
pub struct Base64url(Vec<u8>);

impl Base64url {
    /// The bytes without their encoding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Base64url {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl FromStr for Base64url {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        let bytes = base64url::decode_all(text).filter(|bytes| !bytes.is_empty());
        bytes.map(Self).ok_or(Rule("is not base64url without padding, or is empty"))
    }
}

impl fmt::Debug for Base64url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

impl Serialize for Base64url {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(&base64url::encode(&self.0))
    }
}

written_as_string!(Base64url);

/// What a lock signs for a decision: SHA-256 of `countersign lock v1`, a zero byte, and the canonical decision without
/// `signature` and without `policyHints.lock`. So it is bound to all that the decision says.
pub fn challenge(decision: RawObject<'_>) -> Result<[u8; 32], Error> {
    let form = canonical::form_without_paths(decision, &[&["signature"], &["policyHints", MEMBER]])?;
    Ok(asked(b"countersign lock v1\0", &form))
}

/// What a lock signs for a canonical text; the prefix says what the text is.
pub(crate) fn asked(prefix: &[u8], form: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(prefix);
    hash.update(form);
    hash.finalize().into()
}

#[cfg(test)]
mod tests;
