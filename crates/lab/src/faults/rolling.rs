//! Restarts of one node after the other under load, as an upgrade does it.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    history::{Answer, Call, History, Outcome, Transport},
    report::Rolling,
    rig::{NODES, Program, Rig},
};
use crate::{Failure, figures::milliseconds, report_progress};

/// Between two restarts: clients that were sent away have settled elsewhere.
const PAUSE: Duration = Duration::from_secs(2);

/// How long the load runs before and after.
const LEAD: Duration = Duration::from_secs(3);

/// Restarts all nodes `rounds` times; from the first restart on they run `program`.
pub(crate) async fn restart(rig: &Rig, rounds: u64, program: &Program) -> Result<Rolling, Failure> {
    let mut slowest = Duration::ZERO;
    sleep(LEAD).await;
    for round in 1..=rounds {
        for node in 0..NODES {
            let drained = rig.node(node).restart(program.clone()).await?;
            rig.wait_until_node_is_ready(node).await?;
            report_progress(&format!(
                "round {round} of {rounds}: node {node} drained in {} ms and is ready again",
                drained.as_millis()
            ));
            slowest = slowest.max(drained);
            sleep(PAUSE).await;
        }
    }
    sleep(LEAD).await;
    let slowest_drain_ms = milliseconds(slowest);
    Ok(Rolling { rounds, slowest_drain_ms, library_succeeded: 0, library_failed: Vec::new() })
}

/// Counts what clients of the library saw.
pub(crate) fn count(rolling: &mut Rolling, history: &History) {
    for operation in history.operations.iter().filter(|operation| is_of_library(&operation.call)) {
        match operation.outcome {
            Outcome::Ok => rolling.library_succeeded += 1,
            Outcome::Fail | Outcome::Unknown if is_expected(&operation.answer) => {}
            Outcome::Fail | Outcome::Unknown => rolling.library_failed.push(format!(
                "{} ms {} {}: {} {} {}",
                operation.invoked / 1_000,
                operation.by.client,
                operation.call.kind(),
                operation.answer.status,
                operation.answer.code,
                operation.answer.reason
            )),
        }
    }
}

/// Whether only the client library makes such a call: it makes the texts itself.
fn is_of_library(call: &Call) -> bool {
    matches!(
        call,
        Call::Submit { body: None, .. }
            | Call::Decide { decision: None, .. }
            | Call::Wait { acknowledges: true, .. }
            | Call::Listen { transport: Transport::Sdk, .. }
    )
}

/// Whether it ended so without any fault of a node: the client was stopped, nobody decided in time, or somebody else did.
fn is_expected(answer: &Answer) -> bool {
    ["stopped", "in time", "expired"].iter().any(|words| answer.reason.contains(words))
        || answer.status == 409
}
