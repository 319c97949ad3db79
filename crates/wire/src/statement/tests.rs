//! Which statements verify, where and when.

use super::*;
use crate::keys::AgreementKey;

/// The keys of one device.
struct Keys(SigningKey, KeyBundle);

impl Keys {
    fn bundle(&self) -> &KeyBundle {
        &self.1
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.1)
    }
}

fn keys(number: u8) -> Keys {
    let signing = SigningKey::from_seed(&[number; 32]);
    let mut agreement = [0; 32];
    (agreement[0], agreement[1]) = (9, number);
    let agreement = AgreementKey::from_bytes(agreement).unwrap();
    let bundle = KeyBundle { signing: signing.verifying_key(), agreement, proof: None };
    Keys(signing, bundle)
}

fn sign(number: u8, issue: Issue<'_>, claim: Claim) -> Statement {
    let keys = keys(number);
    Statement::sign(&keys.0, keys.fingerprint(), issue, claim).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn vouched() -> Statement {
    let claim = Claim::vouch("bob", keys(2).bundle(), "bob's phone", at("2026-12-15T12:00:00Z"), false);
    let now = at("2026-11-15T12:00:00Z");
    sign(1, Issue { enforcer_id: "robot", id: "s1", by: "ada", at: now }, claim)
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
    assert_eq!(check(&statement, "robot", "2024-11-15T12:00:00Z"), Err(StatementError::Time), "for too long");
    let other = statement.verify(&keys(3).bundle().signing, "robot", at("2026-11-15T12:00:00Z"));
    assert_eq!(other, Err(StatementError::Signature));
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
        sign(1, issue, claim)
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
        statement.signature = keys(1).0.sign(&statement.signed_bytes().unwrap());
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
        lock: None,
    };
    assert_eq!(refused(vouch(&bundle), now), Err(StatementError::Malformed));
    assert_eq!(refused(vouch("v1.x.y"), now), Err(StatementError::Malformed));
}
