//! The life of one exchange on the enforcer's side: submitted, submitted again, read, waited for, withdrawn.

use std::{sync::Arc, time::Duration};

use countersign_core::{model::viewer::Viewer, use_cases::wait::WaitOutcome};
use countersign_testkit::gateway_suite::world::{Request, submit};
use countersign_wire::{exchange::ExchangeState, id::TenantId};

use super::{
    checks::Watch,
    cluster::{Cluster, Reply},
    random::Numbers,
};

#[derive(Clone)]
pub(crate) struct ExchangeLife {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tenant: TenantId,
    pub(crate) request: Request,
    /// Whether its enforcer waits by requests too. The order in which a node polls the records of several tenants is not
    /// that of the seed, so only one tenant waits.
    pub(crate) may_wait: bool,
    pub(crate) numbers: Numbers,
}

impl ExchangeLife {
    pub(crate) async fn run(mut self, starts_at: u64) {
        let world = Arc::clone(&self.cluster.world);
        world.pause(starts_at, self.numbers.next()).await;
        for _ in 0..3 {
            if self.numbers.happens(400) {
                let mut reader = self.clone();
                reader.numbers = Numbers::of(self.numbers.next(), "reader");
                tokio::spawn(reader.read());
            }
        }
        if self.may_wait && self.numbers.happens(400) {
            let mut waiter = self.clone();
            waiter.numbers = Numbers::of(self.numbers.next(), "waiter");
            tokio::spawn(waiter.wait());
        }
        self.submit().await;
        if self.numbers.happens(250) {
            self.later(6_000).await;
            self.withdraw().await;
        }
        if self.numbers.happens(400) {
            self.later(15_000).await;
            self.submit().await;
        }
    }

    async fn later(&mut self, millis: u64) {
        let wait = self.numbers.between(1, millis);
        self.cluster.world.pause(wait, self.numbers.next()).await;
    }

    /// With the same id and body each time, until it is answered.
    async fn submit(&mut self) {
        let world = Arc::clone(&self.cluster.world);
        for _ in 0..12 {
            let (tenant, request, asked_at) = (self.tenant.clone(), self.request.clone(), world.now());
            let index = self.cluster.any(&mut self.numbers);
            let reply = self
                .cluster
                .call(&mut self.numbers, index, 4_000, |gateway| async move {
                    submit(&gateway, &tenant, &request).await
                })
                .await;
            world.step(|| format!("{} submits {}: {reply:?}", self.tenant, self.request.id));
            match reply {
                Reply::Done(submitted) => {
                    return self.watch.submitted(&self.tenant, &self.request.id, submitted.accepted);
                }
                Reply::Rejected(error) => {
                    let times = (asked_at, world.now());
                    return self.watch.rejected(&self.tenant, &self.request.id, times, &error);
                }
                Reply::Unknown => self.later(1_000).await,
            }
        }
    }

    async fn withdraw(&mut self) {
        let world = Arc::clone(&self.cluster.world);
        let id = self.request.id.clone();
        for _ in 0..12 {
            let (tenant, request, asked_at) = (self.tenant.clone(), self.request.clone(), world.now());
            let index = self.cluster.any(&mut self.numbers);
            let reply = self
                .cluster
                .call(&mut self.numbers, index, 4_000, |gateway| async move {
                    gateway.withdraw(&tenant, &request.enforcer, &request.id).await
                })
                .await;
            world.step(|| format!("{} withdraws {id}: {reply:?}", self.tenant));
            let times = (asked_at, world.now());
            match reply {
                Reply::Done(_) => {
                    return self.watch.facts.observed(&self.tenant, &id, times, ExchangeState::Withdrawn);
                }
                Reply::Rejected(error) => return self.watch.rejected(&self.tenant, &id, times, &error),
                Reply::Unknown => self.later(1_000).await,
            }
        }
    }

    async fn read(mut self) {
        self.later(12_000).await;
        let world = Arc::clone(&self.cluster.world);
        let (tenant, request, asked_at) = (self.tenant.clone(), self.request.clone(), world.now());
        let by_operator = self.numbers.happens(500);
        let index = self.cluster.any(&mut self.numbers);
        let reply = self
            .cluster
            .call(&mut self.numbers, index, 4_000, |gateway| async move {
                let viewer = if by_operator { Viewer::Operator } else { Viewer::Enforcer(&request.enforcer) };
                gateway.status(&tenant, viewer, &request.id).await
            })
            .await;
        let id = &self.request.id;
        if let Reply::Done(snapshot) = reply {
            let times = (asked_at, world.now());
            world.step(|| format!("{} reads {id}: {:?}", self.tenant, snapshot.state));
            self.watch.read(&self.tenant, id, times, &snapshot);
        }
    }

    async fn wait(mut self) {
        self.later(3_000).await;
        let world = Arc::clone(&self.cluster.world);
        let (tenant, request, asked_at) = (self.tenant.clone(), self.request.clone(), world.now());
        let index = self.cluster.any(&mut self.numbers);
        let reply = self
            .cluster
            .call(&mut self.numbers, index, 12_000, |gateway| async move {
                let viewer = Viewer::Enforcer(&request.enforcer);
                gateway.wait(&tenant, viewer, &request.id, Duration::from_secs(8)).await
            })
            .await;
        let (id, times) = (&self.request.id, (asked_at, world.now()));
        world.step(|| format!("{} waits for {id}: {reply:?}", self.tenant));
        match reply {
            Reply::Done(WaitOutcome::Decided { decision, .. }) => {
                let text = String::from_utf8_lossy(&decision).into_owned();
                self.watch.decision_told(&self.tenant, id, &text);
                self.watch.facts.observed(&self.tenant, id, times, ExchangeState::Decided);
            }
            Reply::Done(WaitOutcome::NotDecided { state }) => {
                self.watch.facts.observed(&self.tenant, id, times, state);
            }
            Reply::Rejected(_) | Reply::Unknown => {}
        }
    }
}
