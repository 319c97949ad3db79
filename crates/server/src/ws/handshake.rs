//! The upgrade from HTTP.

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use countersign_wire::failure::Failure;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::{auth::offered_ticket, error::ApiError};

/// The `101` answer to an upgrade request; an error if it does not ask for a WebSocket of version 13.
pub(crate) fn upgrade_response(headers: &HeaderMap, by_ticket: bool) -> Result<Response<Bytes>, ApiError> {
    let accept = accept_key(headers)?;
    let mut upgrade = Response::new(Bytes::new());
    *upgrade.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    upgrade.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    upgrade.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    upgrade.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    let ticket = offered_ticket(headers).filter(|_| by_ticket);
    if let Some(ticket) = ticket.and_then(|ticket| HeaderValue::from_str(ticket).ok()) {
        // A browser requires one of the subprotocols that it offered.
        upgrade.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, ticket);
    }
    Ok(upgrade)
}

/// Proves that the upgrade was understood.
fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
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
        _ => Err(ApiError::breaks("Upgrade", "must ask for a WebSocket, version 13")),
    }
}
