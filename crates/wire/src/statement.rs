//! Statements that one device signs about another: that it may approve too, or must not any more.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{
    Error, FromJson, RawObject, canonical,
    fingerprint::Fingerprint,
    hash::Sha256Hex,
    keys::{KeyBundle, SigningKey, VerifyingKey},
    lock::{self, Assertion, LockKey},
    objects,
    timestamp::Timestamp,
};

/// What is said of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Claim {
    /// This device may decide for this approver, until then.
    #[serde(rename_all = "camelCase")]
    Vouch {
        /// Whose device it is: the same person's, or a teammate's.
        approver_id: String,
        /// Its keys, as `v1.<Ed25519>.<X25519>`.
        bundle: String,
        /// Its name for people.
        label: String,
        /// RFC 3339; from then on the device counts for nothing.
        until: String,
        /// Whether these are the keys of a recovery code, which may vouch once and may not decide.
        recovery: bool,
        /// The lock of the device; absent if it has none.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        lock: Option<String>,
    },
    /// This device must not decide any more, from now on.
    #[serde(rename_all = "camelCase")]
    Revoke {
        /// The fingerprint of its keys.
        fingerprint: String,
    },
}

/// A claim with its signature, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Statement {
    v: u8,
    /// The enforcer that it is for: a statement for one machine means nothing to another.
    enforcer_id: String,
    /// Unique, so that a statement is taken once.
    id: String,
    /// When it was signed, by the signer's clock, in RFC 3339.
    issued_at: String,
    /// The approver who signs.
    by: String,
    /// The fingerprint of the keys that sign.
    by_fingerprint: String,
    claim: Claim,
    /// What the lock of the device that signs says of exactly this statement; absent if it was not asked.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    confirmed: Option<Assertion>,
    signature: String,
}

/// The member of a statement that has what a lock has signed.
const CONFIRMED: &str = "confirmed";

objects!(Claim, Statement);

/// A value that may be absent; `null` is not absence.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}

impl FromJson<'_> for Statement {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        serde_json::from_str(value.get()).map_err(|_| Error::breaks("", "is not a statement"))
    }
}

/// A claim in types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// This device may decide too.
    Vouch(Vouch<'a>),
    /// The device with this fingerprint must not decide any more.
    Revoke(Fingerprint),
}

/// Who is vouched for, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouch<'a> {
    /// Whose device it is.
    pub approver_id: &'a str,
    /// Its keys, without a proof.
    pub bundle: Box<KeyBundle>,
    /// Its name for people.
    pub label: &'a str,
    /// From then on it counts for nothing.
    pub until: Timestamp,
    /// Whether these are the keys of a recovery code.
    pub recovery: bool,
    /// The lock of the device.
    pub lock: Option<LockKey>,
}

/// Why a statement is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementError {
    /// It is not of this format, or of another version of it.
    #[error("the statement is not in a format that is known here")]
    Malformed,
    /// It is for another enforcer.
    #[error("the statement is for another machine")]
    OtherEnforcer,
    /// Who claims to have signed it did not, or it was changed.
    #[error("the signature of the statement does not verify")]
    Signature,
    /// It vouches until a time that has passed, for longer than is allowed, or was signed in the future.
    #[error("the statement is not valid at this time")]
    Time,
}

/// The longest time for which a device can be vouched for, from the signing on: a year.
pub const MAX_VOUCH: Duration = Duration::from_hours(365 * 24);

/// How far the clock of who signs may be ahead.
const SKEW: Duration = Duration::from_mins(1);

/// Who signs a statement for which enforcer, and when.
#[derive(Debug, Clone, Copy)]
pub struct Issue<'a> {
    /// The enforcer that it is for.
    pub enforcer_id: &'a str,
    /// Unique among the statements of this signer.
    pub id: &'a str,
    /// The approver who signs.
    pub by: &'a str,
    /// The time of signing.
    pub at: Timestamp,
}

impl Claim {
    /// Vouches for a device.
    pub fn vouch(
        approver_id: &str,
        bundle: &KeyBundle,
        label: &str,
        until: Timestamp,
        recovery: bool,
    ) -> Self {
        Self::Vouch {
            approver_id: approver_id.to_owned(),
            bundle: KeyBundle { proof: None, ..bundle.clone() }.to_string(),
            label: label.to_owned(),
            until: until.to_string(),
            recovery,
            lock: None,
        }
    }

    /// The same with the lock of the device that is vouched for.
    #[must_use]
    pub fn with_lock(mut self, key: Option<&LockKey>) -> Self {
        if let Self::Vouch { lock, .. } = &mut self {
            *lock = key.map(LockKey::to_string);
        }
        self
    }

    /// Revokes a device, for good.
    pub fn revoke(fingerprint: Fingerprint) -> Self {
        Self::Revoke { fingerprint: fingerprint.to_string() }
    }

