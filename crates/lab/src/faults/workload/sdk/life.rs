//! The lives of a client: it is stopped at any moment and started again, or works until the end.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::super::{
    super::history::{Answer, Call, Caller},
    world::World,
};
use crate::Failure;

/// One call of the client library, which retries on its own, is given up after this time.
const CALL_TIME: Duration = Duration::from_secs(8);

/// The same where no call is given up: the library ends all of them before.
const STEADY_CALL_TIME: Duration = Duration::from_mins(15);

pub(super) fn call_time(world: &World) -> Duration {
    if world.setup.is_steady { STEADY_CALL_TIME } else { CALL_TIME }
}

/// Somebody who can be stopped at any moment and started again.
pub(in super::super) trait Life: Clone + Send + Sync + 'static {
    /// Works on one node until the world is stopped.
    fn live(self, node: String, number: u64) -> impl Future<Output = Result<(), Failure>> + Send;

    /// A name for choices.
    fn name(&self) -> &str;
}

/// Starts somebody again and again: each life ends after some seconds, wherever it is.
pub(in super::super) async fn revive(world: Arc<World>, somebody: impl Life) {
    if world.setup.is_steady {
        return work_on(&world, &somebody).await;
    }
    let mut rng = world.rng(&format!("lives of {}", somebody.name()));
    for number in 0.. {
        if world.is_stopped() {
            return;
        }
        let mut life = JoinSet::new();
        life.spawn(somebody.clone().live(world.node(&mut rng), number));
        let length = rng.millis(1_500, 7_000);
        tokio::select! {
            _ = life.join_next() => {
                world.stopped_within(Duration::from_millis(300)).await;
            }
            stopped = world.stopped_within(length) => {
                // Dropping the set stops it at once; when the world stops it may end what it does.
                if stopped {
                    let _ended = tokio::time::timeout(CALL_TIME, life.join_next()).await;
                }
            }
        }
    }
}

/// Lets somebody work until the world is stopped. Whatever ends the work before is recorded, and somebody starts again.
async fn work_on(world: &World, somebody: &impl Life) {
    let mut rng = world.rng(&format!("lives of {}", somebody.name()));
    let first = rng.next() % 2;
    for number in first.. {
        let node = world.node(&mut rng);
        let by = Caller { client: somebody.name().to_owned(), node: node.clone(), ..Caller::default() };
        let open = world.recorder.invoke(&by, Call::Work);
        let mut life = JoinSet::new();
        life.spawn(somebody.clone().live(node, number));
        match life.join_next().await {
            Some(Ok(Ok(()))) if world.is_stopped() => open.ok(Answer::default()),
            Some(Ok(Ok(()))) => open.unknown(Answer::none("it ended by itself")),
            Some(Ok(Err(error))) => open.unknown(Answer::none(error.to_string())),
            Some(Err(error)) => open.unknown(Answer::none(error.to_string())),
            None => drop(open),
        }
        if world.stopped_within(Duration::from_millis(300)).await {
            return;
        }
    }
}
