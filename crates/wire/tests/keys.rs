//! Keys that must be rejected, and signatures that must not verify under any key.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use countersign_wire::keys::{AgreementKey, KeyBundle, PublicKey, SigningKey, VerifyingKey};
use proptest::prelude::*;

fn hex(text: &str) -> [u8; 32] {
    std::array::from_fn(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap())
}

/// The eight points of small order on edwards25519 and their non-canonical encodings.
const WEAK_ED25519: &[&str] = &[
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/// The points of small order on curve25519 and its twist, canonical or not.
const WEAK_X25519: &[&str] = &[
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "cdeb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
    "4c9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7",
    "d9ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "daffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "dbffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

#[test]
fn weak_signing_keys_are_refused() {
    for encoded in WEAK_ED25519 {
        assert!(VerifyingKey::from_bytes(&hex(encoded)).is_err(), "{encoded}");
    }
}

#[test]
fn bytes_that_are_no_point_are_refused() {
    let no_point = (2..=u8::MAX).map(|first| {
        let mut bytes = [0; 32];
        bytes[0] = first;
        bytes
    });
    assert!(no_point.filter(|bytes| VerifyingKey::from_bytes(bytes).is_err()).count() > 50);
}

#[test]
fn weak_and_unreduced_agreement_keys_are_refused() {
    for encoded in WEAK_X25519 {
        assert!(AgreementKey::from_bytes(hex(encoded)).is_err(), "{encoded}");
    }
    // 9 is the base point; 9 + p and 9 with the unused bit set are other spellings of it.
    let mut base = [0; 32];
    base[0] = 9;
    assert!(AgreementKey::from_bytes(base).is_ok());
    base[31] = 0x80;
    assert!(AgreementKey::from_bytes(base).is_err());
    assert!(
        AgreementKey::from_bytes(hex("f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"))
            .is_err()
    );
}

const SIGNING: &str = "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg";
const AGREEMENT: &str = "CQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const PROOF: &str = "__________________________________________8";

#[test]
fn a_bundle_is_written_as_it_was_read() {
    for text in [format!("v1.{SIGNING}.{AGREEMENT}"), format!("v1.{SIGNING}.{AGREEMENT}.{PROOF}")] {
        let bundle: KeyBundle = text.parse().unwrap();
        assert_eq!(bundle.to_string(), text);
        assert!(matches!(text.parse(), Ok(PublicKey::Bundle(_))));
    }
}

#[test]
fn a_broken_bundle_is_refused_and_not_read_as_opaque() {
    for text in [
        "v1.".to_owned(),
        format!("v1.{SIGNING}"),
        format!("v1.{SIGNING}."),
        format!("v1.{SIGNING}.{AGREEMENT}."),
        format!("v1.{SIGNING}.{AGREEMENT}.{PROOF}.{PROOF}"),
        format!("v1.{SIGNING}.{AGREEMENT}.AAAA"),
        format!("v1.{SIGNING}=.{AGREEMENT}"),
        format!("v1.{AGREEMENT}.{AGREEMENT}"),
        format!("v1.{SIGNING}.{SIGNING}"),
        format!("v1.AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.{AGREEMENT}"),
        format!("v1.{SIGNING}.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        // The same 32 bytes with trailing bits set.
        format!("v1.A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbh.{AGREEMENT}"),
    ] {
        assert!(text.parse::<PublicKey>().is_err(), "{text}");
    }
}

#[test]
fn other_texts_are_opaque_up_to_4096_characters() {
    for text in ["x", "V1.x", "ssh-ed25519 AAAA", &"é".repeat(4_096)] {
        assert_eq!(text.parse(), Ok(PublicKey::Opaque(text.into())));
    }
    assert!("".parse::<PublicKey>().is_err());
    assert!("é".repeat(4_097).parse::<PublicKey>().is_err());
}

#[test]
fn a_private_key_is_not_printed() {
    assert_eq!(format!("{:?}", SigningKey::from_seed(&[7; 32])), "SigningKey(…)");
}

proptest! {
    #[test]
    fn what_a_key_signs_only_that_key_verifies(seed: [u8; 32], other: [u8; 32], message: Vec<u8>, bit in 0_usize..512) {
        prop_assume!(seed != other);
        let key = SigningKey::from_seed(&seed);
        let signature = key.sign(&message);
        prop_assert!(key.verifying_key().verify(&message, &signature).is_ok());
        prop_assert!(SigningKey::from_seed(&other).verifying_key().verify(&message, &signature).is_err());

        let mut longer = message.clone();
        longer.push(0);
        prop_assert!(key.verifying_key().verify(&longer, &signature).is_err());

        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        let mut bytes = URL_SAFE_NO_PAD.decode(&signature).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(key.verifying_key().verify(&message, &URL_SAFE_NO_PAD.encode(bytes)).is_err());
    }
}
