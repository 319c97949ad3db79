use super::*;

fn point() -> Vec<u8> {
    let key: [&[u8]; 4] = [&[0x30, 0x59], P256, &[3, 0x42, 0, 4], &[7; 64]];
    key.concat()
}

fn lock(rp_id: &str, origin: &str) -> Result<LockKey, Rule> {
    LockKey::new(LockAlgorithm::Es256, vec![1, 2, 3], point(), rp_id, origin)
}

#[test]
fn a_lock_has_one_text() {
    let made = lock("gw.example", "https://gw.example:8443").unwrap();
    let text = made.to_string();
    let read: LockKey = text.parse().unwrap();
    assert_eq!((read.to_string(), read.raw_key().len()), (text.clone(), 65));
    assert_eq!(RelayedLock::from(&made).read(), Some(made));
    for other in [
        "",
        "v1",
        &text.replace("v1.", "v2."),
        &text.replace("ES256", "es256"),
        &text.replace("ES256", "EdDSA"),
        &format!("{text}."),
        &format!("{text}="),
        &text[..text.len() - 1],
    ] {
        assert!(other.parse::<LockKey>().is_err(), "{other}");
    }
    assert!(RelayedLock::from_str(&"a".repeat(4097)).is_err());
    assert!(RelayedLock::from_str("a b").is_err());
}

#[test]
fn an_origin_is_a_page_that_may_use_the_domain() {
    for (rp_id, origin) in [
        ("gw.example", "https://gw.example"),
        ("gw.example", "https://approve.gw.example"),
        ("localhost", "http://localhost:8080"),
    ] {
        assert!(lock(rp_id, origin).is_ok(), "{origin}");
    }
    for (rp_id, origin) in [
        ("gw.example", "http://gw.example"),
        ("gw.example", "https://gw.example/"),
        ("gw.example", "https://gw.example:0"),
        ("gw.example", "https://gw.example:080"),
        ("gw.example", "https://GW.example"),
        ("gw.example", "https://ada@gw.example"),
        ("gw.example", "https://evilgw.example"),
        ("gw.example", "https://gw.example.evil"),
        ("gw.example", "android:apk-key-hash:abc"),
        ("", "https://gw.example"),
        (".example", "https://gw.example"),
    ] {
        assert!(lock(rp_id, origin).is_err(), "{rp_id} {origin}");
    }
}

#[test]
fn a_key_is_that_of_its_algorithm_in_its_one_text() {
    let of = |algorithm, key: Vec<u8>| LockKey::new(algorithm, vec![1], key, "localhost", "http://localhost");
    let compressed: Vec<u8> = [&[0x30, 0x39], P256, &[3, 0x22, 0, 2], &[7; 32]].concat();
    let long: Vec<u8> = [&[0x30, 0x81, 0x59], P256, &[3, 0x42, 0, 4], &[7; 64]].concat();
    for key in [compressed, long, [point(), vec![0]].concat(), point()[26..].to_vec(), Vec::new()] {
        assert!(of(LockAlgorithm::Es256, key.clone()).is_err(), "{key:?}");
    }
    let ed = |key: &[u8; 32]| [&[0x30, 0x2a], ED25519, &[3, 0x21, 0], key.as_slice()].concat();
    let strong = crate::keys::SigningKey::from_seed(&[1; 32]).verifying_key();
    assert!(of(LockAlgorithm::EdDsa, ed(strong.as_bytes())).is_ok());
    let mut weak = [0; 32];
    weak[0] = 1;
    assert!(of(LockAlgorithm::EdDsa, ed(&weak)).is_err());
    let rsa = |modulus: usize, first: u8, exponent: u8| {
        let mut number = vec![first; modulus];
        number.insert(0, 0);
        let length = |length: usize| [&[0x82][..], &u16::try_from(length).unwrap().to_be_bytes()].concat();
        let key = [&[2], length(modulus + 1).as_slice(), &number, &[2, 3, 1, 0, exponent]].concat();
        let key = [&[0x30], length(key.len()).as_slice(), &key].concat();
        let bits = [&[3], length(key.len() + 1).as_slice(), &[0], &key].concat();
        [&[0x30], length(RSA.len() + bits.len()).as_slice(), RSA, &bits].concat()
    };
    assert!(of(LockAlgorithm::Rs256, rsa(256, 0xc1, 1)).is_ok());
    assert!(of(LockAlgorithm::Rs256, rsa(512, 0xc1, 1)).is_ok());
    for key in [rsa(255, 0xc1, 1), rsa(513, 0xc1, 1), rsa(256, 0x41, 1), rsa(256, 0xc1, 3)] {
        assert!(of(LockAlgorithm::Rs256, key).is_err());
    }
}

#[test]
fn the_challenge_is_all_of_the_decision_but_the_two_signatures() {
    let of = |text: &str| challenge(RawObject::parse(text.as_bytes()).unwrap()).unwrap();
    let plain = of(r#"{"a":1,"policyHints":{"sealed":"x"}}"#);
    assert_eq!(of(r#"{"signature":"s","policyHints":{"lock":{"x":1},"sealed":"x"},"a":1}"#), plain);
    for other in [
        r#"{"a":2,"policyHints":{"sealed":"x"}}"#,
        r#"{"a":1,"policyHints":{"sealed":"y"}}"#,
        r#"{"a":1,"policyHints":{"sealed":"x","signature":"s"}}"#,
        r#"{"a":1,"lock":{},"policyHints":{"sealed":"x"}}"#,
        r#"{"a":1,"policyHints":{"sealed":"x","inner":{"lock":1}}}"#,
    ] {
        assert_ne!(of(other), plain, "{other}");
    }
    let expected: [u8; 32] =
        Sha256::digest(b"countersign lock v1\0{\"a\":1,\"policyHints\":{\"sealed\":\"x\"}}").into();
    assert_eq!(plain, expected);
}

#[test]
fn an_assertion_is_exactly_its_four_members() {
    let read = |text: &str| Assertion::of(RawObject::parse(text.as_bytes()).unwrap());
    let good =
        r#"{"lock":{"credentialId":"AQ","authenticatorData":"Ag","clientDataJSON":"Aw","signature":"BA"}}"#;
    let assertion = read(good).unwrap().unwrap();
    assert_eq!(format!("{{\"lock\":{}}}", serde_json::to_string(&assertion).unwrap()), good);
    assert_eq!(read("{}").unwrap(), None);
    for other in [
        r#"{"lock":null}"#,
        &good.replace(r#""signature":"BA""#, r#""signature":"""#),
        &good.replace(r#""signature":"BA""#, r#""signature":"BB""#),
        &good.replace(r#""signature":"BA""#, r#""signature":"BA","userHandle":"BA""#),
        &good.replace(r#","signature":"BA""#, ""),
    ] {
        assert!(read(other).is_err(), "{other}");
    }
}
