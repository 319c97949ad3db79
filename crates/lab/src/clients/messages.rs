//! The requests as bytes. Every published message has a stamp, `"nonce":"<sent>-<number>"`.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use countersign_wire::timestamp::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::Failure;

/// The approver that the gateway assumes if a key for any approver names none.
const APPROVER: &str = "dev-approver";
pub(super) const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// In ten days, by the clock of this machine.
#[expect(clippy::disallowed_methods, reason = "the gateway that is measured runs on this clock")]
pub(super) static LATER: LazyLock<String> = LazyLock::new(|| {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or_default();
    Timestamp::from_unix_micros(seconds * 1_000_000).plus(Duration::from_hours(240)).to_string()
});
pub(super) const CREATED_AT: &str = "2026-11-15T12:00:00Z";

/// Size of a message published over Nchan.
pub(crate) const PEER_BODY_BYTES: usize = 203;

/// The bytes that precede a stamp.
pub(crate) const MARK: &[u8] = b"\"nonce\":\"";
/// Size of a stamp: the send time in nanoseconds, a dash, and the number of the message.
pub(crate) const STAMP_BYTES: usize = 18 + 1 + 9;

pub(crate) fn stamp(sent: Duration, message: u64) -> String {
    format!("{:018}-{message:09}", sent.as_nanos())
}

/// Parses a stamp into send time and number; `None` if it is none.
pub(crate) fn read_stamp(bytes: &[u8]) -> Option<(u64, u64)> {
    let (sent, message) = std::str::from_utf8(bytes).ok()?.split_once('-')?;
    Some((sent.parse().ok()?, message.parse().ok()?))
}

/// The enforcer with channel number `channel`.
pub(crate) fn enforcer(channel: u64) -> String {
    format!("enforcer-{channel}")
}

pub(crate) fn approver(number: u64) -> String {
    format!("approver-{number}")
}

/// The end that a WebSocket is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Enforcer,
    Approver,
}

/// The handshake that opens the WebSocket of this enforcer or approver.
pub(crate) fn open_websocket(key: &str, role: Role, id: &str) -> String {
    let role = match role {
        Role::Enforcer => "enforcer",
        Role::Approver => "approver",
    };
    format!(
        "GET /v1/ws?role={role}&id={id} HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer {key}\r\n{UPGRADE}\r\n"
    )
}

/// The headers of a WebSocket's handshake.
pub(crate) const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                                  sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The id of exchange number `message`.
pub(crate) fn request_id(message: u64) -> String {
    format!("request-{message:09}")
}

/// An enforcer's submission of exchange number `message`.
pub(crate) fn submission(key: &str, message: u64, enforcer: &str) -> Vec<u8> {
    let body = json!({
        "msgType": "artifact.submit", "requestId": request_id(message), "createdAt": CREATED_AT,
        "sender": { "enforcerId": enforcer }, "recipient": { "approverId": APPROVER },
        "body": {
            "ciphertext": "sealed", "artifactType": "command.review", "artifactHash": HASH, "expiresAt": *LATER,
        },
    });
    post("/v1/artifacts", Some(key), &body.to_string())
}

/// A decision without envelope on exchange number `message`.
pub(crate) fn decision(key: &str, message: u64, sent: Duration) -> Vec<u8> {
    post("/v1/decision", Some(key), &decision_body(&request_id(message), &stamp(sent, message)))
}

/// A decision on the exchange with this id, without a stamp.
pub(crate) fn decision_of(key: &str, request: &str) -> Vec<u8> {
    post("/v1/decision", Some(key), &decision_body(request, "uncounted"))
}

/// An enforcer's acknowledgement of a pushed message about this exchange, as a WebSocket's message.
pub(crate) fn acknowledgement(request: &str, pushed: &[u8]) -> Result<String, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Pushed<'a> {
        msg_id: &'a str,
    }
    let Pushed { msg_id } = serde_json::from_slice(pushed)?;
    Ok(format!(
        r#"{{"msgType":"ack.submit","requestId":"{request}","createdAt":"{CREATED_AT}","sender":{{}},"recipient":{{}},"body":{{"msgId":"{msg_id}","status":"processed"}}}}"#
    ))
}

/// An enforcer's withdrawal of the exchange with this id.
pub(crate) fn withdrawal(key: &str, request: &str, enforcer: &str) -> Vec<u8> {
    let body = json!({
        "msgType": "exchange.withdrawn", "requestId": request, "createdAt": CREATED_AT,
        "sender": { "enforcerId": enforcer }, "recipient": {}, "body": {},
    });
    post(&format!("/v1/exchanges/{request}/withdraw"), Some(key), &body.to_string())
}

/// An enforcer's wait for the decision on the exchange with this id, for a second at most.
pub(crate) fn wait(key: &str, request: &str) -> Vec<u8> {
    get(key, &format!("/v1/exchanges/{request}/wait?timeout=1"))
}

pub(crate) fn status(key: &str, request: &str) -> Vec<u8> {
    get(key, &format!("/v1/exchanges/{request}"))
}

fn get(key: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer {key}\r\n\r\n").into_bytes()
}

/// A decision on exchange number `number` without a stamp, which [`super::arrivals`] does not count.
pub(crate) fn uncounted_decision(key: &str, number: u64) -> Vec<u8> {
    decision_of(key, &request_id(number))
}

/// The body of a decision, published over this channel without deciding.
pub(crate) fn published(channel: u64, message: u64, sent: Duration) -> Vec<u8> {
    let body = decision_body(&request_id(channel), &stamp(sent, message));
    post(&format!("/lab/publish/{channel}"), None, &body)
}

/// `nonce` is a stamp where [`super::arrivals`] counts it.
fn decision_body(request: &str, nonce: &str) -> String {
    let later = &*LATER;
    format!(
        r#"{{"requestId":"{request}","artifactHashAlg":"SHA-256","artifactHash":"{HASH}","repoRef":"r","decision":"approve","scope":"once","expiresAt":"{later}","nonce":"{nonce}","sigAlg":"Ed25519","signerKeyId":"k","signature":"unchecked"}}"#
    )
}

/// A request that publishes a message over Nchan.
pub(crate) fn peer_message(channel: u64, message: u64, sent: Duration) -> Vec<u8> {
    let mut body = format!(r#"{{"nonce":"{}","filling":""#, stamp(sent, message));
    body.extend(std::iter::repeat_n('x', PEER_BODY_BYTES - 2 - body.len()));
    body.push_str("\"}");
    post(&format!("/pub/{channel}"), None, &body)
}

/// A request that puts JSON there.
pub(crate) fn put(path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "PUT {path} HTTP/1.1\r\nhost: lab\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(super) fn post(path: &str, key: Option<&str>, body: &str) -> Vec<u8> {
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: lab\r\n{key}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let stamp = stamp(Duration::from_nanos(123_456_789), 42);
        assert_eq!(stamp.len(), STAMP_BYTES);
        assert_eq!(read_stamp(stamp.as_bytes()), Some((123_456_789, 42)));
    }

    #[test]
    fn a_message_of_the_peer_is_as_long_as_it_is_said_to_be() {
        let text = String::from_utf8(peer_message(7, 1, Duration::ZERO)).unwrap();
        assert_eq!(text.split_once("\r\n\r\n").unwrap().1.len(), PEER_BODY_BYTES);
    }
}
