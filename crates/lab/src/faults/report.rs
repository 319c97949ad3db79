//! The result of a run, as JSON and for people.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

use super::{
    checker::{Violation, notified::Counted},
    history::Counts,
    recovery::Recovery,
};
use crate::{report, table::headed};

/// Violations that the table shows in full.
const MAX_SHOWN: usize = 20;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) arrangement: &'static str,
    /// Whether clients and nodes spoke TLS.
    pub(crate) tls: bool,
    pub(crate) faults: usize,
    pub(crate) failovers: usize,
    pub(crate) acknowledged: u64,
    pub(crate) counts: Counts,
    pub(crate) recovery: Vec<Recovery>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) notified: Counted,
    /// Process starts of all nodes.
    pub(crate) node_starts: u64,
    /// Tenants that were moved to the other of two shards.
    pub(crate) moves: u64,
    /// How former primaries came back.
    pub(crate) resyncs: BTreeMap<&'static str, u64>,
    pub(crate) rolling: Option<Rolling>,
    /// What could not be done here.
    pub(crate) left_out: Vec<&'static str>,
    /// Where history, timeline and logs are, if they are kept.
    pub(crate) folder: Option<PathBuf>,
}

/// The result of rolling restarts.
#[derive(Debug, Serialize)]
pub(crate) struct Rolling {
    pub(crate) rounds: u64,
    pub(crate) slowest_drain_ms: f64,
    /// Calls of the client library that succeeded.
    pub(crate) library_succeeded: u64,
    /// Exchanges of the client library that ended as they should.
    pub(crate) exchanges: Exchanges,
    /// Calls and exchanges of the client library that did not, each in words.
    pub(crate) library_failed: Vec<String>,
}

/// How exchanges of the client library ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Exchanges {
    /// Approved and executed once.
    pub(crate) executed: u64,
    /// Rejected and not executed.
    pub(crate) rejected: u64,
    /// Withdrawn and not executed.
    pub(crate) withdrawn: u64,
}

impl Report {
    /// Whether a promise was broken.
    pub(crate) fn is_bad(&self) -> bool {
        let failed = self.rolling.as_ref().is_some_and(|rolling| !rolling.library_failed.is_empty());
        failed || !self.violations.is_empty()
    }

    /// One line for each kind of fault. Times are to the first write that succeeds at the node, or at all nodes.
    fn recovery_lines(&self) -> Vec<String> {
        let head = [
            "ms to the first success",
            "faults",
            "alone",
            "p50",
            "worst",
            "worst after end",
            "worst with others",
        ];
        let rows = self.recovery.iter().map(|recovery| {
            let of_alone = |ms: f64| if recovery.alone > 0 { format!("{ms:.0}") } else { String::new() };
            let kind = match recovery.never {
                0 => recovery.kind.clone(),
                never => format!("{} ({never} without success)", recovery.kind),
            };
            [
                kind,
                recovery.faults.to_string(),
                recovery.alone.to_string(),
                of_alone(recovery.p50_ms),
                of_alone(recovery.worst_ms),
                of_alone(recovery.worst_after_end_ms),
                format!("{:.0}", recovery.worst_together_ms),
            ]
        });
        headed(head, rows, 1)
    }

    fn operation_lines(&self) -> Vec<String> {
        let rows = self.counts.operations.iter().map(|(kind, ends)| {
            [(*kind).to_owned(), ends.ok.to_string(), ends.fail.to_string(), ends.unknown.to_string()]
        });
        let mut lines = headed(["operations", "ok", "fail", "unknown"], rows, 1);
        let pushed: Vec<String> =
            self.counts.pushed.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        lines.push(format!("pushed: {}; acts: {}", pushed.join(", "), self.counts.acts));
        let Counted { requests, again } = self.notified;
        lines.push(format!("notified outside of the protocol: {requests} requests, {again} more than once"));
        lines
    }
}

impl report::Report for Report {
    fn table(&self) -> String {
        let mut lines = vec![format!(
            "seed {}, {} s of faults, database: {}, clients: {}; {} faults, {} failovers, {} node starts, {} moves; {} operations acknowledged",
            self.seed,
            self.seconds,
            self.arrangement,
            if self.tls { "TLS" } else { "plain HTTP" },
            self.faults,
            self.failovers,
            self.node_starts,
            self.moves,
            self.acknowledged
        )];
        lines.extend(self.left_out.iter().map(|left_out| format!("LEFT OUT: {left_out}")));
        if !self.recovery.is_empty() {
            lines.push(String::new());
            lines.extend(self.recovery_lines());
        }
        lines.push(String::new());
        lines.extend(self.operation_lines());
        if let Some(rolling) = &self.rolling {
            lines.push(String::new());
            lines.push(rolling.line());
            lines.extend(rolling.library_failed.iter().take(MAX_SHOWN).map(|text| format!("  {text}")));
        }
        lines.push(format!("\nviolations: {}", self.violations.len()));
        lines.extend(self.violations.iter().take(MAX_SHOWN).map(|violation| {
            let at = violation.at / 1_000;
            let request = violation.request.as_deref().unwrap_or_default();
            format!("  {at} ms {:?} {} {request}: {}", violation.invariant, violation.tenant, violation.text)
        }));
        if let Some(folder) = &self.folder {
            lines.push(format!("history, timeline and logs: {}", folder.display()));
        }
        lines.join("\n")
    }
}

impl Rolling {
    fn line(&self) -> String {
        let Self { rounds, slowest_drain_ms, library_succeeded, exchanges, library_failed } = self;
        let Exchanges { executed, rejected, withdrawn } = exchanges;
        format!(
            "{rounds} rolling restarts, slowest drain {slowest_drain_ms:.0} ms; exchanges of the client library: {executed} \
             executed, {rejected} rejected, {withdrawn} withdrawn; its calls: {library_succeeded} succeeded; failed: {}",
            library_failed.len()
        )
    }
}
