//! How long after a fault the first write succeeds.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::history::{Call, Fault, History, Operation};
use crate::figures::{milliseconds, percentile};

/// The faults of one kind. Times are from the begin of a fault to the first success after it, at the node or at all nodes that it
/// was done to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Recovery {
    pub(crate) kind: String,
    pub(crate) faults: usize,
    /// Faults during which, until the first success, no other one was active that slows the same nodes. Another one is active
    /// until a write that began after its end has succeeded there.
    pub(crate) alone: usize,
    /// Of those that were alone; 0 if there are none.
    pub(crate) p50_ms: f64,
    pub(crate) worst_ms: f64,
    /// The same from the end of the fault; 0 where a write succeeded before.
    pub(crate) worst_after_end_ms: f64,
    /// Of all faults of this kind.
    pub(crate) worst_together_ms: f64,
    /// Faults after which no write succeeded.
    pub(crate) never: usize,
}

/// A fault, and the first success after it.
struct Recovered<'a> {
    fault: &'a Fault,
    success: Option<u64>,
    is_alone: bool,
}

/// All kinds of faults in a history. `nodes` are the base URLs of the nodes, in order of their numbers.
pub(crate) fn of(history: &History, nodes: &[String]) -> Vec<Recovery> {
    let mut writes: Vec<Vec<&Operation>> = vec![Vec::new(); nodes.len()];
    for operation in
        history.operations.iter().filter(|operation| operation.is_ok() && is_write(&operation.call))
    {
        if let Some(node) = nodes.iter().position(|node| same_url(node, &operation.by.node)) {
            writes[node].push(operation);
        }
    }
    let over: Vec<(&Fault, Option<u64>)> =
        history.faults.iter().map(|fault| (fault, first_success(fault, fault.ends, &writes))).collect();
    let mut by_kind: BTreeMap<&str, Vec<Recovered<'_>>> = BTreeMap::new();
    for fault in &history.faults {
        let success = first_success(fault, fault.begins, &writes);
        let until = success.unwrap_or(u64::MAX);
        let is_alone = !over.iter().any(|(other, over)| {
            !std::ptr::eq(*other, fault) && disturbs(other, over.unwrap_or(u64::MAX), fault, until)
        });
        by_kind.entry(&fault.kind).or_default().push(Recovered { fault, success, is_alone });
    }
    by_kind.into_iter().map(|(kind, faults)| summary(kind, &faults)).collect()
}

