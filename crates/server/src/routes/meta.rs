//! Health checks and the interface description.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;

use crate::{error::ApiError, metrics::Rejection, openapi::OPENAPI, rest::response, state::SharedState};

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// The process runs; nothing else is checked.
pub(crate) async fn alive() -> Result<Response, ApiError> {
    response::json(StatusCode::OK, Health { status: "ok" })
}

/// Requests can be served: the store accepts writes, and the gateway is not about to stop. Where the store is spread over
/// several databases and some of them don't, it is `degraded`: other tenants are served, and all nodes are in the same
/// position. Anybody may ask, so it costs the store nothing: it is known from the renewals of the node's leases.
pub(crate) async fn ready(State(app): State<SharedState>) -> Result<Response, ApiError> {
    if app.drain.is_announced() || !app.leases.any_current() {
        return Err(ApiError::unavailable(Rejection::NotReady));
    }
    let status = if app.leases.all_current() { "ready" } else { "degraded" };
    response::json(StatusCode::OK, Health { status })
}

pub(crate) async fn openapi() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], OPENAPI).into_response()
}

#[cfg(test)]
mod tests {
    use countersign_core::store::Shard;

    use super::*;
    use crate::test_node::TestNode;

    #[tokio::test]
    async fn readiness_costs_the_store_nothing() {
        let node = TestNode::new();
        let (app, store) = (node.app.clone(), node.store.clone());
        assert!(ready(State(app.clone())).await.is_err(), "nothing is known of the store yet");
        app.gateway.renew_lease(app.gateway.node()).await.unwrap();
        app.leases.on(Shard(0)).unwrap().renewed();
        let before = store.calls();
        assert!(before > 0, "calls are counted");
        for _ in 0..1_000 {
            assert!(ready(State(app.clone())).await.is_ok());
        }
        assert_eq!(store.calls(), before);
        app.drain.begin();
        assert!(ready(State(app)).await.is_err());
    }
}
