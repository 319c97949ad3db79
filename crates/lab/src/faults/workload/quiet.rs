//! The quiet phase: everything is acknowledged, then every exchange is read on every node.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};

use super::{
    super::history::{Call, ExchangeState, Outcome, Transport},
    listener::Listener,
    rest::{Rest, Sent},
    sdk,
    world::World,
};
use crate::{Failure, clients::messages::Role};

/// How long decisions have to reach their enforcers after the last fault.
const DRAIN_TIME: Duration = Duration::from_mins(1);

/// How long each read is tried.
const READ_TIME: Duration = Duration::from_mins(1);

const READERS: usize = 16;

/// Lets enforcers of the client library take what is there for them.
pub(super) async fn finish_library(world: &Arc<World>, enforcers: Vec<sdk::Enforcer>) {
    let mut tasks = JoinSet::new();
    let mut rng = world.rng("finish");
    for enforcer in enforcers {
        tasks.spawn(enforcer.finish(world.node(&mut rng)));
    }
    // Who can't do it now leaves it to whoever drains; the checker reads what happened.
    let _ended = tokio::time::timeout(Duration::from_secs(15), tasks.join_all()).await;
}

/// Acknowledges everything that is pushed to anybody until no decision waits.
pub(super) async fn drain(world: &Arc<World>) {
    let mut drains = JoinSet::new();
    for (tenant, id, role) in world.readers() {
        let keys = world.tenant(tenant);
        let key = if role == Role::Enforcer { &keys.enforcer_key } else { &keys.approver_key };
        let rest = Rest::new(world, tenant, &format!("{id} drain"), key);
        drains.spawn(Listener::new(rest, &id, role, Transport::Websocket).drain());
    }
    let deadline = Instant::now() + DRAIN_TIME;
    let mut waiting = world.requests();
    while !waiting.is_empty() && Instant::now() < deadline {
        waiting = undelivered(world, waiting).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Those of the exchanges whose decision is not acknowledged yet, or that could not be read.
async fn undelivered(world: &Arc<World>, requests: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let read = for_each(world, requests, async |world, (tenant, request)| {
        let mut rest = operator(&world, tenant, "status");
        let sent = Sent::get(format!("/v1/exchanges/{request}"));
        let reply = rest.call(Call::Status { request: request.clone() }, &sent).await;
        let is_over = match reply.outcome {
            Outcome::Ok => reply.answer.state != Some(ExchangeState::Decided),
            Outcome::Fail => reply.answer.status == 404,
            Outcome::Unknown => false,
        };
        (!is_over).then_some((tenant, request))
    });
    read.await.into_iter().flatten().collect()
}

/// Reads every exchange on every node.
pub(super) async fn read_everything(world: &Arc<World>) -> Result<(), Failure> {
    let nodes = &world.setup.nodes;
    let reads: Vec<(usize, String, String)> = world
        .requests()
        .into_iter()
        .flat_map(|(tenant, request)| nodes.iter().map(move |node| (tenant, request.clone(), node.clone())))
        .collect();
    let failed = for_each(world, reads, async |world, (tenant, request, node)| {
        let rest = operator(&world, tenant, "reader");
        let sent = Sent::get(format!("/v1/exchanges/{request}"));
        let deadline = Instant::now() + READ_TIME;
        loop {
            let call = Call::FinalRead { request: request.clone() };
            let reply = rest.call_on(node.clone(), call, &sent).await;
            if reply.outcome == Outcome::Ok || reply.answer.status == 404 {
                return None;
            }
            if Instant::now() > deadline {
                return Some(format!("{request} can't be read on {node}: {:?}", reply.answer));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    match failed.await.into_iter().flatten().next() {
        Some(failed) => Err(failed.into()),
        None => Ok(()),
    }
}

fn operator(world: &Arc<World>, tenant: usize, purpose: &str) -> Rest {
    let keys = world.tenant(tenant);
    Rest::new(world, tenant, &format!("{} {purpose}", keys.tenant), &keys.operator_key)
}

/// Does something with each item, some at a time.
async fn for_each<I, T, F>(world: &Arc<World>, items: Vec<I>, work: F) -> Vec<T>
where
    I: Send + 'static,
    T: Send + 'static,
    F: AsyncFn(Arc<World>, I) -> T,
{
    use futures_util::{StreamExt as _, stream};
    stream::iter(items).map(|item| work(Arc::clone(world), item)).buffer_unordered(READERS).collect().await
}
