//! What the checker needs of an answer or a message.

use countersign_wire::{envelope::Envelope, exchange::ExchangeStatus, inbox::InboxPage, parse};
use serde::Deserialize;

use super::super::history::{Answer, Call, ExchangeState, Hash, Message, tenants_in};

/// The answer to a call, from its status, its header `Proto-Exchange-State` and its body.
pub(super) fn read(call: &Call, status: u16, state: Option<&str>, body: &[u8]) -> Answer {
    let mut answer = Answer { status, tenants: tenants_in(body), ..Answer::default() };
    if !(200..300).contains(&status) {
        answer.code = code(body);
        return answer;
    }
    answer.state = state.and_then(ExchangeState::read);
    let Ok(envelope) = parse::<Envelope<'_>>(body) else { return answer };
    let text = Hash::of(envelope.body.as_str());
    match call {
        Call::Wait { .. } => answer.decision = Some(text.clone()),
        Call::Status { .. } | Call::FinalRead { .. } | Call::Probe { .. } => {
            if let Ok(read) = envelope.body.view::<ExchangeStatus<'_>>() {
                answer.state = ExchangeState::read(read.state.as_str());
                answer.decision = read.decision.map(|decision| Hash::of(decision.as_str()));
            }
        }
        _ => {}
    }
    answer.body = Some(text);
    answer
}

/// The code of an error, which is in an envelope or bare.
fn code(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Bare {
        code: String,
    }
    #[derive(Deserialize)]
    struct Wrapped {
        body: Bare,
    }
    let wrapped = serde_json::from_slice::<Wrapped>(body).map(|wrapped| wrapped.body);
    wrapped.or_else(|_| serde_json::from_slice(body)).map(|bare: Bare| bare.code).unwrap_or_default()
}

/// A pushed message; `None` if it is none of the protocol.
pub(super) fn message(text: &[u8]) -> Option<Message> {
    parse::<Envelope<'_>>(text).ok().map(|envelope| of_envelope(&envelope, text))
}

fn of_envelope(envelope: &Envelope<'_>, text: &[u8]) -> Message {
    Message {
        id: envelope.msg_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        kind: envelope.msg_type.as_str().to_owned(),
        request: envelope.request_id.as_str().to_owned(),
        body: Some(Hash::of(envelope.body.as_str())),
        tenants: tenants_in(text),
    }
}

/// The items of a page of an inbox, and the cursor of the next page; `None` if it is no page.
pub(super) fn page(text: &[u8]) -> Option<(Vec<Message>, Option<String>)> {
    let envelope = parse::<Envelope<'_>>(text).ok()?;
    let page = envelope.body.view::<InboxPage<Envelope<'_>>>().ok()?.into_view();
    let items = page
        .items
        .iter()
        .map(|item| Message { tenants: tenants_in(item.body.as_str().as_bytes()), ..of_envelope(item, b"") });
    Some((items.collect(), page.next_cursor))
}

/// What an approver needs of a request's body.
pub(super) fn artifact_hash(text: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        artifact_hash: String,
    }
    let envelope = parse::<Envelope<'_>>(text).ok()?;
    serde_json::from_str::<Body>(envelope.body.as_str()).ok().map(|body| body.artifact_hash)
}

/// The message that an `ack.accepted` is about.
pub(super) fn acknowledged(text: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        msg_id: String,
    }
    let envelope = parse::<Envelope<'_>>(text).ok()?;
    (envelope.msg_type.as_str() == "ack.accepted").then_some(())?;
    serde_json::from_str::<Body>(envelope.body.as_str()).ok().map(|body| body.msg_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = r#"{"msgId":"m","msgType":"exchange.status","requestId":"r","createdAt":"2026-11-15T12:00:00Z",
        "sender":{"gatewayId":"g"},"body":{"requestId":"r","state":"decided","createdAt":"2026-11-15T12:00:00Z",
        "expiresAt":"2026-11-15T12:00:00Z","decision":{"nonce": "mk:t1:n"}}}"#;

    #[test]
    fn a_status_says_state_and_decision_byte_by_byte() {
        let call = Call::Status { request: "r".into() };
        let answer = read(&call, 200, None, STATUS.as_bytes());
        assert_eq!(answer.state, Some(ExchangeState::Decided));
        assert_eq!(answer.decision, Some(Hash::of(r#"{"nonce": "mk:t1:n"}"#)));
        assert!(answer.tenants.contains("t1"));
    }

    #[test]
    fn the_code_of_an_error_is_read_in_both_forms() {
        let bare = r#"{"code":"PROTO_ERR_STATE","message":"x","retryable":false}"#;
        assert_eq!(code(bare.as_bytes()), "PROTO_ERR_STATE");
        assert_eq!(code(format!(r#"{{"msgType":"error","body":{bare}}}"#).as_bytes()), "PROTO_ERR_STATE");
        assert_eq!(code(b"<html>"), "");
    }

    #[test]
    fn a_wait_without_a_decision_says_the_state() {
        let call = Call::Wait { request: "r".into(), acknowledges: false };
        assert_eq!(read(&call, 204, Some("expired"), b"").state, Some(ExchangeState::Expired));
    }
}
