//! Health checks on a listener of their own, without TLS: probes know the node's address, and no name that a certificate
//! could be for.

use std::sync::Arc;

use countersign_core::metrics::Gauge;

use crate::{
    metrics::Rejection, net::listener::Service, rest::response::busy_answer, router::health_router,
    state::SharedState,
};

/// Probes that may be connected at the same time.
const MAX_CONNECTIONS: usize = 64;

/// `/healthz` and `/readyz`, and nothing else.
pub(crate) fn service(app: SharedState) -> Service {
    let rejected = app.metrics.rejected.at(Rejection::Probes).clone();
    Service {
        router: health_router(app),
        front: Arc::default(),
        max_connections: MAX_CONNECTIONS,
        busy_answer: busy_answer(),
        at_limit: "too many probes are connected to the listener for health checks",
        rejected,
        open: Gauge::default(),
    }
}
