//! The bodies that bare clients send, as texts: what is stored must be the same bytes.

use std::time::Duration;

use countersign_client::clock::{Clock as _, SystemClock};
use countersign_wire::hash::Sha256Hex;

/// The time after this duration, as the protocol writes it.
pub(super) fn after(duration: Duration) -> String {
    SystemClock.now().plus(duration).to_string()
}

/// The body of a sealed artifact. `content` is what stands for the ciphertext.
pub(super) fn artifact(request: &str, content: &str, expires_at: &str) -> String {
    let hash = Sha256Hex::digest(format!("{request} {content}").as_bytes());
    format!(
        r#"{{"ciphertext": "{content}","artifactType":"command.review","artifactHash":"{hash}","expiresAt":"{expires_at}"}}"#
    )
}

/// The body of a decision for one use. The gateway has no key of a bare approver, so it relays any signature.
pub(super) fn decision(request: &str, hash: &str, mark: &str, approves: bool, nonce: u64) -> String {
    let decision = if approves { "approve" } else { "reject" };
    let expires_at = after(Duration::from_mins(10));
    format!(
        r#"{{"requestId":"{request}", "artifactHashAlg":"SHA-256","artifactHash":"{hash}","repoRef":"{mark}","decision":"{decision}","scope":"once","expiresAt":"{expires_at}","nonce":"{mark}{nonce:016x}","sigAlg":"Ed25519","signerKeyId":"k","signature":"unchecked"}}"#
    )
}

/// An envelope around a body.
pub(super) fn envelope(
    kind: &str,
    request: &str,
    sender: (&str, &str),
    to: Option<&str>,
    body: &str,
) -> String {
    let (role, id) = sender;
    let recipient = to.map(|to| format!(r#""recipient":{{"approverId":"{to}"}},"#)).unwrap_or_default();
    let created_at = after(Duration::ZERO);
    format!(
        r#"{{"msgType":"{kind}","requestId":"{request}","createdAt":"{created_at}","sender":{{"{role}":"{id}"}},{recipient}"body":{body}}}"#
    )
}

/// The acknowledgement of a message.
pub(super) fn acknowledgement(request: &str, sender: (&str, &str), message: &str) -> String {
    let body = format!(r#"{{"msgId":"{message}","status":"processed"}}"#);
    envelope("ack.submit", request, sender, None, &body)
}
