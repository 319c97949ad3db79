//! Statements that one device signs about another: that it may approve too, or must not any more.

use std::time::Duration;

use countersign_wire::{
    RawObject, canonical,
    keys::{KeyBundle, VerifyingKey},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    keys::{DeviceKeys, Fingerprint},
    object,
    profile::{Party, Pin},
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
    signature: String,
}

object::objects!(Claim, Statement);

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
        }
    }

    /// Revokes a device, for good.
    pub fn revoke(fingerprint: Fingerprint) -> Self {
        Self::Revoke { fingerprint: fingerprint.to_string() }
    }
}

impl Statement {
    /// Signs a claim with the keys of a device that the enforcer has pinned.
    pub fn sign(keys: &DeviceKeys, issue: Issue<'_>, claim: Claim) -> Result<Self, StatementError> {
        let mut statement = Self {
            v: 1,
            enforcer_id: issue.enforcer_id.to_owned(),
            id: issue.id.to_owned(),
            issued_at: issue.at.to_string(),
            by: issue.by.to_owned(),
            by_fingerprint: keys.fingerprint().to_string(),
            claim,
            signature: String::new(),
        };
        statement.signature = keys.signing_key().sign(&statement.signed_bytes()?);
        Ok(statement)
    }

    /// What the signature covers: a prefix that no other signature of ours has, and the canonical statement without its
    /// signature.
    fn signed_bytes(&self) -> Result<Vec<u8>, StatementError> {
        let text = serde_json::to_vec(self).map_err(|_| StatementError::Malformed)?;
        let object = RawObject::parse(&text).map_err(|_| StatementError::Malformed)?;
        let form = canonical::form_without(object, "signature").map_err(|_| StatementError::Malformed)?;
        Ok([b"countersign statement v1\0", form.as_slice()].concat())
    }

    /// The approver who claims to have signed it. Look up the pin of [`Statement::by_fingerprint`] and verify.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The fingerprint of the keys that claim to have signed it.
    pub fn by_fingerprint(&self) -> Option<Fingerprint> {
        Fingerprint::parse(&self.by_fingerprint)
    }

