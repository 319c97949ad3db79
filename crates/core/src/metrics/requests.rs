//! Whether people answer: requests that came, how each ended, how long that took, and those that wait now.

use std::{sync::Arc, time::Duration};

use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::{
    catalog::{Catalog, Computed},
    histogram::Histogram,
    labels::PerLabel,
    store_time::StoreTime,
};
use crate::labels;

labels! {
    /// How a request ended.
    pub enum RequestEnd("outcome") {
        Approved => "approved",
        Rejected => "rejected",
        /// Nobody answered in time.
        Expired => "expired",
        /// The enforcer took it back.
        Withdrawn => "withdrawn",
        /// An operator ended it.
        Cancelled => "cancelled",
    }
}

/// Each transition is counted by the node that committed it, and by no other.
#[derive(Debug, Clone)]
pub struct RequestMetrics {
    pub submitted: Counter,
    pub ended: PerLabel<RequestEnd, Counter>,
    /// From the submission to the decision, by the store's clock.
    pub decision_seconds: Histogram,
    pub pending: Arc<Mutex<Option<Pending>>>,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            submitted: Counter::default(),
            ended: PerLabel::default(),
            decision_seconds: Histogram::waits(),
            pending: Arc::default(),
        }
    }
}

/// The requests of the whole store that wait for an answer, as they were counted last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pending {
    pub requests: u64,
    /// When the oldest of them was sent to somebody.
    pub oldest: Option<Timestamp>,
}

impl RequestMetrics {
    pub(super) fn describe(&self, catalog: &mut Catalog, time: &StoreTime) {
        catalog.add(
            "requests_submitted",
            "Requests that were accepted; a repeated one is not counted again",
            &self.submitted,
        );
        catalog.add(
            "requests_ended",
            "Requests that ended, by outcome; `expired` means that nobody answered in time",
            &self.ended,
        );
        catalog.when_it_rises(
            "`expired`: look at `countersign_notifications_total` and `countersign_held_connections`: are people \
             notified, and is anybody connected? `withdrawn`: whatever asks gives up before people answer.",
        );
        catalog.add(
            "decision_seconds",
            "How long people take to answer: from a request's submission to its decision",
            &self.decision_seconds,
        );
        catalog.when_it_rises(
            "People take longer, or hear of requests later: look at `countersign_notifications_total`.",
        );
        let pending = Arc::clone(&self.pending);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        catalog.add(
            "requests_pending",
            "Requests of the whole store that wait for an answer, or NaN while they can't be counted; counted every \
             10 s, less often where that takes longer, and up to 100,000 deliveries. Each node shows the same: take the \
             largest, not the sum",
            &Computed(move || pending.lock().map_or(f64::NAN, |pending| pending.requests as f64)),
        );
        catalog.when_it_rises(
            "More is asked than people answer. Compare with `countersign_requests_ended_total`.",
        );
        let (pending, time) = (Arc::clone(&self.pending), time.clone());
        catalog.add(
            "oldest_request_seconds",
            "How long the oldest request has waited that is pending, zero if none is; as current as \
             `countersign_requests_pending`. Take the largest, not the sum",
            &Computed(move || {
                let Some(pending) = *pending.lock() else { return f64::NAN };
                let waited = pending.oldest.map(|oldest| time.since(oldest));
                waited.unwrap_or(Some(Duration::ZERO)).map_or(f64::NAN, |waited| waited.as_secs_f64())
            }),
        );
    }
}
