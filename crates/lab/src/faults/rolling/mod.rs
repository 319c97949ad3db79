//! Restarts of one node after the other under load, as an upgrade does it.

mod ends;

use std::time::Duration;

use tokio::time::sleep;

use super::{
    report::{Exchanges, Rolling},
    rig::{NODES, Program, Rig},
};
pub(crate) use ends::count;

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
    let (exchanges, library_failed) = (Exchanges::default(), Vec::new());
    Ok(Rolling { rounds, slowest_drain_ms, library_succeeded: 0, exchanges, library_failed })
}
