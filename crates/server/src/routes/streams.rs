//! `/v1/sse` and `/v1/ws`: everything that can be rejected is rejected here; then the connection leaves HTTP.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use countersign_core::delivery::{message::Party, ws_channel::WsChannel};
use countersign_wire::{
    id::{ApproverId, EnforcerId},
    presence::Transport,
};

use crate::{
    auth::{Approver, Caller, Enforcer, Participant, RevocationWatch},
    delivery::{Subscriber, subscribe},
    error::ApiError,
    ids::HttpRequestId,
    metrics::{HeldTransport, PushMeter},
    net::{socket::response_head, takeover::ConnectionTakeover},
    rest::{
        access_log::Held,
        params::{PathId, QueryParams},
    },
    sse::{EventId, SseStream},
    state::SharedState,
    ws::{connection::WsConnection, handshake::upgrade_response, output::WsClient},
};

pub(crate) async fn approver(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    http_id: HttpRequestId,
    takeover: ConnectionTakeover,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let party = Party::Approver(caller.acting_as(&approver)?);
    let subscriber = Subscriber { tenant: caller.tenant, party, transport: Transport::Sse };
    stream(app, subscriber, caller.principal, http_id, takeover, &headers).await
}

pub(crate) async fn enforcer(
    State(app): State<SharedState>,
    caller: Enforcer,
    PathId(enforcer): PathId<EnforcerId>,
    http_id: HttpRequestId,
    takeover: ConnectionTakeover,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let enforcer = caller.acting_as(&app, &enforcer)?;
    app.presence.seen(&caller.tenant, &enforcer, Transport::Sse);
    let party = Party::Enforcer(enforcer);
    let subscriber = Subscriber { tenant: caller.tenant, party, transport: Transport::Sse };
    stream(app, subscriber, caller.principal, http_id, takeover, &headers).await
}

async fn stream(
    app: SharedState,
    subscriber: Subscriber,
    principal: Arc<str>,
    http_id: HttpRequestId,
    takeover: ConnectionTakeover,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let revocation = RevocationWatch::begin(&app, &subscriber.tenant, &principal).await?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // An id that is not ours means that the client knows nothing: it gets everything.
    let positions = last.and_then(|id| {
        EventId { subscriber: &subscriber, timeline: app.gateway.timeline() }.read(&app.secret, id)
    });
    let meter = PushMeter::open(&app.metrics, app.gateway.metrics(), HeldTransport::Sse);
    let subscription = subscribe(&app, subscriber.clone(), &positions.unwrap_or_default()).await?;
    let positions = subscription.positions();
    let origin = app.live.current().allowed_origins.of(headers);
    let stream = SseStream { app, revocation, subscriber, subscription, http_id, origin, meter, positions };
    let mut stream = Box::new(stream);
    match takeover
        .take(move |mut socket| async move {
            let held = Held::begin(&stream.app, &stream.http_id, "/v1/sse");
            stream.run(&mut socket).await;
            held.end(200);
            None
        })
        .await {}
}

pub(crate) async fn websocket(
    State(app): State<SharedState>,
    Participant(caller): Participant,
    query: QueryParams,
    http_id: HttpRequestId,
    takeover: ConnectionTakeover,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let caller = Caller { transport: Transport::Websocket, ..caller };
    let party = party(&app, &caller, &query)?;
    let mut upgrade = upgrade_response(&headers, caller.by_ticket)?;
    http_id.put_on(&mut upgrade);
    let upgrade = response_head(&upgrade);
    if let Party::Enforcer(enforcer) = &party {
        app.presence.seen(&caller.tenant, enforcer, Transport::Websocket);
    }
    let subscriber = Subscriber { tenant: caller.tenant.clone(), party, transport: Transport::Websocket };
    let revocation = RevocationWatch::begin(&app, &subscriber.tenant, &caller.principal).await?;
    let meter = PushMeter::open(&app.metrics, app.gateway.metrics(), HeldTransport::Websocket);
    let subscription = subscribe(&app, subscriber.clone(), &[]).await?;
    let channel = WsChannel::new(subscription, app.websocket_idle);
    let client = WsClient { app, caller, subscriber, http_id, meter };
    let mut connection = Box::new(WsConnection { client, revocation, channel, upgrade, endings: None });
    match takeover
        .take(move |socket| async move {
            // Boxed: nothing of it stays.
            let mut stream = Box::pin(connection.upgrade(socket)).await.ok()?;
            let held = Held::begin(&connection.client.app, &connection.client.http_id, "/v1/ws");
            connection.run(&mut stream).await;
            held.end(101);
            None
        })
        .await {}
}

/// The party that `role` and `id` name, which must be the credential's.
fn party(app: &SharedState, caller: &Caller, query: &QueryParams) -> Result<Party, ApiError> {
    let id = query.get("id")?.ok_or_else(|| ApiError::invalid(&countersign_wire::Error::missing("id")))?;
    let bad_id = |rule: countersign_wire::Rule| ApiError::invalid(&rule.into());
    match query.get("role")? {
        Some("enforcer") => {
            Ok(Party::Enforcer(caller.enforcer()?.acting_as(app, &id.parse().map_err(bad_id)?)?))
        }
        Some("approver") => Ok(Party::Approver(caller.approver()?.acting_as(&id.parse().map_err(bad_id)?)?)),
        _ => Err(ApiError::breaks("role", "must be enforcer or approver")),
    }
}
