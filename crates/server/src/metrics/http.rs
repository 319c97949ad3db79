//! Requests by route and status. The routes are those of the interface's own description, so that a path that a client
//! invents is no label.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::metrics::{Catalog, Histogram, Measured};
use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use crate::openapi::paths;

/// What a request is counted as that has no route.
const UNKNOWN: &str = "unknown";

/// Both SSE routes, when their stream ends.
const SSE: &str = "/v1/sse";

/// Every status that is sent; another one is counted as the last.
const STATUSES: [(u16, &str); 23] = [
    (101, "101"),
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (412, "412"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (503, "503"),
    (0, "other"),
];

/// Requests that were answered. Clones share the counts.
#[derive(Debug, Clone)]
pub(crate) struct HttpMetrics(Arc<Routes>);

#[derive(Debug)]
struct Routes {
    by_path: HashMap<String, usize>,
    /// The last is for requests without a route.
    routes: Vec<RouteCounts>,
}

#[derive(Debug)]
struct RouteCounts {
    path: String,
    statuses: [AtomicU64; STATUSES.len()],
    seconds: Histogram,
}

/// A request and how it was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered<'a> {
    /// The template of the path.
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    /// `None` for a connection that was held: how long says nothing of the gateway.
    pub(crate) after: Option<Duration>,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let mut routes: Vec<String> = paths();
        routes.extend([SSE.to_owned(), UNKNOWN.to_owned()]);
        let by_path = routes.iter().enumerate().map(|(index, path)| (path.clone(), index)).collect();
        let counts = |path| RouteCounts { path, statuses: Default::default(), seconds: Histogram::default() };
        Self(Arc::new(Routes { by_path, routes: routes.into_iter().map(counts).collect() }))
    }
}

impl HttpMetrics {
    pub(crate) fn count(&self, answered: Answered<'_>) {
        let Routes { by_path, routes } = &*self.0;
        let index = by_path.get(answered.route).copied().unwrap_or(routes.len() - 1);
        let status = STATUSES.iter().position(|(status, _)| *status == answered.status);
        let route = &routes[index];
        route.statuses[status.unwrap_or(STATUSES.len() - 1)].fetch_add(1, Ordering::Relaxed);
        if let Some(after) = answered.after {
            route.seconds.observe(after);
        }
    }

    pub(super) fn describe(&self, catalog: &mut Catalog) {
        catalog.add(
            "http_requests",
            "Requests that were answered, by route and status; held ones when they end",
            &RequestCounts(self.clone()),
        );
        catalog
            .when_it_rises("`500` is a fault of the gateway: the log has the cause under the request's id.");
        catalog.add(
            "http_request_seconds",
            "How long answers take, by route, from the head of the request to that of the answer",
            &RequestSeconds(self.clone()),
        );
    }
}

#[derive(Debug, Clone)]
struct RequestCounts(HttpMetrics);

impl EncodeMetric for RequestCounts {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for route in &self.0.0.routes {
            for (count, (_, status)) in route.statuses.iter().zip(STATUSES) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [("route", route.path.as_str()), ("status", status)];
                    encoder.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
                }
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

impl Measured for RequestCounts {
    fn labels(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("route", Vec::new()), ("status", Vec::new())]
    }
}

#[derive(Debug, Clone)]
struct RequestSeconds(HttpMetrics);

impl EncodeMetric for RequestSeconds {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for route in self.0.0.routes.iter().filter(|route| route.seconds.count() > 0) {
            route.seconds.encode(encoder.encode_family(&[("route", route.path.as_str())])?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl Measured for RequestSeconds {
    fn labels(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        vec![("route", Vec::new())]
    }
}
