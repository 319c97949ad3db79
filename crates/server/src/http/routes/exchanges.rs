//! `/v1/exchanges/{requestId}`.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderName, HeaderValue, Response as HttpResponse, StatusCode, header},
    response::Response,
};
use countersign_core::{
    delivery::message::{Message, Party},
    model::viewer::Viewer,
    use_cases::wait::WaitOutcome,
};
use countersign_wire::{
    RawObject,
    exchange::ExchangeStatus,
    failure::Failure,
    id::{RequestId, TenantId},
    msg_type::MsgType,
};
use tokio::time::Instant;

use crate::{
    app::{App, Shared},
    auth::{Approver, Caller, Enforcer, Standing},
    http::{
        PROTO_JSON, answer,
        error_response::{About as _, Refusal},
        held::{Hold, Socket},
        log, operations,
        params::{Asked, InPath},
        received::Received,
        request_id::HttpRequestId,
    },
};

const PROTO_EXCHANGE_STATE: HeaderName = HeaderName::from_static("proto-exchange-state");

pub(crate) async fn status(
    State(app): State<Shared>,
    caller: Caller,
    InPath(request_id): InPath<RequestId>,
) -> Result<Response, Refusal> {
    standing(&app, &caller.tenant, caller.viewer(), &request_id).await
}

/// The answer that says how an exchange stands.
pub(crate) async fn standing(
    app: &App,
    tenant: &TenantId,
    viewer: Viewer<'_>,
    request_id: &RequestId,
) -> Result<Response, Refusal> {
    let standing = app.gateway.status(tenant, viewer, request_id).await.about(request_id)?;
    let decision = standing.decision.as_deref().map(RawObject::reread).transpose();
    let body = ExchangeStatus {
        request_id: request_id.clone(),
        state: standing.state,
        created_at: standing.created_at,
        expires_at: standing.expires_at,
        artifact_hash: Some(standing.artifact_hash),
        decision: decision.map_err(|_| Failure::Internal)?,
    };
    Ok(answer::proto(StatusCode::OK, app.envelope(MsgType::ExchangeStatus, request_id, body)))
}

pub(crate) async fn withdraw(
    State(app): State<Shared>,
    caller: Enforcer,
    InPath(request_id): InPath<RequestId>,
    received: Received,
) -> Result<Response, Refusal> {
    let framed = received.envelope(&MsgType::ExchangeWithdrawn)?;
    let accepted = operations::withdraw(&app, &caller, &request_id, &framed).await?;
    Ok(answer::proto(StatusCode::OK, app.envelope(MsgType::ExchangeWithdrawn, &request_id, accepted)))
}

pub(crate) async fn refresh(
    State(app): State<Shared>,
    caller: Approver,
    InPath(request_id): InPath<RequestId>,
    received: Received,
) -> Result<Response, Refusal> {
    let framed = received.envelope(&MsgType::RefreshRequest)?;
    let body = operations::refresh(&app, &caller, &request_id, &framed).await?;
    Ok(answer::proto(StatusCode::ACCEPTED, app.envelope(MsgType::RefreshRequest, &request_id, body)))
}

pub(crate) async fn wait(
    State(app): State<Shared>,
    caller: Enforcer,
    InPath(request_id): InPath<RequestId>,
    asked: Asked,
    http_id: HttpRequestId,
    hold: Hold,
) -> Result<Response, Refusal> {
    let patience = asked.timeout()?;
    let waiting = Box::new(Waiting { app, caller, request_id, http_id, last: hold.last });
    // What can be answered or refused at once never leaves HTTP.
    if let decided @ WaitOutcome::Decided { .. } =
        waiting.wait(Duration::ZERO).await.about(&waiting.request_id)?
    {
        return Ok(waiting.answer(decided).map(axum::body::Body::from));
    }
    match hold.take(move |socket| waiting.hold(socket, patience)).await {}
}

/// A wait that goes on for a while.
struct Waiting {
    app: Shared,
    caller: Enforcer,
    request_id: RequestId,
    http_id: HttpRequestId,
    /// Whether the client wants nothing else over this connection.
    last: bool,
}

impl Waiting {
    async fn wait(&self, patience: Duration) -> Result<WaitOutcome, countersign_core::Error> {
        self.app.gateway.wait(&self.caller.tenant, self.caller.viewer(), &self.request_id, patience).await
    }

    /// Outside of HTTP: until the decision, the end of patience, the client's, or the gateway's.
    async fn hold(self: Box<Self>, mut socket: Socket, patience: Duration) -> Option<Socket> {
        let started = Instant::now();
        let standing = Standing::new(&self.app, &self.caller.tenant, &self.caller.principal);
        // It stood when the request came. Looked at beside the wait and never in its place: a wait that is not looked at
        // would keep the connection to the store that it was just given.
        let waited = tokio::select! {
            waited = self.wait(patience) => waited.map_err(Refusal::from),
            () = standing.voided() => Err(Failure::Unauthenticated.into()),
            () = self.app.drain.begun() => self.wait(Duration::ZERO).await.map_err(Refusal::from),
            () = socket.gone() => return None,
        };
        let response = waited.map_or_else(|refusal| self.refused(refusal), |waited| self.answer(waited));
        log::held(&self.http_id, "/v1/exchanges/{requestId}/wait", response.status().as_u16(), started);
        socket.answer(response).await.ok()?;
        Some(socket)
    }

    fn answer(&self, waited: WaitOutcome) -> HttpResponse<Bytes> {
        let mut response = HttpResponse::new(Bytes::new());
        match waited {
            WaitOutcome::Decided { msg_id, enforcer, approver, decision, at, expires_at } => {
                let message = Message {
                    msg_id,
                    msg_type: MsgType::DecisionDeliver,
                    request_id: self.request_id.clone(),
                    created_at: at,
                    expires_at: Some(expires_at),
                    from: Party::Approver(approver),
                    body: decision,
                    trace: None,
                };
                let Some(envelope) = self.app.message(&message, &Party::Enforcer(enforcer)) else {
                    return self.refused(Failure::Internal.into());
                };
                *response.body_mut() = envelope.into();
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROTO_JSON));
            }
            WaitOutcome::NotDecided { state } => {
                *response.status_mut() = StatusCode::NO_CONTENT;
                response.headers_mut().insert(PROTO_EXCHANGE_STATE, HeaderValue::from_static(state.as_str()));
            }
        }
        self.finish(response)
    }

    fn refused(&self, refusal: Refusal) -> HttpResponse<Bytes> {
        let refusal = refusal.about(&self.request_id);
        refusal.log(&self.http_id);
        let mut response = HttpResponse::new(refusal.envelope(&self.app, &self.http_id).into());
        *response.status_mut() =
            StatusCode::from_u16(refusal.failure().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROTO_JSON));
        if refusal.failure() == Failure::Unavailable {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        self.finish(response)
    }

    fn finish(&self, mut response: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
        self.http_id.put_on(&mut response);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.last || self.app.drain.has_begun() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
