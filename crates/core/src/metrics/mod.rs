//! What is counted, and where. Nothing here has a label that a client chooses, and none names a tenant.
//!
//! Counting is an atomic addition: no lock, no allocation, nothing that two requests wait for.

mod catalog;
mod histogram;
mod labels;
mod requests;
mod store;
mod store_time;

pub use catalog::{Build, Catalog, Computed, Entry, Measured};
pub use histogram::Histogram;
pub use labels::{LabelPair, LabelSet, PerLabel};
pub use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
pub use requests::{Pending, RequestEnd, RequestMetrics};
pub use store::{StoreFailure, StoreMetrics, StoreOperation, WriterMetrics};
pub use store_time::StoreTime;

use crate::labels;

/// The target of all spans. They have the lowest level, so that no log has them; only traces subscribe to it.
pub const SPANS: &str = "countersign_span";

labels! {
    /// The steps of an exchange.
    pub enum Step("step") {
        Submit => "submit",
        Push => "push",
        Decide => "decide",
        Deliver => "deliver",
        Acknowledge => "acknowledge",
    }
}

labels! {
    /// Why a delivery that was handed over was read from the store after all.
    pub enum HandOverDrop("reason") {
        /// The feed has not read what comes before it.
        Behind => "behind",
        /// It is older than a hand-over may be.
        Late => "late",
        /// The bytes of all hand-overs are at their limit.
        Memory => "memory",
        /// No feed on this node has the mailbox.
        Unknown => "unknown",
    }
}

labels! {
    /// Why a message between nodes was not sent, or not taken.
    pub enum AnnouncementDrop("reason") {
        /// Not sent: more waits than the queue takes.
        QueueFull => "queue_full",
        /// Not sent: a delivery over 16 KB, or a name over 2 KB. Whoever needs it reads it.
        TooLarge => "too_large",
        /// Not sent: NATS is away or does not take it.
        Away => "away",
        /// Not taken: longer than any message may be, shorter than its own lengths say, or not what the format allows.
        Malformed => "malformed",
        /// Not taken: another version of the format.
        OtherVersion => "other_version",
        /// Not taken: not sealed with the cluster's secret for this subject.
        Forged => "forged",
        /// Not taken: its sender has not proved yet that it runs now. An old message of a node that is gone ends here.
        Unverified => "unverified",
        /// Not taken: this process was too slow.
        Overrun => "overrun",
    }
}

// CONTRIBUTING: add a metric, step 1
/// What the gateway counts. Clones of its parts share their counts.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub store: StoreMetrics,
    pub writer: WriterMetrics,
    pub steps: PerLabel<Step, Histogram>,
    pub requests: RequestMetrics,
    pub known_records: KnownRecordMetrics,
    pub hand_overs: HandOverMetrics,
    pub rings: RingMetrics,
    pub sweeper: SweeperMetrics,
}

/// Records that a node keeps with their versions, so that it does not read them again.
#[derive(Debug, Clone, Default)]
pub struct KnownRecordMetrics {
    pub hits: Counter,
    pub misses: Counter,
    pub evicted: Counter,
    pub bytes: Gauge,
}

/// Deliveries that go from their commit to a feed without a read.
#[derive(Debug, Clone, Default)]
pub struct HandOverMetrics {
    pub taken: Counter,
    pub dropped: PerLabel<HandOverDrop, Counter>,
    /// Those that were sent to other nodes.
    pub sent: Counter,
}

/// Counts of messages between nodes.
#[derive(Debug, Clone, Default)]
pub struct RingMetrics {
    pub sent: Counter,
    pub received: Counter,
    /// Batches whose number was skipped.
    pub lost: Counter,
    /// Messages that came after a newer one of the same node: out of order, or sent again by somebody.
    pub out_of_order: Counter,
    /// Changes that the comparison of heads found and no ring had announced.
    pub late: Counter,
    pub dropped: PerLabel<AnnouncementDrop, Counter>,
    /// How often the connection was made again.
    pub reconnects: Counter,
    /// How often the change poller was asked for an early comparison.
    pub comparisons: Counter,
    /// Announcements that wait to be sent.
    pub queued: Gauge,
}

/// What has come due.
#[derive(Debug, Clone, Default)]
pub struct SweeperMetrics {
    /// Milliseconds between the oldest due time of the last sweep and that sweep; zero if nothing was due.
    pub lag_millis: Gauge,
    pub processed: Counter,
    pub failed: Counter,
    pub orphans: Counter,
    pub audit_rows: Counter,
}

