//! A request's body: its media type, its size, its shape, in this order.

use std::{ops::RangeInclusive, time::Duration};

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use countersign_core::model::idempotency::IdempotencyKey;
use countersign_wire::{
    FromJson, Members, Verbatim, envelope::Envelope, failure::Failure, framed::Framed, msg_type::MsgType,
    parse,
};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::{
    auth::{Caller, Newcomer},
    error::ApiError,
    limits::{FairPermit, LARGE_BODY, QuotaPermit},
    metrics::Rejection,
    protocol::PROTO_JSON,
    state::SharedState,
};

/// What a group of routes accepts as a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyRules {
    pub(crate) max_body_bytes: usize,
    /// Whether the protocol's media type is accepted beside plain JSON.
    pub(crate) accepts_proto: bool,
}

impl BodyRules {
    /// Rejects a request whose declared size is too large.
    pub(crate) fn check_declared_size(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match declared_size(headers) {
            Some(length) if length > self.max_body_bytes as u64 => {
                Err(ApiError::too_large("body", self.max_body_bytes))
            }
            _ => Ok(()),
        }
    }

    /// Whether the body can be so large that it must not be parsed where connections are served.
    pub(crate) fn may_be_large(&self, headers: &HeaderMap) -> bool {
        let may_be_large = match declared_size(headers) {
            Some(length) => length > LARGE_BODY as u64,
            None => headers.contains_key(header::TRANSFER_ENCODING),
        };
        may_be_large && self.max_body_bytes > LARGE_BODY
    }

    /// Without a `Content-Type` it is the protocol's own; parameters are ignored; nothing is ever decompressed.
    fn accept_media_type(&self, headers: &HeaderMap) -> bool {
        let encoded = headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| {
            !encoding.to_str().is_ok_and(|encoding| encoding.trim().eq_ignore_ascii_case("identity"))
        });
        let Some(content_type) = headers.get(header::CONTENT_TYPE) else { return !encoded };
        let essence = content_type.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is_proto = essence.eq_ignore_ascii_case(PROTO_JSON) && self.accepts_proto;
        (is_proto || essence.eq_ignore_ascii_case("application/json")) && !encoded
    }
}

fn declared_size(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The whole body must arrive within the first, and each of its chunks within the second.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
const CHUNK_TIMEOUT: Duration = Duration::from_secs(15);

/// A whole body in an accepted media type.
#[derive(Debug)]
pub(crate) struct RequestBody {
    bytes: Bytes,
    headers: HeaderMap,
    path: String,
    /// Memory that is reserved for as long as the body lives.
    _memory: QuotaPermit,
    /// The tenant's turn, until what it sent is committed.
    _turn: FairPermit,
}

impl FromRequest<SharedState> for RequestBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &SharedState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        // Rules and caller are left here by the route's group. Without them the route is in none.
        let rules = parts.extensions.get::<BodyRules>().ok_or(Failure::Internal)?;
        let (caller, newcomer) = (parts.extensions.get::<Caller>(), parts.extensions.get::<Newcomer>());
        let tenant = match (caller, newcomer) {
            (Some(caller), _) => &caller.tenant,
            (None, Some(_)) => &app.newcomers,
            (None, None) => return Err(Failure::Internal.into()),
        };
        if !rules.accept_media_type(&parts.headers) {
            let failure = if rules.accepts_proto { Failure::MediaType } else { Failure::PlatformMediaType };
            return Err(failure.into());
        }
        let mut memory = app.request_memory.permit(tenant);
        let declared = declared_size(&parts.headers);
        let collected = collect(body, declared, rules.max_body_bytes, &mut memory);
        let bytes = match timeout(BODY_TIMEOUT, collected).await {
            Ok(collected) => collected?,
            Err(_) => return Err(broken("did not arrive in time")),
        };
        // Nothing that a newcomer sends is kept, and none must use up what the others may send.
        if caller.is_some() {
            app.live.current().rates.admit_bytes(tenant, bytes.len())?;
        }
        // Nobody waits behind all that another tenant has sent, and nobody has a turn before all of it has arrived.
        let turn = match bytes.len() > LARGE_BODY {
            true => app.cpu_pool.turn(tenant).await,
            false => app.small_bodies.acquire(tenant).await,
        };
        let path = parts.uri.path().to_owned();
        Ok(Self { bytes, headers: parts.headers, path, _memory: memory, _turn: turn })
    }
}

/// When more has arrived, memory for all that is declared is allocated at once: growing by doubling would take twice as
/// much as the body in the end, and leave holes of its size in the heap.
const ALLOCATE_DECLARED_ABOVE: usize = 256 << 10;

