//! What is counted of the store: by the decorator around any store, and by the queues and writers of each.

use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use super::{catalog::Catalog, histogram::Histogram, labels::PerLabel, store_time::StoreTime};
use crate::labels;

labels! {
    /// The methods of the port.
    pub enum StoreOperation("operation") {
        Load => "load",
        Commit => "commit",
        Payloads => "payloads",
        Deliveries => "deliveries",
        DeliveriesBySubject => "deliveries_by_subject",
        Heads => "heads",
        Noted => "noted",
        ForgetNoted => "forget_noted",
        InInboxes => "in_inboxes",
        Tenants => "tenants",
        StoredBytes => "stored_bytes",
        Erase => "erase",
        Scan => "scan",
        ClaimDue => "claim_due",
        SweepOrphans => "sweep_orphans",
        SweepAudit => "sweep_audit",
        Now => "now",
    }
}

labels! {
    /// Why a store could not answer.
    pub enum StoreFailure("error") {
        Overloaded => "overloaded",
        OutcomeUnknown => "outcome_unknown",
        Unavailable => "unavailable",
        Corrupt => "corrupt",
    }
}

/// Calls of the port. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct StoreMetrics {
    /// Counted when a call begins, so that a call that never ends is counted too.
    pub calls: PerLabel<StoreOperation, Counter>,
    pub errors: PerLabel<(StoreOperation, StoreFailure), Counter>,
    pub seconds: PerLabel<StoreOperation, Histogram>,
    pub conflicts: Counter,
    /// Not shown: with it others measure how old a commit is.
    pub time: StoreTime,
}

impl StoreMetrics {
    pub(super) fn describe(&self, catalog: &mut Catalog) {
        catalog.add("store_calls", "Calls of the store that began, by operation", &self.calls);
        catalog.add("store_errors", "Calls of the store that failed, by operation and error", &self.errors);
        catalog.when_it_rises(
            "`unavailable`: look at the database and the network to it. `overloaded`: more is written than the store \
             takes, see `countersign_store_queue_changes`. `outcome_unknown`: a standby does not confirm. `corrupt`: \
             stop, and restore from a backup.",
        );
        catalog.add("store_call_seconds", "How long calls of the store take, by operation", &self.seconds);
        catalog.when_it_rises(
            "For `commit`, compare with `countersign_store_write_seconds`: if only `commit` rises, changes wait in the \
             queue; if both do, the disk or the standby is slow.",
        );
        catalog.add(
            "store_conflicts",
            "Commits that met a change of somebody else and wrote nothing; they are evaluated again",
            &self.conflicts,
        );
    }
}

/// The queues and writers of a store. A store gets them in its options; clones share the counts.
#[derive(Debug, Clone)]
pub struct WriterMetrics {
    /// Changes that wait for a writer, of all queues together.
    pub queued: Gauge,
    /// Changes that are committed together.
    pub batch_changes: Histogram,
    /// One attempt at a transaction, from the taken batch to the answer of the engine.
    pub write_seconds: Histogram,
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            queued: Gauge::default(),
            batch_changes: Histogram::sizes(),
            write_seconds: Histogram::default(),
        }
    }
}

impl WriterMetrics {
    pub(super) fn describe(&self, catalog: &mut Catalog) {
        catalog.add("store_queue_changes", "Changes that wait for a writer of the store", &self.queued);
        catalog.when_it_rises(
            "Writers fall behind. With 4,096 for each writer, further changes are answered with 503. Look at \
             `countersign_store_write_seconds` for the reason, and spread the load over more databases if it is load.",
        );
        catalog.add(
            "store_batch_changes",
            "Changes in a transaction; larger when more arrives than one transaction at a time could commit",
            &self.batch_changes,
        );
        catalog.add(
            "store_write_seconds",
            "How long a transaction takes, from its first statement to the answer to its commit",
            &self.write_seconds,
        );
        catalog.when_it_rises(
            "The disk of the database or its standby is slow, or the database has too little memory.",
        );
    }
}