    /// The id, by which a repeated statement is recognised.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Verifies it for one enforcer: that it is signed by the device of this pin, which must be active, and that the device
    /// is that of the approver it names. Returns what it claims.
    pub fn verify_pinned(
        &self,
        signer: &Pin,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<&Claim, StatementError> {
        let is_named = matches!(signer.party(), Party::Approver(approver) if approver.as_str() == self.by)
            && self.by_fingerprint() == Some(signer.fingerprint());
        if !is_named || signer.revoked_at().is_some() {
            return Err(StatementError::Signature);
        }
        self.verify(&signer.bundle().signing, enforcer_id, now)
    }

    /// Verifies it under a key alone. Whoever has a pin uses [`Statement::verify_pinned`]: a statement also says who signed
    /// it, and that must be the pin's.
    pub fn verify(
        &self,
        signer: &VerifyingKey,
        enforcer_id: &str,
        now: Timestamp,
    ) -> Result<&Claim, StatementError> {
        if self.v != 1 {
            return Err(StatementError::Malformed);
        }
        signer.verify(&self.signed_bytes()?, &self.signature).map_err(|_| StatementError::Signature)?;
        if self.enforcer_id != enforcer_id {
            return Err(StatementError::OtherEnforcer);
        }
        let issued_at: Timestamp = self.issued_at.parse().map_err(|_| StatementError::Malformed)?;
        match &self.claim {
            Claim::Vouch { bundle, until, .. } => {
                let bundle: KeyBundle = bundle.parse().map_err(|_| StatementError::Malformed)?;
                let until: Timestamp = until.parse().map_err(|_| StatementError::Malformed)?;
                if bundle.proof.is_some() {
                    return Err(StatementError::Malformed);
                }
                // From the signing on, or one for ten years would be accepted in its last one.
                if until <= now || until > issued_at.plus(MAX_VOUCH) || issued_at > now.plus(SKEW) {
                    return Err(StatementError::Time);
                }
            }
            // Whatever the clocks say: a revocation that is not taken leaves a device that nobody trusts.
            Claim::Revoke { fingerprint } => {
                Fingerprint::parse(fingerprint).ok_or(StatementError::Malformed)?;
            }
        }
        Ok(&self.claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{PinSource, Pins};

    fn keys(number: u8) -> DeviceKeys {
        DeviceKeys::from_secret(&[number; 64]).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn vouched() -> Statement {
        let claim = Claim::vouch("bob", keys(2).bundle(), "bob's phone", at("2026-12-15T12:00:00Z"), false);
        let now = at("2026-11-15T12:00:00Z");
        Statement::sign(&keys(1), Issue { enforcer_id: "robot", id: "s1", by: "ada", at: now }, claim)
            .unwrap()
    }

    fn check(statement: &Statement, enforcer: &str, now: &str) -> Result<(), StatementError> {
        statement.verify(&keys(1).bundle().signing, enforcer, at(now)).map(drop)
    }

    #[test]
    fn a_statement_is_for_its_enforcer_and_its_time() {
        let statement: Statement = serde_json::from_str(&serde_json::to_string(&vouched()).unwrap()).unwrap();
        assert_eq!(check(&statement, "robot", "2026-11-15T12:00:00Z"), Ok(()));
        assert_eq!(check(&statement, "other", "2026-11-15T12:00:00Z"), Err(StatementError::OtherEnforcer));
        assert_eq!(check(&statement, "robot", "2026-12-15T12:00:00Z"), Err(StatementError::Time));
        assert_eq!(
            check(&statement, "robot", "2024-11-15T12:00:00Z"),
            Err(StatementError::Time),
            "for too long"
        );
        let other = statement.verify(&keys(3).bundle().signing, "robot", at("2026-11-15T12:00:00Z"));
        assert_eq!(other, Err(StatementError::Signature));
    }

    #[test]
    fn a_statement_is_of_the_pin_that_it_names() {
        let (now, statement) = (at("2026-11-15T12:00:00Z"), vouched());
        let pin = |id: &str, number: u8| {
            let party = Party::Approver(id.parse().unwrap());
            Pin::new(party, keys(number).bundle(), PinSource::Paired, now)
        };
        assert!(statement.verify_pinned(&pin("ada", 1), "robot", now).is_ok());
        let enforcer =
            Pin::new(Party::Enforcer("ada".parse().unwrap()), keys(1).bundle(), PinSource::Paired, now);
        for other in [pin("bob", 1), pin("ada", 3), enforcer] {
            assert_eq!(
                statement.verify_pinned(&other, "robot", now),
                Err(StatementError::Signature),
                "{other:?}"
            );
        }
        let mut pins = Pins::default();
        pins.insert(pin("ada", 1)).unwrap();
        pins.revoke(keys(1).fingerprint(), now).unwrap();
        let revoked = pins.get(keys(1).fingerprint()).unwrap();
        assert_eq!(statement.verify_pinned(revoked, "robot", now), Err(StatementError::Signature));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let text = serde_json::to_string(&vouched()).unwrap();
        for position in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let Ok(statement) = serde_json::from_str::<Statement>(&changed) else { continue };
            assert!(check(&statement, "robot", "2026-11-15T12:00:00Z").is_err(), "byte {position}");
        }
    }

    #[test]
    fn a_signature_of_a_statement_is_none_of_anything_else() {
        let statement = vouched();
        let text = serde_json::to_string(&statement).unwrap();
        let form = canonical::form_without(RawObject::parse(text.as_bytes()).unwrap(), "signature").unwrap();
        let key = keys(1).bundle().signing;
        assert!(key.verify(&form, &statement.signature).is_err(), "the prefix is signed too");
        key.verify(&[b"countersign statement v1\0", form.as_slice()].concat(), &statement.signature).unwrap();
    }

    #[test]
    fn nobody_is_vouched_for_longer_than_a_year_by_waiting() {
        let signed = |issued: &str, until: &str| {
            let claim = Claim::vouch("bob", keys(2).bundle(), "phone", at(until), false);
            let issue = Issue { enforcer_id: "robot", id: "s", by: "ada", at: at(issued) };
            Statement::sign(&keys(1), issue, claim).unwrap()
        };
        let ten_years = signed("2016-11-15T12:00:00Z", "2026-11-15T12:00:00Z");
        assert_eq!(check(&ten_years, "robot", "2026-11-15T00:00:00Z"), Err(StatementError::Time));
        let a_year = signed("2026-11-15T12:00:00Z", "2027-11-15T12:00:00Z");
        assert_eq!(check(&a_year, "robot", "2026-11-15T11:59:00Z"), Ok(()), "a clock that is ahead");
        assert_eq!(check(&a_year, "robot", "2026-11-15T11:58:59Z"), Err(StatementError::Time));
    }

    #[test]
    fn what_is_signed_is_read_too() {
        let refused = |claim: Claim, issued_at: &str| {
            let mut statement = Statement { claim, issued_at: issued_at.to_owned(), ..vouched() };
            statement.signature = keys(1).signing_key().sign(&statement.signed_bytes().unwrap());
            check(&statement, "robot", "2026-11-15T12:00:00Z")
        };
        let now = "2026-11-15T12:00:00Z";
        let revoke = Claim::revoke(keys(2).fingerprint());
        assert_eq!(refused(revoke.clone(), now), Ok(()));
        assert_eq!(refused(revoke.clone(), "2036-11-15T12:00:00Z"), Ok(()), "however wrong the clock is");
        assert_eq!(refused(revoke, "now"), Err(StatementError::Malformed));
        let nobody = Claim::Revoke { fingerprint: "9F3C-41AA".to_owned() };
        assert_eq!(refused(nobody, now), Err(StatementError::Malformed));
        let bundle = KeyBundle { proof: Some([1; 32]), ..keys(2).bundle().clone() }.to_string();
        let vouch = |bundle: &str| Claim::Vouch {
            approver_id: "bob".to_owned(),
            bundle: bundle.to_owned(),
            label: String::new(),
            until: "2026-12-15T12:00:00Z".to_owned(),
            recovery: false,
        };
        assert_eq!(refused(vouch(&bundle), now), Err(StatementError::Malformed));
        assert_eq!(refused(vouch("v1.x.y"), now), Err(StatementError::Malformed));
    }
}
