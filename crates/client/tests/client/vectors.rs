//! The test vectors of sealing, pairing and calls, shared by all our implementations.

use crate::support::seal_cases;
use countersign_client::{
    effect_hash::effect_hash,
    keys::Fingerprint,
    lock::{self, Gesture, LockFault, LockKey},
    pairing::{
        PairingError, Transcript, answer_link,
        link::PairingLink,
        recovery::RecoveryCode,
        statement::{Statement, StatementError},
        typed_digits, verify_link,
    },
    payload::Payload,
};
use countersign_wire::{
    RawObject,
    artifact::ArtifactType,
    base64url,
    keys::KeyBundle,
    lock::{Assertion, challenge},
};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = format!("{}/../../vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The cases of a list, of which at least `good` are accepted and `bad` refused.
fn cases(document: &Value, list: &str, good: usize, bad: usize) -> Vec<Value> {
    let cases = document[list].as_array().unwrap();
    let refused = cases.iter().filter(|case| case["refused"].is_string()).count();
    assert!(cases.len() - refused >= good && refused >= bad, "{list}: {refused} of {} refused", cases.len());
    cases.clone()
}

fn text<'v>(case: &'v Value, name: &str) -> &'v str {
    seal_cases::text(case, name).unwrap()
}

fn bytes<const N: usize>(case: &Value, name: &str) -> [u8; N] {
    base64url::decode(text(case, name)).unwrap()
}

fn bundle(case: &Value, name: &str) -> KeyBundle {
    text(case, name).parse().unwrap()
}

#[test]
fn keys_of_the_vectors_follow_from_their_secrets() {
    for file in ["seal", "pairing"] {
        for (name, entry) in vectors(file)["keys"].as_object().unwrap() {
            let keys = seal_cases::device(entry).unwrap();
            assert_eq!(keys.bundle().to_string(), text(entry, "bundle"), "{name}");
            assert_eq!(keys.fingerprint().to_string(), text(entry, "fingerprint"), "{name}");
        }
    }
}

#[test]
fn sealed_contents_open_exactly_where_the_vectors_say() {
    for case in cases(&vectors("seal"), "cases", 18, 120) {
        let wanted = match case["refused"].as_str() {
            Some(reason) => Err(reason),
            None => Ok(text(&case, "plaintext").to_owned()),
        };
        for opened in seal_cases::open(&case).unwrap() {
            assert_eq!(opened, wanted, "{}", case["name"]);
        }
    }
}

#[test]
fn bundles_have_the_fingerprints_of_the_vectors() {
    for case in cases(&vectors("pairing"), "bundles", 5, 10) {
        let read = text(&case, "bundle").parse::<KeyBundle>();
        assert_eq!(read.is_err(), case["refused"].is_string(), "{}", case["name"]);
        let Ok(bundle) = read else { continue };
        let fingerprint = Fingerprint::of(&bundle);
        assert_eq!(fingerprint.to_string(), text(&case, "fingerprint"));
        assert_eq!(fingerprint.short(), text(&case, "short"));
        assert_eq!(fingerprint.digits(), text(&case, "digits"));
    }
}

#[test]
fn links_are_read_as_the_vectors_say() {
    for case in cases(&vectors("pairing"), "links", 8, 27) {
        let read = text(&case, "text").parse::<PairingLink>();
        assert_eq!(read.is_err(), case["refused"].is_string(), "{}", case["name"]);
        let Ok(link) = read else { continue };
        assert_eq!(link.to_string(), text(&case, "written"));
        assert_eq!(link.gateway, text(&case, "gateway"));
        assert_eq!(link.code.to_string(), text(&case, "code"));
        assert_eq!(link.enforcer_id, text(&case, "enforcerId"));
        assert_eq!(link.fingerprint.to_string(), text(&case, "fingerprint"));
        assert_eq!(*link.secret, bytes(&case, "secret"));
    }
}