impl Metrics {
    /// Adds all of it to the catalog.
    pub fn describe(&self, catalog: &mut Catalog) {
        catalog.add(
            "exchange_step_seconds",
            "How long each step of an exchange takes: from a complete message to its commit (submit, decide, \
             acknowledge), and from the commit until it is written to a channel that was open by then (push, deliver)",
            &self.steps,
        );
        catalog.when_it_rises(
            "`submit` and `decide`: look at `countersign_store_call_seconds` for `commit`. `push` and `deliver`: look \
             at `countersign_push_waiting`, and, if several nodes share a store, at `countersign_rings_late_total`.",
        );
        self.requests.describe(catalog, &self.store.time);
        self.store.describe(catalog);
        self.writer.describe(catalog);
        self.known_records.describe(catalog);
        self.hand_overs.describe(catalog);
        self.rings.describe(catalog);
        self.sweeper.describe(catalog);
    }
}

impl KnownRecordMetrics {
    fn describe(&self, catalog: &mut Catalog) {
        catalog.add("known_record_hits", "Records that were known and not read", &self.hits);
        catalog.add("known_record_misses", "Records that were not known and were read", &self.misses);
        catalog.add("known_records_evicted", "Known records that made room for others", &self.evicted);
        catalog.when_it_rises(
            "More tenants are active than fit; each eviction costs a read later, and nothing else.",
        );
        catalog.add("known_record_bytes", "Memory of known records", &self.bytes);
    }
}

impl HandOverMetrics {
    fn describe(&self, catalog: &mut Catalog) {
        catalog.add("hand_overs_taken", "Deliveries that were pushed without being read", &self.taken);
        catalog.add(
            "hand_overs_dropped",
            "Deliveries that were handed over and are read all the same, by reason",
            &self.dropped,
        );
        catalog.when_it_rises(
            "Each costs a read. `memory`: clients read slowly. `late`: the node is overloaded.",
        );
        catalog.add("hand_overs_sent", "Deliveries that were handed over to other nodes", &self.sent);
    }
}

impl RingMetrics {
    fn describe(&self, catalog: &mut Catalog) {
        catalog.add("rings_sent", "Messages to other nodes that say what was committed", &self.sent);
        catalog.add("rings_received", "Messages of other nodes that say what was committed", &self.received);
        catalog.add("rings_lost", "Messages of other nodes that never arrived, by their numbers", &self.lost);
        catalog.when_it_rises(
            "Look at NATS and the network to it. What was announced is found by comparing, up to 5 s late.",
        );
        catalog.add(
            "rings_late",
            "Changes of other processes that were found by comparing and that no message had announced",
            &self.late,
        );
        catalog.add(
            "rings_out_of_order",
            "Messages of other nodes that came after a newer one of the same node, and were not taken",
            &self.out_of_order,
        );
        catalog.add(
            "announcements_dropped",
            "Messages between nodes that were not sent or not taken, by reason",
            &self.dropped,
        );
        catalog.when_it_rises(
            "`forged`: somebody else writes to NATS, or a node has another secret. `unverified`: messages of a node that \
             is gone, or of one that starts. `other_version`: nodes of two versions. `queue_full`, `overrun`: this node is \
             overloaded. `away`: look at NATS.",
        );
        catalog.add(
            "announcements_queued",
            "Announcements that wait to be sent to other nodes",
            &self.queued,
        );
        catalog.add("doorbell_reconnects", "Connections to NATS that were made again", &self.reconnects);
        catalog.add(
            "doorbell_comparisons",
            "Early comparisons with the store that a lost message or a new connection asked for",
            &self.comparisons,
        );
    }
}

impl SweeperMetrics {
    fn describe(&self, catalog: &mut Catalog) {
        let lag = self.lag_millis.clone();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a lag are far below 2^53")]
        catalog.add(
            "sweeper_lag_seconds",
            "How long the oldest record that the last sweep met had been due; zero if nothing was",
            &Computed(move || lag.get() as f64 / 1_000.0),
        );
        catalog.when_it_rises(
            "Expiries are written late and old data stays. Sweeps run every 5 s; a lag that keeps rising means that \
             more comes due than all nodes process. Look at `countersign_sweeper_failed_total` and the log.",
        );
        catalog.add("sweeper_processed", "Due records that were processed", &self.processed);
        catalog.add(
            "sweeper_failed",
            "Due records that could not be processed; they are retried",
            &self.failed,
        );
        catalog.when_it_rises("The log names the kinds of records and the error.");
        catalog.add(
            "sweeper_orphans",
            "Payloads that were deleted because their commit never came",
            &self.orphans,
        );
        catalog.add(
            "sweeper_audit_rows",
            "Rows of the audit log that were deleted after their time",
            &self.audit_rows,
        );
    }
}
