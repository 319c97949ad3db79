//! All routes on one page.

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, Uri, header},
    middleware::{from_fn, from_fn_with_state},
    routing::{delete, get, post},
};
use countersign_wire::failure::Failure;

use super::{
    error_response::{self, Refusal},
    leftover, log, received, request_id,
    routes::{
        acks, artifacts, decisions, exchanges, generic, inbox, meta, pairing, platform, presence, prompts,
        sessions, streams,
    },
};
use crate::app::Shared;

/// The whole service.
pub fn router(app: Shared) -> Router {
    Router::new()
        // Section 4.1.
        .route("/v1/artifacts", post(artifacts::submit))
        .route("/v1/decisions", post(decisions::submit))
        .route("/v1/approvers/{approverId}/inbox", get(inbox::active))
        .route("/v1/approvers/{approverId}/inbox/expired", get(inbox::expired))
        .route("/v1/approvers/{approverId}/inbox/{requestId}", delete(inbox::remove))
        .route("/v1/exchanges/{requestId}", get(exchanges::status))
        .route("/v1/exchanges/{requestId}/wait", get(exchanges::wait).head(not_for_head))
        .route("/v1/exchanges/{requestId}/withdraw", post(exchanges::withdraw))
        .route("/v1/exchanges/{requestId}/refresh", post(exchanges::refresh))
        .route("/v1/presence/enforcers", get(presence::list))
        .route("/v1/presence/enforcers/{enforcerDeviceId}", get(presence::one))
        .route("/v1/pairing/initiate", post(pairing::initiate))
        .route("/v1/pairing/resolve/{code}", get(pairing::resolve))
        .route("/v1/pairing/status/{nonce}", get(pairing::status))
        .route("/v1/pairing/complete", post(pairing::complete))
        .route("/v1/acks", post(acks::submit))
        // Sections 4.2 and 4.3.
        .route("/v1/sse/approvers/{approverId}", get(streams::approver).head(not_for_head))
        .route("/v1/sse/enforcers/{enforcerId}", get(streams::enforcer).head(not_for_head))
        .route("/v1/ws", get(streams::websocket).head(not_for_head))
        // Section 4.5.
        .route("/v1/artifact", post(generic::artifact))
        .route("/v1/decision", post(generic::decision))
        .route("/v1/prompt", post(prompts::submit))
        .route("/v1/session/event", post(sessions::report))
        .route("/v1/session/{sessionId}", get(sessions::one))
        .route("/v1/status", get(generic::status))
        // Outside of the protocol.
        .route("/platform/v1/keys", post(platform::create_key).get(platform::keys))
        .route("/platform/v1/keys/{keyId}", delete(platform::revoke_key))
        .route("/platform/v1/policy", get(platform::policy).put(platform::set_policy))
        .route("/platform/v1/exchanges/{requestId}/cancel", post(platform::cancel))
        .route("/platform/v1/tickets", post(platform::create_ticket))
        .route("/healthz", get(meta::alive))
        .route("/readyz", get(meta::ready))
        .route("/openapi.json", get(meta::openapi))
        .fallback(|| async { Refusal::from(Failure::NotFound) })
        .method_not_allowed_fallback(|| async { Refusal::from(Failure::MethodNotAllowed) })
        .layer(from_fn(received::limit))
        .layer(from_fn(leftover::read))
        .layer(from_fn_with_state(app.clone(), error_response::render))
        .layer(from_fn(log::log))
        .layer(from_fn(request_id::name))
        .with_state(app)
}

/// What is held has no head without a body.
async fn not_for_head() -> ([(HeaderName, &'static str); 1], Refusal) {
    ([(header::ALLOW, "GET")], Failure::MethodNotAllowed.into())
}

/// A path with a slash at its end is the path without.
pub(crate) fn without_trailing_slash<B>(request: &mut Request<B>) {
    let path = request.uri().path();
    let Some(shorter) = path.strip_suffix('/').filter(|shorter| !shorter.is_empty()) else { return };
    let target = match request.uri().query() {
        Some(query) => format!("{shorter}?{query}"),
        None => shorter.to_owned(),
    };
    if let Ok(uri) = target.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
}
