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
    use_cases::wait::WaitOutcome,
};
use countersign_wire::{failure::Failure, id::RequestId, msg_type::MsgType};
use tokio::time::Instant;

use crate::{
    auth::{Approver, Caller, Enforcer, RevocationWatch},
    error::{ApiError, ForRequest as _},
    ids::HttpRequestId,
    metrics::{HeldTransport, PushMeter},
    net::{socket::Socket, takeover::ConnectionTakeover},
    protocol::{PROTO_JSON, operations, status::exchange_status},
    rest::{
        access_log::Held,
        body::RequestBody,
        params::{PathId, QueryParams},
        response::{self, ErrorForm},
    },
    state::SharedState,
};

const PROTO_EXCHANGE_STATE: HeaderName = HeaderName::from_static("proto-exchange-state");

pub(crate) async fn status(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(request_id): PathId<RequestId>,
) -> Result<Response, ApiError> {
    let envelope = exchange_status(&app, &caller.tenant, caller.viewer(), &request_id).await?;
    Ok(response::proto(StatusCode::OK, envelope))
}

pub(crate) async fn withdraw(
    State(app): State<SharedState>,
    caller: Enforcer,
    PathId(request_id): PathId<RequestId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let framed = body.envelope(&MsgType::ExchangeWithdrawn)?;
    let accepted = operations::withdraw(&app, &caller, &request_id, &framed).await?;
    Ok(response::proto(StatusCode::OK, app.envelope(MsgType::ExchangeWithdrawn, &request_id, accepted)?))
}

pub(crate) async fn refresh(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(request_id): PathId<RequestId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let framed = body.envelope(&MsgType::RefreshRequest)?;
    let body = operations::refresh(&app, &caller, &request_id, &framed).await?;
    Ok(response::proto(StatusCode::ACCEPTED, app.envelope(MsgType::RefreshRequest, &request_id, body)?))
}

pub(crate) async fn wait(
    State(app): State<SharedState>,
    caller: Enforcer,
    PathId(request_id): PathId<RequestId>,
    query: QueryParams,
    http_id: HttpRequestId,
    takeover: ConnectionTakeover,
) -> Result<Response, ApiError> {
    let timeout = query.timeout()?;
    let close_after = takeover.is_last_request;
    let wait = Box::new(HeldWait { app, caller, request_id, http_id, close_after });
    // What can be answered or rejected at once never leaves HTTP.
    let outcome = wait.outcome(Duration::ZERO).await.for_request(&wait.request_id)?;
    if let decided @ WaitOutcome::Decided { .. } = outcome {
        return Ok(wait.answer(decided).map(axum::body::Body::from));
    }
    let Enforcer { tenant, principal, .. } = &wait.caller;
    let revocation = RevocationWatch::begin(&wait.app, tenant, principal).await;
    let revocation = revocation.for_request(&wait.request_id)?;
    match takeover
        .take(move |mut socket| async move {
            wait.hold(&mut socket, &revocation, timeout).await.then_some(socket)
        })
        .await {}
}

/// A wait whose connection was taken out of HTTP.
struct HeldWait {
    app: SharedState,
    caller: Enforcer,
    request_id: RequestId,
    http_id: HttpRequestId,
    /// Whether the connection is closed after the answer.
    close_after: bool,
}

impl HeldWait {
    async fn outcome(&self, timeout: Duration) -> Result<WaitOutcome, countersign_core::Error> {
        self.app.gateway.wait(&self.caller.tenant, self.caller.viewer(), &self.request_id, timeout).await
    }

    /// Until the decision, the timeout, the client's disconnect or the gateway's shutdown. Returns whether more requests
    /// may come.
    async fn hold(&self, socket: &mut Socket, revocation: &RevocationWatch, timeout: Duration) -> bool {
        let held = Held::begin(&self.app, &self.http_id, "/v1/exchanges/{requestId}/wait");
        let core = self.app.gateway.metrics();
        let meter = PushMeter::open(&self.app.metrics, core, HeldTransport::Wait);
        // Watch the credential beside the wait and never in its place: a wait that is not polled would keep the
        // connection to the store that it was just given.
        let mut memory = self.app.request_memory.permit(&self.caller.tenant);
        let outcome = tokio::select! {
            outcome = self.outcome(timeout) => outcome.map_err(ApiError::from),
            () = revocation.revoked() => Err(Failure::Unauthenticated.into()),
            () = self.app.drain.begun() => self.outcome(Duration::ZERO).await.map_err(ApiError::from),
            () = socket.disconnected(&mut memory) => return false,
        };
        let started = Instant::now();
        let decided = match &outcome {
            Ok(WaitOutcome::Decided { at, .. }) => Some(*at),
            _ => None,
        };
        let response = outcome.map_or_else(|error| self.error(error), |outcome| self.answer(outcome));
        let status = response.status().as_u16();
        held.end(status);
        if socket.answer(response).await.is_err() {
            return false;
        }
        if decided.is_some() {
            meter.sent(core, &MsgType::DecisionDeliver, decided, started);
        }
        true
    }

    fn answer(&self, outcome: WaitOutcome) -> HttpResponse<Bytes> {
        let mut response = HttpResponse::new(Bytes::new());
        match outcome {
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
                match self.app.message(&message, &Party::Enforcer(enforcer)) {
                    Ok(envelope) => *response.body_mut() = envelope.into(),
                    Err(error) => return self.error(error),
                }
                response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROTO_JSON));
            }
            WaitOutcome::NotDecided { state } => {
                *response.status_mut() = StatusCode::NO_CONTENT;
                response.headers_mut().insert(PROTO_EXCHANGE_STATE, HeaderValue::from_static(state.as_str()));
            }
        }
        self.finish(response)
    }

    fn error(&self, error: ApiError) -> HttpResponse<Bytes> {
        let error = error.for_request(&self.request_id);
        self.finish(response::render_error(&self.app, &self.http_id, ErrorForm::Envelope, &error))
    }

    fn finish(&self, mut response: HttpResponse<Bytes>) -> HttpResponse<Bytes> {
        response::add_common_headers(&mut response, &self.http_id);
        if self.close_after || self.app.drain.has_begun() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