/// Reserves memory for what has arrived, not for what is declared: a client that declares much and sends nothing costs
/// nothing.
async fn collect(
    mut body: axum::body::Body,
    declared: Option<u64>,
    max_body_bytes: usize,
    memory: &mut QuotaPermit,
) -> Result<Bytes, ApiError> {
    let mut collected = BytesMut::new();
    while let Some(frame) =
        timeout(CHUNK_TIMEOUT, body.frame()).await.map_err(|_| broken("did not arrive in time"))?
    {
        let Ok(frame) = frame else { return Err(broken("broke off")) };
        let Ok(data) = frame.into_data() else { continue };
        if collected.len() + data.len() > max_body_bytes {
            return Err(ApiError::too_large("body", max_body_bytes));
        }
        if !memory.try_reserve(data.len()) {
            return Err(ApiError::unavailable(Rejection::RequestMemory));
        }
        let arrived = collected.len() + data.len();
        if arrived > ALLOCATE_DECLARED_ABOVE && arrived > collected.capacity() {
            let declared = declared.map_or(0, |declared| declared.try_into().unwrap_or(max_body_bytes));
            collected.reserve(declared.min(max_body_bytes).saturating_sub(collected.len()));
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}

/// A whole number of seconds in this range, if the member is there.
pub(crate) fn seconds(
    members: &mut Members<'_>,
    name: &'static str,
    range: RangeInclusive<u32>,
    rule: &'static str,
) -> Result<Option<Duration>, countersign_wire::Error> {
    let Some(seconds) = members.optional::<f64>(name)? else { return Ok(None) };
    let fits = (f64::from(*range.start())..=f64::from(*range.end())).contains(&seconds);
    if fits && seconds.fract() == 0.0 {
        Ok(Some(Duration::from_secs_f64(seconds)))
    } else {
        Err(countersign_wire::Error::breaks(name, rule))
    }
}

fn broken(how: &'static str) -> ApiError {
    ApiError::breaks("body", how)
}

impl RequestBody {
    /// The envelope, for an endpoint that accepts one message type.
    pub(crate) fn envelope(&self, msg_type: &MsgType) -> Result<Framed<'_>, ApiError> {
        let envelope =
            parse::<Envelope<'_>>(&self.bytes).map_err(|fault| ApiError::invalid(&fault))?.into_view();
        if envelope.msg_type != *msg_type {
            return Err(ApiError::from(Failure::Unsupported).for_request(&envelope.request_id));
        }
        Ok(envelope.into())
    }

    /// The envelope, for the acknowledgement of messages or of a prompt.
    pub(crate) fn ack_envelope(&self) -> Result<Framed<'_>, ApiError> {
        match self.envelope(&MsgType::AckSubmit) {
            Err(error) if error.failure() == Failure::Unsupported => self.envelope(&MsgType::PromptAck),
            other => other,
        }
    }

    /// The object, for a generic endpoint: bare, or in either envelope.
    pub(crate) fn framed(&self) -> Result<Framed<'_>, ApiError> {
        Framed::parse(&self.bytes).map_err(|fault| ApiError::invalid(&fault))
    }

    /// An object without an envelope.
    pub(crate) fn bare<'a, T: FromJson<'a>>(&'a self) -> Result<Verbatim<'a, T>, ApiError> {
        parse(&self.bytes).map_err(|fault| ApiError::invalid(&fault))
    }

    /// The `Idempotency-Key`, which belongs to the caller and the path.
    pub(crate) fn idempotency_key(&self, principal: &str) -> Result<Option<IdempotencyKey>, ApiError> {
        let Some(key) = self.headers.get("idempotency-key") else { return Ok(None) };
        match key.to_str() {
            Ok(key) if (1..=256).contains(&key.len()) => {
                Ok(Some(IdempotencyKey::new(&format!("{principal} {}", self.path), key)))
            }
            _ => Err(ApiError::breaks("Idempotency-Key", "must be 1 to 256 printable ASCII characters")),
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_wire::id::TenantId;
    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;
    use crate::{limits::FairPermit, test_node::TestNode};

    fn request() -> Request {
        let rules = BodyRules { max_body_bytes: 100, accepts_proto: true };
        let mut request = Request::new(axum::body::Body::from("{}"));
        request.extensions_mut().insert(rules);
        request.extensions_mut().insert(Newcomer { address: None });
        request
    }

    #[tokio::test]
    async fn a_large_body_takes_no_more_memory_than_it_has_bytes() {
        const BYTES: usize = (2 << 20) + 1_000;
        let chunk = Bytes::from(vec![b' '; 10_000]);
        let chunks = (0..BYTES).step_by(chunk.len()).map(|at| chunk.slice(..chunk.len().min(BYTES - at)));
        let stream = futures_util::stream::iter(chunks.map(Ok::<_, std::io::Error>).collect::<Vec<_>>());
        let node = TestNode::new();
        let mut memory = node.app.request_memory.permit(&"acme".parse().unwrap());
        let body = axum::body::Body::from_stream(stream);
        let collected = collect(body, Some(BYTES as u64), 4 << 20, &mut memory).await.unwrap();
        assert_eq!(collected.len(), BYTES);
        let capacity = collected.try_into_mut().unwrap().capacity();
        // Growing by doubling would end at 2,560,000.
        assert_eq!(capacity, BYTES);
    }

    #[tokio::test]
    async fn a_small_body_takes_its_tenants_turn_and_waits_behind_one_of_another() {
        let node = TestNode::new();
        let loud: TenantId = "loud".parse().unwrap();
        let mut in_work: Vec<FairPermit> = Vec::new();
        while let Ok(permit) = timeout(Duration::from_millis(50), node.app.small_bodies.acquire(&loud)).await
        {
            in_work.push(permit);
        }
        let app = node.app.clone();
        let queued =
            tokio::spawn(
                async move { join_all((0..100).map(|_| app.small_bodies.acquire(&loud))).await.len() },
            );
        sleep(Duration::from_millis(50)).await;
        let app = node.app.clone();
        let body = tokio::spawn(async move { RequestBody::from_request(request(), &app).await });
        sleep(Duration::from_millis(100)).await;
        assert!(!body.is_finished(), "all turns are taken");
        // One of the loud tenant is before it, and no more.
        in_work.truncate(in_work.len() - 2);
        timeout(Duration::from_secs(5), body).await.unwrap().unwrap().unwrap();
        queued.abort();
    }
}