fn same_url(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// What only succeeds once it is on the disks of two servers.
fn is_write(call: &Call) -> bool {
    matches!(call, Call::Submit { .. } | Call::Decide { .. } | Call::Withdraw { .. } | Call::Ack { .. })
}

/// When the first write that began after this time had succeeded; on every node if the fault was done to none of them alone.
fn first_success(fault: &Fault, from: u64, writes: &[Vec<&Operation>]) -> Option<u64> {
    let at_node = |node: usize| {
        let after = writes[node].iter().filter(|operation| operation.invoked >= from);
        after.map(|operation| operation.ended).min()
    };
    let only = fault.target.strip_prefix("node ").and_then(|number| number.parse().ok());
    match only.filter(|node| *node < writes.len()) {
        Some(node) => at_node(node),
        None => (0..writes.len()).map(at_node).try_fold(0, |latest, at| at.map(|at| latest.max(at))),
    }
}

/// Whether `other`, which is over at the time `over`, may be why nothing succeeds from the begin of `fault` until this time.
fn disturbs(other: &Fault, over: u64, fault: &Fault, until: u64) -> bool {
    let same_nodes = other.target == fault.target
        || !other.target.starts_with("node ")
        || !fault.target.starts_with("node ");
    same_nodes && other.begins < until && over > fault.begins
}

fn summary(kind: &str, faults: &[Recovered<'_>]) -> Recovery {
    let times = |alone: bool, from: fn(&Fault) -> u64| {
        let counted = faults.iter().filter(|it| it.is_alone || !alone);
        let mut times: Vec<Duration> = counted
            .filter_map(|it| Some(Duration::from_micros(it.success?.saturating_sub(from(it.fault)))))
            .collect();
        times.sort_unstable();
        [50, 100].map(|percent| milliseconds(percentile(&times, percent)))
    };
    let [p50_ms, worst_ms] = times(true, |fault| fault.begins);
    let [_, worst_after_end_ms] = times(true, |fault| fault.ends);
    let [_, worst_together_ms] = times(false, |fault| fault.begins);
    let alone = faults.iter().filter(|it| it.is_alone).count();
    let never = faults.iter().filter(|it| it.success.is_none()).count();
    let kind = kind.to_owned();
    Recovery {
        kind,
        faults: faults.len(),
        alone,
        p50_ms,
        worst_ms,
        worst_after_end_ms,
        worst_together_ms,
        never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::history::{Answer, Caller, Outcome};

    fn write(node: &str, invoked: u64, ended: u64, outcome: Outcome) -> Operation {
        let by = Caller { node: node.to_owned(), ..Caller::default() };
        let call = Call::Withdraw { request: "request-1".to_owned() };
        Operation { number: 1, by, call, invoked, ended, outcome, answer: Answer::default() }
    }

    fn fault(target: &str, begins: u64, ends: u64) -> Fault {
        Fault { kind: "kill".to_owned(), target: target.to_owned(), begins, ends }
    }

    fn recovery(fault: Fault) -> Recovery {
        recovery_among(vec![fault])
    }

    fn recovery_among(faults: Vec<Fault>) -> Recovery {
        let operations = vec![
            // It began before the faults, so it proves nothing.
            write("http://a", 500, 1_500, Outcome::Ok),
            write("http://a", 2_000, 3_000, Outcome::Unknown),
            write("http://a/", 4_000, 5_000, Outcome::Ok),
            write("http://b", 1_100, 2_000, Outcome::Ok),
        ];
        let history = History { operations, faults, ..History::default() };
        of(&history, &["http://a".to_owned(), "http://b".to_owned()]).remove(0)
    }

    #[test]
    fn a_node_has_recovered_with_its_first_success() {
        let first = recovery(fault("node 0", 1_000, 4_000));
        assert_eq!((first.p50_ms, first.worst_ms, first.worst_after_end_ms), (4.0, 4.0, 1.0));
        let second = recovery(fault("node 1", 1_000, 4_000));
        assert_eq!((second.worst_ms, second.worst_after_end_ms, second.never), (1.0, 0.0, 0));
    }

    #[test]
    fn a_cluster_has_recovered_with_its_last_node() {
        assert!((recovery(fault("database", 1_000, 2_000)).worst_ms - 4.0).abs() < f64::EPSILON);
        assert_eq!(recovery(fault("database", 1_200, 2_000)).never, 1);
    }

    #[test]
    fn a_fault_beside_another_one_at_the_same_node_is_not_alone() {
        let beside =
            |target| recovery_among(vec![fault("node 0", 1_000, 4_000), fault(target, 4_500, 6_000)]);
        let [same, other] = ["node 0", "node 1"].map(beside);
        // Neither is alone: the second one begins when the first has ended, and before a write has shown that it is over.
        assert_eq!((same.alone, same.worst_ms, same.worst_together_ms), (0, 0.0, 4.0));
        assert_eq!((other.alone, other.worst_ms), (2, 4.0));
    }

    #[test]
    fn what_an_earlier_fault_left_behind_is_not_the_next_ones() {
        // The node is back at 2,000 and answers first at 5,000.
        let operations =
            vec![write("http://a", 4_000, 5_000, Outcome::Ok), write("http://a", 6_000, 6_100, Outcome::Ok)];
        let alone = |begins| {
            let stopped = Fault { kind: "stop".to_owned(), ..fault("NATS", begins, begins + 100) };
            let faults = vec![fault("node 0", 1_000, 2_000), stopped];
            let history = History { operations: operations.clone(), faults, ..History::default() };
            let [_, stopped] = of(&history, &["http://a".to_owned()]).try_into().unwrap();
            (stopped.alone, stopped.worst_together_ms)
        };
        assert_eq!(alone(3_000), (0, 2.0));
        assert_eq!(alone(5_500), (1, 0.6));
    }
}
