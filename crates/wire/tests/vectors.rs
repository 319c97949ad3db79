//! The test vectors, shared by all our implementations.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use countersign_wire::{
    Error, RawObject, SignatureFault,
    artifact::ArtifactSubmit,
    canonical,
    decision::Decision,
    hash::Sha256Hex,
    keys::{SigningKey, VerifyingKey},
    parse,
    prompt::PromptSubmit,
    session::SessionEvent,
};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/../../vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn cases(document: &Value) -> &[Value] {
    let cases = document["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    cases
}

fn text<'v>(case: &'v Value, name: &str) -> &'v str {
    case[name].as_str().unwrap()
}

#[test]
fn canonical_form_is_that_of_the_vectors() {
    for case in cases(&vectors("canonical")) {
        let canonical = canonical::form(text(case, "input").as_bytes()).unwrap();
        assert_eq!(String::from_utf8_lossy(&canonical), text(case, "canonical"), "{}", case["name"]);
        assert_eq!(Sha256Hex::digest(&canonical).to_string(), text(case, "sha256"), "{}", case["name"]);
    }
}

#[test]
fn hashes_are_those_of_the_vectors() {
    for case in cases(&vectors("hashes")) {
        let object = case["object"].to_string();
        let object = RawObject::parse(object.as_bytes()).unwrap();
        let field = text(case, "field");
        let canonical = canonical::form_without(object, field).unwrap();
        assert_eq!(String::from_utf8_lossy(&canonical), text(case, "canonical"), "{}", case["name"]);
        let hash = Sha256Hex::of_object_without(object, field).unwrap();
        assert_eq!(hash.to_string(), text(case, "sha256"), "{}", case["name"]);
        hash.check(object, field).unwrap();
    }
}

/// Reads the object as the message that carries `field` and checks its hash.
fn check_message(object: &str, field: &str) -> Result<(), Error> {
    let object = object.as_bytes();
    match field {
        "artifactHash" => parse::<ArtifactSubmit<'_>>(object)?.check_hash(),
        "promptHash" => parse::<PromptSubmit<'_>>(object)?.check_hash(),
        "snapshotHash" => parse::<SessionEvent<'_>>(object)?.check_hash(),
        other => panic!("no message carries {other}"),
    }
}

#[test]
fn messages_of_the_vectors_match_their_hash_and_any_change_breaks_it() {
    for case in cases(&vectors("hashes")) {
        let field = text(case, "field");
        check_message(&case["object"].to_string(), field).unwrap();

        let mut changed = case["object"].clone();
        changed["metadata"] = serde_json::json!({ "added": true });
        assert_eq!(check_message(&changed.to_string(), field), Err(Error::HashMismatch), "{}", case["name"]);

        changed["metadata"] = serde_json::json!({ "integer": 9_007_199_254_740_992_u64 });
        assert_eq!(check_message(&changed.to_string(), field), Err(Error::UnsafeInteger), "{}", case["name"]);
    }
}

#[test]
fn decisions_verify_exactly_where_the_vectors_say() {
    let document = vectors("decisions");
    let key: VerifyingKey = text(&document, "publicKey").parse().unwrap();
    let mut bad = 0;
    for case in cases(&document) {
        let written = case["decision"].to_string();
        let decision = parse::<Decision<'_>>(written.as_bytes()).unwrap();
        let verified = decision.verify(&key);
        assert_eq!(verified.is_ok(), case["verifies"].as_bool().unwrap(), "{}: {verified:?}", case["name"]);
        if let Some(canonical) = case["canonical"].as_str() {
            assert_eq!(
                String::from_utf8_lossy(&decision.signed_bytes().unwrap()),
                canonical,
                "{}",
                case["name"]
            );
        }
        bad += u32::from(verified.is_err());
    }
    assert!(bad >= 9, "only {bad} bad ones");
}

#[test]
fn signing_makes_the_signatures_of_the_vectors() {
    let document = vectors("decisions");
    let seed = countersign_seed(text(&document, "seed"));
    let key = SigningKey::from_seed(&seed);
    assert_eq!(key.verifying_key().to_string(), text(&document, "publicKey"));
    for case in cases(&document).iter().filter(|case| case["verifies"] == true) {
        let written = case["decision"].to_string();
        let decision = parse::<Decision<'_>>(written.as_bytes()).unwrap().into_view();
        let wanted = decision.signature.clone();
        let signed = Decision { signature: String::new(), ..decision }.sign(&key).unwrap();
        assert_eq!(signed.signature, wanted, "{}", case["name"]);
    }
}

fn countersign_seed(base64url: &str) -> [u8; 32] {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    URL_SAFE_NO_PAD.decode(base64url).unwrap().try_into().unwrap()
}

#[test]
fn every_single_bit_of_a_signature_and_every_field_counts() {
    let document = vectors("decisions");
    let key: VerifyingKey = text(&document, "publicKey").parse().unwrap();
    let good = &cases(&document)[0]["decision"];
    let signature = text(good, "signature");
    for index in 0..signature.len() {
        let mut changed = good.clone();
        let other = if &signature[index..=index] == "A" { "B" } else { "A" };
        changed["signature"] = [&signature[..index], other, &signature[index + 1..]].concat().into();
        let written = changed.to_string();
        let refused = parse::<Decision<'_>>(written.as_bytes()).unwrap().verify(&key);
        assert!(matches!(refused, Err(Error::Signature(_))), "letter {index}: {refused:?}");
    }
    for (name, other) in
        [("requestId", "x"), ("repoRef", "x"), ("nonce", "x"), ("signerKeyId", "x"), ("decision", "reject")]
    {
        let mut changed = good.clone();
        changed[name] = other.into();
        let written = changed.to_string();
        let refused = parse::<Decision<'_>>(written.as_bytes()).unwrap().verify(&key);
        assert_eq!(refused, Err(Error::Signature(SignatureFault::DoesNotVerify)), "{name}");
    }
}
