//! `/v1/sse` and `/v1/ws`: everything that can be refused is refused here; then the connection leaves HTTP.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, Response as HttpResponse, StatusCode, header},
    response::Response,
};
use countersign_core::delivery::message::Party;
use countersign_wire::{
    Error,
    failure::Failure,
    id::{ApproverId, EnforcerId},
    presence::Transport,
};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::{
    app::Shared,
    auth::{Approver, Caller, Enforcer, Participant, Standing},
    http::{
        error_response::Refusal,
        held::Hold,
        log,
        params::{Asked, InPath},
        request_id::HttpRequestId,
    },
    push::{
        sse::{EventId, Stream},
        tellings::{Listening, Tellings},
        ws::Channel,
    },
};

pub(crate) async fn approver(
    State(app): State<Shared>,
    caller: Approver,
    InPath(approver): InPath<ApproverId>,
    http_id: HttpRequestId,
    hold: Hold,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let who = Party::Approver(caller.acting_as(&approver)?);
    let listening = Listening { tenant: caller.tenant, who, transport: Transport::Sse };
    stream(app, listening, caller.principal, http_id, hold, &headers).await
}

pub(crate) async fn enforcer(
    State(app): State<Shared>,
    caller: Enforcer,
    InPath(enforcer): InPath<EnforcerId>,
    http_id: HttpRequestId,
    hold: Hold,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let enforcer = caller.acting_as(&app, &enforcer)?;
    app.presence.heard(&caller.tenant, &enforcer, Transport::Sse);
    let who = Party::Enforcer(enforcer);
    let listening = Listening { tenant: caller.tenant, who, transport: Transport::Sse };
    stream(app, listening, caller.principal, http_id, hold, &headers).await
}

async fn stream(
    app: Shared,
    listening: Listening,
    principal: Arc<str>,
    http_id: HttpRequestId,
    hold: Hold,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let standing = Standing::new(&app, &listening.tenant, &principal);
    if !standing.holds().await {
        return Err(Failure::Unauthenticated.into());
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // An id that is not ours means that the client knows nothing: it is told everything.
    let places = last.and_then(|id| EventId { listening: &listening }.read(&app.secret, id));
    let tellings = Tellings::open(&app, listening.clone(), &places.unwrap_or_default()).await?;
    let places = tellings.places();
    let stream = Box::new(Stream { app, standing, listening, tellings, http_id, places });
    match hold
        .take(|socket| async move {
            let (started, http_id) = (Instant::now(), stream.http_id.clone());
            stream.run(socket).await;
            log::held(&http_id, "/v1/sse", 200, started);
            None
        })
        .await {}
}

pub(crate) async fn websocket(
    State(app): State<Shared>,
    Participant(caller): Participant,
    asked: Asked,
    http_id: HttpRequestId,
    hold: Hold,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let caller = Caller { transport: Transport::Websocket, ..caller };
    let id = asked.get("id")?.ok_or_else(|| Refusal::invalid(&Error::missing("id")))?;
    let bad_id = |rule: countersign_wire::Rule| Refusal::invalid(&rule.into());
    let who = match asked.get("role")? {
        Some("enforcer") => {
            Party::Enforcer(caller.enforcer()?.acting_as(&app, &id.parse().map_err(bad_id)?)?)
        }
        Some("approver") => Party::Approver(caller.approver()?.acting_as(&id.parse().map_err(bad_id)?)?),
        _ => return Err(Refusal::invalid(&Error::breaks("role", "must be enforcer or approver"))),
    };
    let accept = accepted_key(&headers)?;
    if let Party::Enforcer(enforcer) = &who {
        app.presence.heard(&caller.tenant, enforcer, Transport::Websocket);
    }
    let standing = Standing::new(&app, &caller.tenant, &caller.principal);
    if !standing.holds().await {
        return Err(Failure::Unauthenticated.into());
    }
    let listening = Listening { tenant: caller.tenant.clone(), who, transport: Transport::Websocket };
    let tellings = Tellings::open(&app, listening.clone(), &[]).await?;
    let mut upgrade = HttpResponse::new(Bytes::new());
    *upgrade.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    upgrade.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    upgrade.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    upgrade.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(ticket) = headers.get(header::SEC_WEBSOCKET_PROTOCOL).filter(|_| caller.by_ticket) {
        // A browser wants to see the protocol that it offered.
        upgrade.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, ticket.clone());
    }
    http_id.put_on(&mut upgrade);
    let channel = Box::new(Channel { app, caller, standing, listening, tellings, http_id });
    match hold
        .take(|mut socket| async move {
            socket.upgrade(&upgrade).await.ok()?;
            let (started, http_id) = (Instant::now(), channel.http_id.clone());
            channel.run(socket).await;
            log::held(&http_id, "/v1/ws", 101, started);
            None
        })
        .await {}
}

/// What proves that we understood the upgrade.
fn accepted_key(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let has = |name, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    match key {
        Some(key)
            if has(header::CONNECTION, "upgrade")
                && has(header::UPGRADE, "websocket")
                && has(header::SEC_WEBSOCKET_VERSION, "13") =>
        {
            HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| Failure::Internal.into())
        }
        _ => Err(Refusal::invalid(&Error::breaks("Upgrade", "must ask for a WebSocket, version 13"))),
    }
}
