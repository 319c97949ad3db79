//! Messages as a client writes them, from the specification alone.

#![expect(clippy::needless_pass_by_value, reason = "values are written where they are used")]

use std::{sync::LazyLock, time::Duration};

use countersign_wire::{canonical, hash::Sha256Hex, keys::SigningKey, timestamp::Timestamp};
use serde_json::{Value, json};

/// The real time: the gateway under test runs on it.
#[expect(clippy::disallowed_methods, reason = "the gateway under test runs on the real clock")]
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap())
}

/// In so many milliseconds.
pub fn soon(millis: u64) -> String {
    now().plus(Duration::from_millis(millis)).to_string()
}

/// The same for the whole run, and as late as most tenants allow.
pub static LATER: LazyLock<String> = LazyLock::new(|| {
    Timestamp::from_unix_micros(
        now().plus(Duration::from_hours(300 * 24)).unix_micros() / 1_000_000 * 1_000_000,
    )
    .to_string()
});

/// The hash of whatever a request is about.
pub fn hash(about: &str) -> String {
    Sha256Hex::digest(about.as_bytes()).to_string()
}

/// The hash of an object without one member.
pub fn hash_without(object: &Value, member: &str) -> String {
    let mut object = object.clone();
    object.as_object_mut().unwrap().remove(member);
    let form = canonical::form(object.to_string().as_bytes()).unwrap();
    Sha256Hex::digest(&form).to_string()
}

/// An envelope.
pub fn envelope(msg_type: &str, request_id: &str, sender: Value, body: Value) -> Value {
    json!({ "msgType": msg_type, "requestId": request_id, "createdAt": "2026-11-15T12:00:00Z", "sender": sender, "body": body })
}

/// A sealed artifact about its own request id.
pub fn sealed(id: &str) -> Value {
    json!({ "ciphertext": format!("sealed {id}"), "artifactType": "command.review", "artifactHash": hash(id), "expiresAt": *LATER })
}

/// A submission to one approver.
pub fn submission(id: &str, enforcer: &str, to: &str) -> Value {
    let mut envelope = envelope("artifact.submit", id, json!({ "enforcerId": enforcer }), sealed(id));
    envelope["recipient"] = json!({ "approverId": to });
    envelope
}

/// An artifact in the clear, with its hash.
pub fn open(id: &str) -> Value {
    let mut artifact = json!({
        "requestId": id, "artifactType": "command.review", "repoRef": "repo:acme/widgets",
        "createdAt": "2026-11-15T12:00:00Z", "expiresAt": *LATER, "artifactHashAlg": "SHA-256",
        "payload": { "command": "cargo test && git push", "n": 1.0 },
    });
    artifact["artifactHash"] = hash_without(&artifact, "artifactHash").into();
    artifact
}

/// A decision about a hash, signed if there is a key.
pub fn decision_about(id: &str, artifact_hash: &str, verdict: &str, key: Option<&SigningKey>) -> Value {
    let unsigned = json!({
        "requestId": id, "artifactHashAlg": "SHA-256", "artifactHash": artifact_hash, "repoRef": "repo:acme/widgets",
        "decision": verdict, "scope": "once", "expiresAt": *LATER, "nonce": "bm9uY2U", "sigAlg": "Ed25519",
        "signerKeyId": "key-1", "signature": "unchecked",
    });
    let Some(key) = key else { return unsigned };
    let text = unsigned.to_string();
    let read = countersign_wire::parse::<countersign_wire::decision::Decision<'_>>(text.as_bytes()).unwrap();
    serde_json::to_value(read.into_view().sign(key).unwrap()).unwrap()
}

/// An approval of a sealed artifact about its own request id.
pub fn approval(id: &str, approver: &str) -> Value {
    envelope(
        "decision.submit",
        id,
        json!({ "approverId": approver }),
        decision_about(id, &hash(id), "approve", None),
    )
}

/// Takes a submission back.
pub fn withdrawal(id: &str, enforcer: &str) -> Value {
    envelope("exchange.withdrawn", id, json!({ "enforcerId": enforcer }), json!({}))
}

/// A `v1` key bundle from a seed.
pub fn bundle(seed: u8) -> (String, SigningKey) {
    use countersign_wire::keys::{AgreementKey, KeyBundle, PublicKey};
    let signing = SigningKey::from_seed(&[seed; 32]);
    let mut agreement = [0; 32];
    (agreement[0], agreement[1]) = (9, seed);
    let bundle = KeyBundle {
        signing: signing.verifying_key(),
        agreement: AgreementKey::from_bytes(agreement).unwrap(),
        proof: None,
    };
    (PublicKey::Bundle(Box::new(bundle)).to_string(), signing)
}

/// A prompt in the clear, with its hash.
pub fn prompt(id: &str, text: &str) -> Value {
    let mut prompt = json!({
        "requestId": id, "artifactType": "prompt.send", "createdAt": "2026-11-15T12:00:00Z", "target": "agentChat",
        "text": text, "promptHashAlg": "SHA-256",
    });
    prompt["promptHash"] = hash_without(&prompt, "promptHash").into();
    prompt
}

/// What became of a prompt.
pub fn prompt_ack(prompt: &Value, status: &str) -> Value {
    json!({ "requestId": prompt["requestId"], "promptHash": prompt["promptHash"], "status": status, "ackAt": "2026-11-15T12:00:01Z" })
}

/// A snapshot of a session, with its hash.
pub fn snapshot(session: &str, id: &str, says: &str) -> Value {
    let mut snapshot = json!({
        "sessionId": session, "eventType": "session.snapshot", "snapshotId": id, "snapshotType": "plan",
        "createdAt": "2026-11-15T12:00:00Z", "payload": { "says": says }, "snapshotHashAlg": "SHA-256",
    });
    snapshot["snapshotHash"] = hash_without(&snapshot, "snapshotHash").into();
    snapshot
}