#[test]
fn proofs_and_digits_are_those_of_the_vectors() {
    let document = vectors("pairing");
    let a_link: PairingLink = text(&document["links"][0], "text").parse().unwrap();
    for case in cases(&document, "transcripts", 3, 0) {
        let (enforcer, approver) = (bundle(&case, "enforcer"), bundle(&case, "approver"));
        let lock = case["lock"].as_str().map(|lock| lock.parse::<LockKey>().unwrap());
        let transcript = Transcript {
            enforcer_id: text(&case, "enforcerId"),
            enforcer: &enforcer,
            approver_id: text(&case, "approverId"),
            approver: &approver,
            nonce: text(&case, "nonce"),
            lock: lock.as_ref(),
        };
        let secret = bytes(&case, "secret");
        let enforcer_id = transcript.enforcer_id.to_owned();
        let link = PairingLink { enforcer_id, secret: secret.into(), ..a_link.clone() };
        let answer = answer_link(transcript, &link).unwrap();
        assert_eq!(answer.bundle.proof, Some(bytes(&case, "proof")), "{}", case["name"]);
        assert_eq!(answer.bundle.to_string(), text(&case, "answer"));
        let with_proof = Transcript { approver: &answer.bundle, ..transcript };
        verify_link(with_proof, &secret).unwrap();
        if lock.is_some() {
            let without = Transcript { lock: None, ..with_proof };
            assert_eq!(
                verify_link(without, &secret),
                Err(PairingError::ApproverUnproven),
                "the lock is left out"
            );
        }
        let other_run = Transcript { nonce: "another", ..with_proof };
        assert_eq!(verify_link(other_run, &secret), Err(PairingError::ApproverUnproven));
        for typed in case["typed"].as_array().unwrap() {
            let approver = bundle(typed, "answer");
            assert_eq!(approver.proof, Some(bytes(typed, "fresh")));
            let shown = typed_digits(Transcript { approver: &approver, ..transcript });
            assert_eq!(shown.unwrap(), text(typed, "digits"), "{}", case["name"]);
        }
    }
}

#[test]
fn statements_verify_exactly_where_the_vectors_say() {
    for case in cases(&vectors("pairing"), "statements", 8, 40) {
        let read = serde_json::from_str::<Statement>(text(&case, "statement"));
        let verified = read.map_err(|_| StatementError::Malformed).and_then(|statement| {
            let signer = bundle(&case, "signer").signing;
            statement
                .verify(&signer, text(&case, "enforcerId"), text(&case, "now").parse().unwrap())
                .map(drop)
        });
        let refused = match verified {
            Ok(()) => None,
            Err(StatementError::Malformed) => Some("malformed"),
            Err(StatementError::OtherEnforcer) => Some("other-enforcer"),
            Err(StatementError::Signature) => Some("signature"),
            Err(StatementError::Time) => Some("time"),
            Err(other) => unreachable!("{other}"),
        };
        assert_eq!(refused, case["refused"].as_str(), "{}", case["name"]);
    }
}

#[test]
fn recovery_codes_have_the_keys_of_the_vectors() {
    for case in cases(&vectors("pairing"), "recoveryCodes", 5, 9) {
        let read = text(&case, "text").parse::<RecoveryCode>();
        assert_eq!(read.is_err(), case["refused"].is_string(), "{}", case["name"]);
        let Ok(code) = read else { continue };
        let keys = code.keys().unwrap();
        assert_eq!(code.to_string(), text(&case, "written"));
        assert_eq!(*keys.to_secret(), bytes::<64>(&case, "secret"));
        assert_eq!(keys.bundle().to_string(), text(&case, "bundle"));
        assert_eq!(keys.fingerprint().to_string(), text(&case, "fingerprint"));
    }
}

#[test]
fn calls_are_shown_and_identified_as_the_vectors_say() {
    let document = vectors("calls");
    let cases = document["calls"].as_array().unwrap();
    assert!(cases.len() >= 12, "{}", cases.len());
    for case in cases {
        let name = text(case, "name");
        let artifact_type =
            *ArtifactType::ALL.iter().find(|kind| kind.as_str() == text(case, "artifactType")).unwrap();
        let json = case["payload"].to_string();
        let object = RawObject::parse(json.as_bytes()).unwrap();
        let hash = effect_hash(artifact_type, object, text(case, "repoName")).unwrap();
        assert_eq!(hash.to_string(), text(case, "effectHash"), "{name}");
        let payload = Payload::read(artifact_type, &object);
        assert_eq!(Value::from(matches!(payload, Payload::Raw(_))), case["isRaw"], "{name}: {payload:?}");
        let mut rest = payload.not_shown();
        rest.sort();
        assert_eq!(serde_json::json!(rest), case["notShown"], "{name}");
    }
}

