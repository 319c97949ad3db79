//! What the lock of an approver's device has signed, checked by the enforcer (docs/trust.md). No I/O.
//!
//! It proves that the device has verified a person, once, for exactly this decision or statement. It does not prove what was
//! on the screen.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use countersign_wire::{
    Error, FromMembers, Members, RawObject, base64url,
    keys::VerifyingKey,
    lock::{LockAlgorithm, challenge},
};
use sha2::{Digest as _, Sha256};

pub use countersign_wire::lock::{Assertion, LockKey};

use crate::checks::{self, Check, ensure};

/// A person whom a device has verified for one decision, or for one statement. How often the credential has signed, by its own
/// count, is in the bytes of the assertion only: credentials that are synchronised between devices do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gesture;

/// Why an assertion proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockFault {
    /// It is not an assertion of `WebAuthn`.
    #[error("what the device's lock says is not in a format that is known here")]
    Malformed,
    /// Another credential than the pinned one has signed.
    #[error("another lock than that of the device has confirmed it")]
    OtherCredential,
    /// It was made for something else than an assertion.
    #[error("the device's lock was asked for something else")]
    OtherType,
    /// It is about another decision, or another statement.
    #[error("the device's lock has confirmed something else")]
    OtherDecision,
    /// Another page has asked for it, or one in a frame.
    #[error("another page has asked for the device's lock")]
    OtherOrigin,
    /// It is bound to another domain.
    #[error("the device's lock has confirmed it for another site")]
    OtherSite,
    /// Nobody was there, or the device has not verified who.
    #[error("the device's lock did not verify who was there")]
    NotVerified,
    /// Its signature does not verify, or is not in its one form.
    #[error("the signature of the device's lock does not verify")]
    Signature,
}

/// Checks an assertion about a decision, whose text is canonicalized here.
pub fn verify(key: &LockKey, assertion: &Assertion, decision: RawObject<'_>) -> Result<Gesture, LockFault> {
    verify_challenge(key, assertion, challenge(decision).map_err(|_| LockFault::Malformed)?)
}

/// As [`verify`], of an assertion about whatever has this challenge.
pub fn verify_challenge(
    key: &LockKey,
    assertion: &Assertion,
    challenge: [u8; 32],
) -> Result<Gesture, LockFault> {
    checks::all(&Asserted::CHECKS, &Asserted::read(key, assertion, challenge)?)?;
    Ok(Gesture)
}

/// What a browser says of an assertion. Other members may come with newer browsers; the signature covers them.
struct ClientData {
    kind: String,
    challenge: String,
    origin: String,
    is_crossed: bool,
    has_top_origin: bool,
}

impl FromMembers<'_> for ClientData {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            kind: members.required("type")?,
            challenge: members.required("challenge")?,
            origin: members.required("origin")?,
            is_crossed: members.optional("crossOrigin")?.unwrap_or_default(),
            has_top_origin: members.contains("topOrigin"),
        })
    }
}

/// What an authenticator says: the hash of a domain, and flags.
struct AuthenticatorData<'a> {
    site: &'a [u8],
    flags: u8,
}

const PRESENT: u8 = 0x01;
const VERIFIED: u8 = 0x04;
const HAS_CREDENTIAL: u8 = 0x40;
const HAS_EXTENSIONS: u8 = 0x80;

impl<'a> AuthenticatorData<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (site, rest) = bytes.split_at_checked(32)?;
        let (flags, rest) = rest.split_first()?;
        // How often it has signed.
        let (_, extensions) = rest.split_at_checked(4)?;
        // An assertion has no new credential, and ends here unless it says that there are extensions.
        let is_whole = flags & HAS_CREDENTIAL == 0 && (flags & HAS_EXTENSIONS == 0) == extensions.is_empty();
        is_whole.then_some(Self { site, flags: *flags })
    }
}

/// An assertion beside the lock that must have made it.
struct Asserted<'a> {
    key: &'a LockKey,
    assertion: &'a Assertion,
    challenge: [u8; 32],
    client: ClientData,
    data: AuthenticatorData<'a>,
}

impl<'a> Asserted<'a> {
    const CHECKS: [Check<Self, LockFault>; 10] = [
        ("credential", |it| {
            let is_own = it.assertion.credential_id.as_bytes() == it.key.credential_id();
            ensure(is_own, LockFault::OtherCredential)
        }),
        ("type", |it| ensure(it.client.kind == "webauthn.get", LockFault::OtherType)),
        ("challenge", |it| {
            ensure(it.client.challenge == base64url::encode(&it.challenge), LockFault::OtherDecision)
        }),
        ("origin", |it| ensure(it.client.origin == it.key.origin(), LockFault::OtherOrigin)),
        ("cross origin", |it| ensure(!it.client.is_crossed, LockFault::OtherOrigin)),
        ("top origin", |it| ensure(!it.client.has_top_origin, LockFault::OtherOrigin)),
        ("site", |it| {
            let own = Sha256::digest(it.key.rp_id().as_bytes());
            ensure(it.data.site == own.as_slice(), LockFault::OtherSite)
        }),
        ("presence", |it| ensure(it.data.flags & PRESENT != 0, LockFault::NotVerified)),
        ("verification", |it| ensure(it.data.flags & VERIFIED != 0, LockFault::NotVerified)),
        ("signature", |it| ensure(it.is_signed(), LockFault::Signature)),
    ];

    fn read(key: &'a LockKey, assertion: &'a Assertion, challenge: [u8; 32]) -> Result<Self, LockFault> {
        let client = countersign_wire::parse::<ClientData>(assertion.client_data_json.as_bytes());
        let client = client.map_err(|_| LockFault::Malformed)?.into_view();
        let data = AuthenticatorData::read(assertion.authenticator_data.as_bytes());
        Ok(Self { key, assertion, challenge, client, data: data.ok_or(LockFault::Malformed)? })
    }

    fn is_signed(&self) -> bool {
        let digest = Sha256::digest(self.assertion.client_data_json.as_bytes());
        let signed = [self.assertion.authenticator_data.as_bytes(), digest.as_slice()].concat();
        let Some(signature) = self.key.raw_signature(self.assertion.signature.as_bytes()) else {
            return false;
        };
        let verifies = |algorithm: &'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(algorithm, self.key.raw_key()).verify(&signed, &signature).is_ok()
        };
        match self.key.algorithm() {
            LockAlgorithm::Es256 => verifies(&ECDSA_P256_SHA256_FIXED),
            LockAlgorithm::Rs256 => verifies(&RSA_PKCS1_2048_8192_SHA256),
            LockAlgorithm::EdDsa => {
                let key = self.key.raw_key().try_into().ok();
                let key = key.and_then(|key| VerifyingKey::from_bytes(key).ok());
                key.is_some_and(|key| key.verify(&signed, &base64url::encode(&signature)).is_ok())
            }
        }
    }
}

#[cfg(test)]
mod tests;
