//! The clients: enforcers and approvers of several tenants, half of them through the client library.
//!
//! | to find | look in |
//! |---|---|
//! | who takes part | `setup.rs` |
//! | what all clients share, and their choices | `world.rs` |
//! | bare calls, and what the checker needs of the answers | `rest.rs`, `answers.rs`, `texts.rs` |
//! | bare channels | `listener.rs` |
//! | bare enforcers and approvers | `enforcer.rs`, `approver.rs` |
//! | keys that are revoked | `credentials.rs` |
//! | people who are notified by webhooks | `notified.rs`, `expected.rs` |
//! | clients of the library, which are stopped anywhere or never | `sdk/` |
//! | the end | `quiet.rs` |

mod answers;
mod approver;
mod credentials;
mod enforcer;
mod expected;
mod listener;
mod notified;
mod quiet;
mod rest;
mod sdk;
mod setup;
mod texts;
mod world;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use countersign_client::profile::Party;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::history::{Recorder, Transport};
use crate::{Failure, clients::messages::Role};
use listener::Listener;
use rest::Rest;
pub(crate) use setup::{Setup, TenantKeys};
use world::World;

/// How long clients have to end what they do.
const STOP_TIME: Duration = Duration::from_secs(20);

/// The same where clients of the library end everything that they have begun.
const STEADY_STOP_TIME: Duration = Duration::from_mins(2);

/// Enforcers that ask people who are notified outside of the protocol.
const ASKERS: usize = 4;

pub(crate) struct Workload {
    world: Arc<World>,
    is_ready: watch::Receiver<bool>,
    clients: JoinHandle<Result<Clients, Failure>>,
}

/// Everybody, once they have joined.
struct Clients {
    tasks: JoinSet<()>,
    library: Vec<sdk::Enforcer>,
    /// Deletes the profiles when it is dropped.
    people: sdk::People,
    /// Bare clients so far.
    bare: usize,
}

impl Workload {
    /// Starts all clients; they join, pair and begin on their own. Needs a runtime.
    pub(crate) fn start(setup: Setup, recorder: Recorder) -> Self {
        let world = World::new(setup, recorder);
        let (ready, is_ready) = watch::channel(false);
        let of_clients = Arc::clone(&world);
        let clients = tokio::spawn(async move {
            let mut clients = Clients::new()?;
            clients.start(&of_clients).await?;
            ready.send_replace(true);
            Ok(clients)
        });
        Self { world, is_ready, clients }
    }

    /// Waits until every client has joined and paired. Begin faults after that.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        match self.is_ready.wait_for(|ready| *ready).await {
            Ok(_) => Ok(()),
            Err(_) => Err("a client could not join or pair; settling says why".into()),
        }
    }

    /// The quiet phase: nobody begins anything, everybody acknowledges what comes, then every exchange is read on every
    /// node. Call it when all faults are over.
    pub(crate) async fn settle(self) -> Result<(), Failure> {
        let Self { world, clients, .. } = self;
        let mut clients = clients.await??;
        world.stop();
        let limit = if world.setup.is_steady { STEADY_STOP_TIME } else { STOP_TIME };
        let ended = timeout(limit, async { while clients.tasks.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            clients.tasks.shutdown().await;
        }
        world.recorder.quiet();
        quiet::finish_library(&world, clients.library).await;
        quiet::drain(&world).await;
        notified::wait(&world).await;
        let read = quiet::read_everything(&world).await;
        world.recorder.finish()?;
        read
    }
}

impl Clients {
    fn new() -> Result<Self, Failure> {
        Ok(Self { tasks: JoinSet::new(), library: Vec::new(), people: sdk::People::new()?, bare: 0 })
    }

    async fn start(&mut self, world: &Arc<World>) -> Result<(), Failure> {
        // The last tenant is of those who are notified: elsewhere requests to everybody would notify them, too.
        let tenants = world.setup.tenants.len() - 1;
        let receiver = notified::receive(world).await?;
        for number in 0..ASKERS {
            self.asker_of_notified(world, tenants, number, receiver);
        }
        // The first approver of each tenant, and every second one after that, uses the client library.
        let uses_library = |number: usize| (number / tenants).is_multiple_of(2);
        for tenant in 0..tenants {
            let of_tenant = |number: &usize| number % tenants == tenant;
            let (mut bare, mut library) = (Vec::new(), Vec::new());
            for number in (0..world.setup.approvers).filter(of_tenant) {
                let id = world.marked(tenant, &format!("a{number}"));
                match uses_library(number) {
                    true => library.push(self.library_approver(world, tenant, id).await?),
                    false => bare.push(id),
                }
            }
            for id in &bare {
                self.bare_approver(world, tenant, id);
            }
            for number in (0..world.setup.enforcers).filter(of_tenant) {
                let id = world.marked(tenant, &format!("e{number}"));
                match uses_library(number) && !library.is_empty() {
                    true => self.library_enforcer(world, tenant, id, &library).await?,
                    false => self.bare_enforcer(world, tenant, &id, number, bare.clone()),
                }
            }
            self.key_holder(world, tenant, bare);
            for approver in library {
                self.tasks.spawn(sdk::revive(Arc::clone(world), approver));
            }
        }
        Ok(())
    }