    /// The same in types; the error says that a part is not what it has to be.
    pub fn read(&self) -> Result<Said<'_>, StatementError> {
        match self {
            Self::Vouch { approver_id, bundle, label, until, recovery, lock } => {
                let bundle: KeyBundle = bundle.parse().map_err(|_| StatementError::Malformed)?;
                let until = until.parse().map_err(|_| StatementError::Malformed)?;
                let lock: Option<LockKey> =
                    lock.as_deref().map(str::parse).transpose().map_err(|_| StatementError::Malformed)?;
                // A code on paper has no lock.
                if bundle.proof.is_some() || *recovery && lock.is_some() {
                    return Err(StatementError::Malformed);
                }
                let bundle = Box::new(bundle);
                Ok(Said::Vouch(Vouch { approver_id, bundle, label, until, recovery: *recovery, lock }))
            }
            Self::Revoke { fingerprint } => {
                Fingerprint::parse(fingerprint).map(Said::Revoke).ok_or(StatementError::Malformed)
            }
        }
    }
}

impl Statement {
    /// Signs a claim with the keys of a device that the enforcer has pinned; `by` is the fingerprint of these keys.
    pub fn sign(
        key: &SigningKey,
        by: Fingerprint,
        issue: Issue<'_>,
        claim: Claim,
    ) -> Result<Self, StatementError> {
        Self::sign_with(key, by, issue, claim, |_| None)
    }

    /// As [`Statement::sign`], with what the lock of this device signs for exactly this statement: it is asked with the
    /// challenge.
    pub fn sign_with(
        key: &SigningKey,
        by: Fingerprint,
        issue: Issue<'_>,
        claim: Claim,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<Self, StatementError> {
        let mut statement = Self {
            v: 1,
            enforcer_id: issue.enforcer_id.to_owned(),
            id: issue.id.to_owned(),
            issued_at: issue.at.to_string(),
            by: issue.by.to_owned(),
            by_fingerprint: by.to_string(),
            claim,
            confirmed: None,
            signature: String::new(),
        };
        statement.confirmed = lock(statement.challenge()?);
        statement.signature = key.sign(&statement.signed_bytes()?);
        Ok(statement)
    }

    /// What the signature covers: a prefix that no other signature of ours has, and the canonical statement without its
    /// signature.
    fn signed_bytes(&self) -> Result<Vec<u8>, StatementError> {
        Ok([b"countersign statement v1\0", self.form_without(&[&["signature"]])?.as_slice()].concat())
    }

    fn form_without(&self, paths: &[&[&str]]) -> Result<Vec<u8>, StatementError> {
        let text = serde_json::to_vec(self).map_err(|_| StatementError::Malformed)?;
        let object = RawObject::parse(&text).map_err(|_| StatementError::Malformed)?;
        canonical::form_without_paths(object, paths).map_err(|_| StatementError::Malformed)
    }

    /// What the lock of the device that signs is asked: SHA-256 of `countersign lock statement v1`, a zero byte, and the
    /// canonical statement without `signature` and without `confirmed`.
    pub fn challenge(&self) -> Result<[u8; 32], StatementError> {
        let form = self.form_without(&[&["signature"], &[CONFIRMED]])?;
        Ok(lock::asked(b"countersign lock statement v1\0", &form))
    }

    /// What a lock has signed for this statement, if there is anything. Nothing of it is proven here: whoever has pinned the
    /// lock of the device verifies it.
    pub fn confirmed(&self) -> Option<&Assertion> {
        self.confirmed.as_ref()
    }

    /// The enforcer that it is for.
    pub fn enforcer_id(&self) -> &str {
        &self.enforcer_id
    }

    /// The approver who claims to have signed it. Look up the keys of [`Statement::by_fingerprint`] and verify.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The fingerprint of the keys that claim to have signed it.
    pub fn by_fingerprint(&self) -> Option<Fingerprint> {
        Fingerprint::parse(&self.by_fingerprint)
    }

    /// Makes two statements of the same content different ones.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it claims. Nothing of it counts before [`Statement::verify`].
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Identifies the statement, with its id and however it is spelled: SHA-256 of what the signature covers.
    pub fn digest(&self) -> Result<Sha256Hex, StatementError> {
        Ok(Sha256Hex::digest(&self.signed_bytes()?))
    }

    /// Verifies it under a key, for one enforcer. Whoever has a pin also checks that the pin is that of the approver and of
    /// the keys that the statement names. Returns what it claims.
    pub fn verify(
        &self,
        signer: &VerifyingKey,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<Said<'_>, StatementError> {
        self.check_signature(signer)?;
        if self.enforcer_id != enforcer_id {
            return Err(StatementError::OtherEnforcer);
        }
        let said = self.claim.read()?;
        self.check_time(now)?;
        Ok(said)
    }

    /// Checks only that it is of this format, and signed with this key.
    pub fn check_signature(&self, signer: &VerifyingKey) -> Result<(), StatementError> {
        if self.v != 1 {
            return Err(StatementError::Malformed);
        }
        signer.verify(&self.signed_bytes()?, &self.signature).map_err(|_| StatementError::Signature)
    }

    /// Checks only that it counts at this time. A revocation always does: one that is not taken leaves a device that nobody
    /// trusts.
    pub fn check_time(&self, now: Timestamp) -> Result<(), StatementError> {
        let issued_at: Timestamp = self.issued_at.parse().map_err(|_| StatementError::Malformed)?;
        // From the signing on, or one for ten years would be accepted in its last one.
        match self.claim.read()? {
            Said::Vouch(Vouch { until, .. })
                if until <= now || until > issued_at.plus(MAX_VOUCH) || issued_at > now.plus(SKEW) =>
            {
                Err(StatementError::Time)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
