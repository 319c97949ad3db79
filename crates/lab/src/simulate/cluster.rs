//! The nodes of a run, what each does beside requests, and how clients reach them.

use std::sync::Arc;

use countersign_core::{
    Error, Gateway,
    background::{self, LeaseObserver},
    notify::Doorbell,
    retention::Retention,
    store::{Shard, Store},
};
use countersign_testkit::gateway_suite::world::Seeded;
use countersign_wire::failure::Failure;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::{
    database::Database,
    doorbell::{Bells, SimDoorbell},
    nodes::{Liveness, NodeRun},
    plan::{Fault, Plan},
    random::{Numbers, hash},
    store::SimStore,
    world::World,
};
use crate::bugs::{Bug, BugState};

/// Readiness is not simulated.
struct Nobody;

impl LeaseObserver for Nobody {
    fn renewed(&self, _: Shard) {}
    fn failed(&self, _: Shard) {}
}

pub(crate) struct Node {
    pub(crate) run: Arc<NodeRun>,
    pub(crate) gateway: Gateway,
}

pub(crate) struct Cluster {
    pub(crate) world: Arc<World>,
    pub(crate) database: Arc<Database>,
    pub(crate) plan: Plan,
    bug: Option<(Bug, Arc<BugState>)>,
    bells: Arc<Bells>,
    /// The last run of each node, and how many there were.
    nodes: Mutex<Vec<(Option<Arc<Node>>, u64)>>,
}

/// What a client learns of a request.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    Done(T),
    /// It was rejected for good.
    Rejected(Error),
    /// It may or may not have happened.
    Unknown,
}

impl Cluster {
    pub(crate) fn new(world: &Arc<World>, plan: Plan, bug: Option<Bug>) -> Arc<Self> {
        let nodes = (0..plan.nodes).map(|_| (None, 0)).collect();
        let cluster = Arc::new(Self {
            world: Arc::clone(world),
            database: Database::new(world),
            bug: bug.map(|bug| (bug, Arc::default())),
            bells: Bells::new(world, plan.rings, plan.healed_at),
            nodes: Mutex::new(nodes),
            plan,
        });
        for index in 0..cluster.plan.nodes {
            cluster.start(index);
        }
        cluster
    }

    pub(crate) fn bug(&self) -> Option<Bug> {
        self.bug.as_ref().map(|(bug, _)| *bug)
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<(Option<Arc<Node>>, u64)>> {
        self.nodes.lock()
    }

    /// The node with this index, if it runs; it may be stopped.
    pub(crate) fn node(&self, index: usize) -> Option<Arc<Node>> {
        self.nodes()[index].0.clone()
    }

    /// Starts another run of a node.
    fn start(&self, index: usize) {
        let count = {
            let mut nodes = self.nodes();
            nodes[index].1 += 1;
            nodes[index].1
        };
        let name = format!("node{index}.{count}");
        let run = NodeRun::new(&self.world, name, self.plan.healed_at);
        let store: Arc<dyn Store> =
            Arc::new(SimStore::new(&self.world, &self.database, &run, self.plan.store));
        let doorbell = SimDoorbell { bells: Arc::clone(&self.bells), run: Arc::clone(&run) };
        let (store, doorbell): (_, Box<dyn Doorbell>) = match &self.bug {
            Some((bug, state)) => (bug.store(store, state), bug.doorbell(Box::new(doorbell))),
            None => (store, Box::new(doorbell)),
        };
        let random = Seeded::new(hash((self.world.seed, index, count)));
        let gateway = Gateway::new(store, &*doorbell, random, Retention::default());
        self.world.step(|| format!("{} starts", run.name()));
        let leases: Arc<dyn LeaseObserver> = Arc::new(Nobody);
        background::start(&gateway, &leases, Arc::default(), |task| run.spawn(task));
        self.nodes()[index].0 = Some(Arc::new(Node { run, gateway }));
    }

    /// Makes the faults of the plan happen at their times.
    pub(crate) fn schedule_faults(self: &Arc<Self>) {
        for (index, (at, fault)) in self.plan.faults.clone().into_iter().enumerate() {
            let cluster = Arc::clone(self);
            let order = hash((self.world.seed, index));
            self.world.at(at, order, move || cluster.happen(fault, order));
        }
    }

    fn happen(self: &Arc<Self>, fault: Fault, order: u64) {
        let world = &self.world;
        world.step(|| format!("{fault:?}"));
        world.count("faults", 1);
        // Whatever was begun ends when faults do.
        let until = |millis: u64| (world.now() + millis).min(self.plan.healed_at);
        match fault {
            Fault::Stop { node, millis } => {
                if let Some(node) = self.node(node) {
                    node.run.stop_until(until(millis));
                }
            }
            Fault::Kill { node: index, millis } => {
                let Some(node) = self.nodes()[index].0.take() else { return };
                node.run.kill();
                let cluster = Arc::clone(self);
                world.at(until(millis), order, move || cluster.start(index));
            }
            Fault::Failover { millis } => {
                self.database.fail_over(millis, &mut Numbers::of(world.seed, ("failover", order)));
            }
            Fault::NoRings { millis } => self.bells.silence_until(until(millis)),
        }
    }

    /// Calls a node as a client does, and waits for its answer for at most `patience` milliseconds. What the node has
    /// begun goes on.
    pub(crate) async fn call<T, F>(
        &self,
        numbers: &mut Numbers,
        index: usize,
        patience: u64,
        work: impl FnOnce(Gateway) -> F,
    ) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let order = numbers.next();
        self.world.pause(numbers.between(1, 3), order).await;
        let Some(node) = self.node(index) else { return Reply::Unknown };
        while let Liveness::StoppedUntil(time) = node.run.liveness() {
            if time > self.world.now() + patience {
                self.world.pause(patience, order).await;
                return Reply::Unknown;
            }
            self.world.pause(time - self.world.now(), order).await;
        }
        let (answer, answered) = oneshot::channel();
        let working = work(node.gateway.clone());
        node.run.spawn(async move { drop(answer.send(working.await)) });
        let result = tokio::select! {
            biased;
            result = answered => result.ok(),
            () = self.world.pause(patience, order) => None,
        };
        self.world.pause(numbers.between(1, 3), order).await;
        self.world.count("requests", 1);
        match result {
            Some(Ok(done)) => Reply::Done(done),
            Some(Err(error)) if error.failure() == Failure::Unavailable => Reply::Unknown,
            Some(Err(error)) => Reply::Rejected(error),
            None => Reply::Unknown,
        }
    }

    /// Any node, also one that does not run.
    pub(crate) fn any(&self, numbers: &mut Numbers) -> usize {
        numbers.index(self.plan.nodes)
    }

    /// Whether faults have ended.
    pub(crate) fn is_healed(&self) -> bool {
        self.world.now() >= self.plan.healed_at
    }
}