#[test]
fn payloads_are_told_in_the_words_of_the_vectors() {
    for case in cases(&vectors("sentences"), "cases", 90, 0) {
        let name = text(&case, "name");
        let artifact_type =
            *ArtifactType::ALL.iter().find(|kind| kind.as_str() == text(&case, "artifactType")).unwrap();
        let json = case["payload"].to_string();
        let payload = Payload::read(artifact_type, &RawObject::parse(json.as_bytes()).unwrap());
        assert_eq!(payload.sentence(), text(&case, "sentence"), "{name}");
        let found = payload.found().into_iter();
        let found: Value =
            found.map(|it| serde_json::json!({ "text": it.text, "weight": it.weight.as_str() })).collect();
        assert_eq!(found, case["found"], "{name}");
    }
}

#[test]
fn locks_are_read_exactly_where_the_vectors_say() {
    for case in cases(&vectors("lock"), "locks", 6, 40) {
        let read = text(&case, "text").parse::<LockKey>();
        assert_eq!(read.is_err(), case["refused"] == "not-a-lock", "{}", case["name"]);
        let Ok(lock) = read else { continue };
        let parts = [lock.algorithm().as_str(), lock.rp_id(), lock.origin()];
        assert_eq!(parts, ["algorithm", "rpId", "origin"].map(|name| text(&case, name)));
        let bytes = [lock.credential_id(), lock.public_key()].map(base64url::encode);
        assert_eq!(bytes, ["credentialId", "publicKey"].map(|name| text(&case, name)));
        assert_eq!(lock.to_string(), text(&case, "text"));
    }
}

#[test]
fn a_lock_is_asked_about_all_of_a_decision() {
    for case in cases(&vectors("lock"), "challenges", 6, 0) {
        let decision = case["decision"].to_string();
        let asked = challenge(RawObject::parse(decision.as_bytes()).unwrap()).unwrap();
        assert_eq!(base64url::encode(&asked), text(&case, "challenge"), "{}", case["name"]);
    }
}

#[test]
fn assertions_are_verified_exactly_where_the_vectors_say() {
    for case in cases(&vectors("lock"), "assertions", 15, 90) {
        let decision = case["decision"].to_string();
        let raw = RawObject::parse(decision.as_bytes()).unwrap();
        let hints = case["decision"]["policyHints"].to_string();
        let key: LockKey = text(&case, "lock").parse().unwrap();
        let verified = match Assertion::of(RawObject::parse(hints.as_bytes()).unwrap()) {
            Ok(assertion) => lock::verify(&key, &assertion.unwrap(), raw),
            Err(_) => Err(LockFault::Malformed),
        };
        let refused = match verified {
            Ok(Gesture) => Value::Null,
            Err(fault) => word(fault).into(),
        };
        assert_eq!(refused, case["refused"], "{}", case["name"]);
    }
}

#[test]
fn a_lock_is_asked_about_all_of_a_statement_and_about_no_decision() {
    for case in cases(&vectors("lock"), "statements", 8, 15) {
        let statement: Statement = serde_json::from_value(case["statement"].clone()).unwrap();
        let asked = statement.challenge().unwrap();
        assert_eq!(base64url::encode(&asked), text(&case, "challenge"), "{}", case["name"]);
        let Some(assertion) = statement.confirmed() else { continue };
        let key: LockKey = text(&case, "lock").parse().unwrap();
        let refused = lock::verify_challenge(&key, assertion, asked).err().map(word);
        assert_eq!(refused, case["refused"].as_str(), "{}", case["name"]);
    }
}

fn word(fault: LockFault) -> &'static str {
    match fault {
        LockFault::Malformed => "malformed",
        LockFault::OtherCredential => "other-credential",
        LockFault::OtherType => "other-type",
        LockFault::OtherDecision => "other-decision",
        LockFault::OtherOrigin => "other-origin",
        LockFault::OtherSite => "other-site",
        LockFault::NotVerified => "not-verified",
        LockFault::Signature => "signature",
        _ => "unknown",
    }
}