    async fn library_approver(
        &self,
        world: &Arc<World>,
        tenant: usize,
        id: String,
    ) -> Result<sdk::Approver, Failure> {
        let party = Party::Approver(id.parse()?);
        let folder = self.people.join(world, tenant, party).await?;
        Ok(sdk::Approver { world: Arc::clone(world), tenant, id, folder })
    }

    async fn library_enforcer(
        &mut self,
        world: &Arc<World>,
        tenant: usize,
        id: String,
        approvers: &[sdk::Approver],
    ) -> Result<(), Failure> {
        let folder = self.people.join(world, tenant, Party::Enforcer(id.parse()?)).await?;
        // Of two who are asked, one would be too late.
        let count = if world.setup.is_steady { 1 } else { approvers.len() };
        for approver in approvers.iter().take(count) {
            sdk::pair(&world.setup.nodes[0], &folder, &approver.folder).await?;
        }
        world.learn_reader(tenant, &id, Role::Enforcer);
        let enforcer = sdk::Enforcer { world: Arc::clone(world), tenant, id, folder };
        self.library.push(enforcer.clone());
        let at_work = world.at_work();
        let working = sdk::revive(Arc::clone(world), enforcer);
        self.tasks.spawn(async move {
            working.await;
            drop(at_work);
        });
        Ok(())
    }

    fn bare_approver(&mut self, world: &Arc<World>, tenant: usize, id: &str) {
        let key = &world.tenant(tenant).approver_key;
        let rest = |purpose: &str| Rest::new(world, tenant, &format!("{id}{purpose}"), key);
        let (to, requests) = mpsc::unbounded_channel();
        let mut listener = Listener::new(rest(" channel"), id, Role::Approver, self.transport());
        listener.to = Some(to);
        world.learn_reader(tenant, id, Role::Approver);
        let rival = format!("{id}-rival");
        let approver = approver::Approver::new(rest(""), rest(" rival"), (id, &rival), requests);
        self.tasks.spawn(listener.run());
        self.tasks.spawn(approver.run());
    }

    fn bare_enforcer(
        &mut self,
        world: &Arc<World>,
        tenant: usize,
        id: &str,
        number: usize,
        approvers: Vec<String>,
    ) {
        let key = &world.tenant(tenant).enforcer_key;
        let rest = |purpose: &str| Rest::new(world, tenant, &format!("{id}{purpose}"), key);
        let mut listener = Listener::new(rest(" channel"), id, Role::Enforcer, self.transport());
        let (to, pushed) = mpsc::unbounded_channel();
        listener.to = Some(to);
        world.learn_reader(tenant, id, Role::Enforcer);
        let number = number / (world.setup.tenants.len() - 1);
        let mut enforcer = enforcer::Enforcer::new(rest(""), id, number, approvers);
        enforcer.pushed = Some(pushed);
        self.tasks.spawn(listener.run());
        self.tasks.spawn(enforcer.run());
    }

    fn key_holder(&mut self, world: &Arc<World>, tenant: usize, approvers: Vec<String>) {
        let keys = world.tenant(tenant);
        let id = world.marked(tenant, "key-holder");
        let rest = |purpose: &str, key| Rest::new(world, tenant, &format!("{id}{purpose}"), key);
        world.learn_reader(tenant, &id, Role::Enforcer);
        // No enforcer has this number, so no id of an exchange is used twice in a tenant.
        let number = world.setup.enforcers;
        let enforcer = enforcer::Enforcer::new(rest("", &keys.enforcer_key), &id, number, approvers);
        let operator = rest(" operator", &keys.operator_key);
        self.tasks.spawn(credentials::KeyHolder { operator, enforcer }.run());
    }

    fn asker_of_notified(&mut self, world: &Arc<World>, tenant: usize, number: usize, receiver: SocketAddr) {
        let (keys, id) = (world.tenant(tenant), world.marked(tenant, &format!("asker-{number}")));
        let enforcer = Rest::new(world, tenant, &id, &keys.enforcer_key);
        let approver = Rest::new(world, tenant, &format!("{id} channels"), &keys.approver_key);
        self.tasks.spawn(notified::Asker { enforcer, approver, id, number, receiver }.run());
    }

    /// Both transports in turn.
    fn transport(&mut self) -> Transport {
        self.bare += 1;
        if self.bare.is_multiple_of(2) { Transport::Websocket } else { Transport::Sse }
    }
}
