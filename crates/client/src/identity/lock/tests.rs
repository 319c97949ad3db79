use countersign_testkit::authenticator::{Authenticator, Signed};

use super::*;

const DECISION: &str = r#"{"decision":"approve","nonce":"n","policyHints":{"sealed":{}}}"#;

fn decision() -> RawObject<'static> {
    RawObject::parse(DECISION.as_bytes()).unwrap()
}

fn asserted(phone: &Authenticator, change: impl FnOnce(&mut Signed)) -> Assertion {
    phone.sign(challenge(decision()).unwrap(), change)
}

#[test]
fn an_assertion_about_a_decision_is_verified() {
    let phone = Authenticator::new("gw.example");
    let good = asserted(&phone, |_| ());
    assert_eq!(verify(phone.lock(), &good, decision()), Ok(Gesture));
    let other =
        RawObject::parse(br#"{"decision":"reject","nonce":"n","policyHints":{"sealed":{}}}"#).unwrap();
    assert_eq!(verify(phone.lock(), &good, other), Err(LockFault::OtherDecision));
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let phone = Authenticator::new("gw.example");
    type Change = fn(&mut Signed);
    let attacks: [(&str, Change, LockFault); 9] = [
        ("credential", |it| it.credential = b"another".to_vec(), LockFault::OtherCredential),
        ("type", |it| it.client["type"] = "webauthn.create".into(), LockFault::OtherType),
        ("challenge", |it| it.client["challenge"] = "AAAA".into(), LockFault::OtherDecision),
        ("origin", |it| it.client["origin"] = "https://a.gw.example".into(), LockFault::OtherOrigin),
        ("cross origin", |it| it.client["crossOrigin"] = true.into(), LockFault::OtherOrigin),
        ("top origin", |it| it.client["topOrigin"] = "https://gw.example".into(), LockFault::OtherOrigin),
        ("site", |it| it.data[0] ^= 1, LockFault::OtherSite),
        ("presence", |it| it.data[32] = VERIFIED, LockFault::NotVerified),
        ("verification", |it| it.data[32] = PRESENT, LockFault::NotVerified),
    ];
    let attacks = attacks.map(|(check, change, fault)| (check, asserted(&phone, change), fault));
    let stolen = asserted(&Authenticator::new("gw.example"), |_| ());
    let attacks: Vec<_> = attacks.into_iter().chain([("signature", stolen, LockFault::Signature)]).collect();
    let attacked: Vec<&str> = attacks.iter().map(|(check, ..)| *check).collect();
    assert_eq!(attacked, checks::names(&Asserted::CHECKS));
    let challenge = challenge(decision()).unwrap();
    for (check, assertion, fault) in &attacks {
        assert_eq!(verify(phone.lock(), assertion, decision()), Err(*fault), "{check}");
        let read = Asserted::read(phone.lock(), assertion, challenge).unwrap();
        let won = checks::all_but(check, &Asserted::CHECKS, &read);
        assert_eq!(won, Ok(()), "without {check} the attack succeeds");
    }
}
