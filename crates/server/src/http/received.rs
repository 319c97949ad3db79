//! A request's body: its declared size, its media type, its real size, its shape, in this order.

use std::time::Duration;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use bytes::{Bytes, BytesMut};
use countersign_core::model::idempotency::IdempotencyKey;
use countersign_wire::{
    FromJson, Verbatim, envelope::Envelope, failure::Failure, framed::Framed, id::TenantId, limits,
    msg_type::MsgType, parse,
};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use super::{PROTO_JSON, error_response::Refusal, shares::Share};
use crate::app::Shared;

/// How large the body of a request to this path may be.
fn most(path: &str) -> usize {
    match path {
        "/v1/artifacts" | "/v1/artifact" => limits::MAX_ARTIFACT_MESSAGE,
        "/v1/prompt" => limits::MAX_PROMPT_MESSAGE,
        "/v1/session/event" => limits::MAX_SESSION_MESSAGE,
        _ => limits::MAX_OTHER_BODY,
    }
}

/// A body must arrive within this, and none of its pieces may take longer than that.
const BODY_TIME: Duration = Duration::from_mins(1);
const PIECE_TIME: Duration = Duration::from_secs(15);

/// Refuses who declares too much before anything else is looked at.
pub(crate) async fn limit(request: Request, next: Next) -> Response {
    let most = most(request.uri().path());
    if declared_length(request.headers()).is_some_and(|length| length > most as u64) {
        return Refusal::from(Failure::TooLarge).into_response();
    }
    next.run(request).await
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A whole body in a media type that we read.
#[derive(Debug)]
pub(crate) struct Received {
    bytes: Bytes,
    headers: HeaderMap,
    path: String,
    /// Taken for as long as the body is needed.
    _room: Share,
}

impl FromRequest<Shared> for Received {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Refusal> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers, parts.uri.path()) {
            return Err(Failure::MediaType.into());
        }
        let most = most(parts.uri.path());
        // Who calls is known by now; else nothing is read.
        let tenant = parts.extensions.get::<TenantId>().ok_or(Failure::Unauthenticated)?;
        let mut room = app.bodies.share_of(tenant);
        let bytes = match timeout(BODY_TIME, collect(body, most, &mut room)).await {
            Ok(collected) => collected?,
            Err(_) => return Err(broken("did not arrive in time")),
        };
        Ok(Self { bytes, headers: parts.headers, path: parts.uri.path().to_owned(), _room: room })
    }
}

/// Room is taken for what has come, not for what is announced: who announces much and sends nothing has nothing.
async fn collect(mut body: axum::body::Body, most: usize, room: &mut Share) -> Result<Bytes, Refusal> {
    let mut collected = BytesMut::new();
    while let Some(frame) =
        timeout(PIECE_TIME, body.frame()).await.map_err(|_| broken("did not arrive in time"))?
    {
        let Ok(frame) = frame else { return Err(broken("broke off")) };
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > most {
            return Err(Failure::TooLarge.into());
        }
        if !room.grow(data.len()) {
            return Err(Failure::Unavailable.into());
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}

fn broken(how: &'static str) -> Refusal {
    Refusal::invalid(&countersign_wire::Error::breaks("body", how))
}

/// Nothing said is taken for the protocol's own type; parameters are ignored; nothing is ever decompressed.
fn is_json(headers: &HeaderMap, path: &str) -> bool {
    let encoded = headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| {
        !encoding.to_str().is_ok_and(|encoding| encoding.trim().eq_ignore_ascii_case("identity"))
    });
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return !encoded };
    let essence = content_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    // The platform is not part of the protocol, and must not use its media type.
    let is_protocols = essence.eq_ignore_ascii_case(PROTO_JSON) && !path.starts_with("/platform/");
    let known = is_protocols || essence.eq_ignore_ascii_case("application/json");
    known && !encoded
}

impl Received {
    /// The envelope of a row that takes one message type.
    pub(crate) fn envelope(&self, msg_type: &MsgType) -> Result<Framed<'_>, Refusal> {
        let envelope =
            parse::<Envelope<'_>>(&self.bytes).map_err(|fault| Refusal::invalid(&fault))?.into_view();
        if envelope.msg_type != *msg_type {
            return Err(Refusal::from(Failure::Unsupported).about(&envelope.request_id));
        }
        Ok(envelope.into())
    }

    /// The envelope of an acknowledgement, of messages or of a prompt.
    pub(crate) fn ack_envelope(&self) -> Result<Framed<'_>, Refusal> {
        match self.envelope(&MsgType::AckSubmit) {
            Err(refusal) if refusal.failure() == Failure::Unsupported => self.envelope(&MsgType::PromptAck),
            taken => taken,
        }
    }

    /// The object of a generic row: bare, or in either envelope.
    pub(crate) fn framed(&self) -> Result<Framed<'_>, Refusal> {
        Framed::parse(&self.bytes).map_err(|fault| Refusal::invalid(&fault))
    }

    /// An object that never has an envelope.
    pub(crate) fn bare<'a, T: FromJson<'a>>(&'a self) -> Result<Verbatim<'a, T>, Refusal> {
        parse(&self.bytes).map_err(|fault| Refusal::invalid(&fault))
    }

    /// The `Idempotency-Key`, which belongs to the caller and the path.
    pub(crate) fn idempotency_key(&self, principal: &str) -> Result<Option<IdempotencyKey>, Refusal> {
        let Some(key) = self.headers.get("idempotency-key") else { return Ok(None) };
        match key.to_str() {
            Ok(key) if (1..=256).contains(&key.len()) => {
                Ok(Some(IdempotencyKey::new(&format!("{principal} {}", self.path), key)))
            }
            _ => Err(Refusal::invalid(&countersign_wire::Error::breaks(
                "Idempotency-Key",
                "must be 1 to 256 printable ASCII characters",
            ))),
        }
    }
}
