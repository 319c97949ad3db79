//! The counts themselves, by subject.

use std::sync::LazyLock;

use countersign_core::{
    labels,
    metrics::{Catalog, Counter, Gauge, Histogram, PerLabel},
};

use super::http::HttpMetrics;

/// Log lines that were dropped. Of the process, as the log is.
pub(crate) static DROPPED_LOG_LINES: LazyLock<Counter> = LazyLock::new(Counter::default);

labels! {
    /// What holds a connection open.
    pub(crate) enum HeldTransport("transport") {
        Websocket => "websocket",
        Sse => "sse",
        Wait => "wait",
    }
}

labels! {
    /// Why something is answered with 429 or 503.
    pub(crate) enum Rejection("reason") {
        CredentialRate => "credential_rate",
        TenantRate => "tenant_rate",
        TenantBytes => "tenant_bytes",
        AddressRate => "address_rate",
        FailedAuthentication => "failed_authentication",
        HeldConnections => "held_connections",
        Connections => "connections",
        Scrapers => "scrapers",
        Probes => "probes",
        Redirected => "redirected",
        RequestMemory => "request_memory",
        ResponseMemory => "response_memory",
        StoreOverloaded => "store_overloaded",
        StoreUnavailable => "store_unavailable",
        NotReady => "not_ready",
        Deadline => "deadline",
        Other => "other",
    }
}

labels! {
    /// What became of an attempt to notify somebody.
    pub(crate) enum NotificationOutcome("outcome") {
        Accepted => "accepted",
        Refused => "refused",
        Gone => "gone",
        Unreachable => "unreachable",
        TimedOut => "timed_out",
        Busy => "busy",
        NotAllowed => "not_allowed",
        Unreadable => "unreadable",
    }
}

// CONTRIBUTING: add a metric, step 1
/// What the server counts. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerMetrics {
    pub(crate) http: HttpMetrics,
    pub(crate) rejected: PerLabel<Rejection, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) held: PerLabel<HeldTransport, Gauge>,
    pub(crate) push_seconds: PerLabel<HeldTransport, Histogram>,
    pub(crate) redeliveries: Counter,
    pub(crate) notifications: PerLabel<NotificationOutcome, Counter>,
}

impl ServerMetrics {
    /// Adds all of it to the catalog.
    pub(crate) fn describe(&self, catalog: &mut Catalog) {
        self.http.describe(catalog);
        catalog.add("rejected", "Requests that were answered with 429 or 503, by reason", &self.rejected);
        catalog.when_it_rises(
            "The reason names the limit. `store_overloaded` and `store_unavailable`: look at the store. \
             `request_memory`, `response_memory`, `connections` and `held_connections`: this node has too many clients \
             for its size, or some are slow; add a node. The rates: a client or tenant calls more often than it may.",
        );
        catalog.add("held_connections", "Connections that are held open now, by transport", &self.held);
        catalog.add(
            "push_seconds",
            "How long it takes to fetch, render and write one message to a held connection, by transport",
            &self.push_seconds,
        );
        catalog.when_it_rises(
            "Look at `countersign_push_waiting` (too many pushes at once) and at `countersign_store_call_seconds`; if \
             neither has risen, clients read slowly.",
        );
        catalog.add(
            "websocket_redeliveries",
            "Messages that were sent again on a WebSocket because no acknowledgement came",
            &self.redeliveries,
        );
        catalog.when_it_rises("Clients are slow, or do not acknowledge.");
        catalog.add(
            "notifications",
            "Attempts to notify somebody outside of the protocol, by what became of them",
            &self.notifications,
        );
        catalog.when_it_rises(
            "`unreachable`, `timed_out` and `busy`: a push service is away, or this machine can't reach it; they are \
             retried. `refused`: a service refuses this gateway; set `notifications.contact`. `not_allowed`: somebody has \
             named an address in a network of your own. `unreadable`: the gateway's secret was lost; devices register \
             again when they are opened.",
        );
        catalog.add(
            "log_lines_dropped",
            "Log lines that were dropped because nobody read them",
            &*DROPPED_LOG_LINES,
        );
        catalog.when_it_rises("Whatever reads stderr is slower than the gateway writes, or is gone.");
    }
}
