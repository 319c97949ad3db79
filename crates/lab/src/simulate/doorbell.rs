//! The doorbell between the nodes of a run: what it carries is lost, late, doubled and out of order.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, Announcer, Doorbell, Receiver},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    nodes::{Liveness, NodeRun},
    plan::{MAX_LATE, RingFaults},
    world::World,
};

/// What all nodes are connected to.
pub(crate) struct Bells {
    world: Arc<World>,
    faults: RingFaults,
    healed_at: u64,
    attached: Mutex<Vec<Attached>>,
    /// Nothing arrives before this time.
    silent_until: AtomicU64,
}

#[derive(Clone)]
struct Attached {
    run: Arc<NodeRun>,
    node: NodeId,
    receiver: Arc<dyn Receiver>,
}

impl Bells {
    pub(crate) fn new(world: &Arc<World>, faults: RingFaults, healed_at: u64) -> Arc<Self> {
        let (attached, silent_until) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { world: Arc::clone(world), faults, healed_at, attached, silent_until })
    }

    fn attached(&self) -> MutexGuard<'_, Vec<Attached>> {
        self.attached.lock()
    }

    pub(crate) fn silence_until(&self, until: u64) {
        self.silent_until.store(until, Ordering::Relaxed);
    }

    fn send(self: &Arc<Self>, from: &NodeRun, to: &Attached, mut announcement: Announcement) {
        announcement.hand_overs.retain(|(node, _)| *node == to.node);
        let now = self.world.now();
        let mut numbers = self.world.numbers((from.name(), to.run.name(), &announcement.rings));
        let order = numbers.next();
        if now < self.silent_until.load(Ordering::Relaxed) {
            return;
        }
        let has_faults = now < self.healed_at;
        if has_faults && numbers.happens(self.faults.lost) {
            self.world.count("rings lost", 1);
            self.world.step(|| format!("ring from {} to {} lost", from.name(), to.run.name()));
            return;
        }
        let copies = if has_faults && numbers.happens(self.faults.doubled) { 2 } else { 1 };
        for copy in 0..copies {
            let takes = match has_faults && (copy > 0 || numbers.happens(self.faults.late)) {
                true => numbers.between(5, MAX_LATE),
                false => numbers.between(1, 2),
            };
            self.arrive(to.clone(), announcement.clone(), now + takes, order);
        }
    }

    fn arrive(self: &Arc<Self>, to: Attached, announcement: Announcement, due: u64, order: u64) {
        let bells = Arc::clone(self);
        self.world.at(due, order, move || match to.run.liveness() {
            Liveness::Running => {
                let hand_overs = announcement.hand_overs.len();
                bells.world.count("hand-overs between nodes", hand_overs as u64);
                bells.world.step(|| {
                    let rings = announcement.rings.len();
                    format!("{} hears {rings} rings, {hand_overs} hand-overs", to.run.name())
                });
                to.receiver.receive(announcement);
            }
            Liveness::StoppedUntil(time) => bells.arrive(to, announcement, time, order),
            Liveness::Dead => {}
        });
    }
}

/// The connection of one run of a node.
pub(crate) struct SimDoorbell {
    pub(crate) bells: Arc<Bells>,
    pub(crate) run: Arc<NodeRun>,
}

impl Doorbell for SimDoorbell {
    fn attach(&self, node: &NodeId, receiver: Arc<dyn Receiver>) -> Box<dyn Announcer> {
        let attached = Attached { run: Arc::clone(&self.run), node: node.clone(), receiver };
        self.bells.attached().push(attached);
        Box::new(SimAnnouncer { bells: Arc::clone(&self.bells), run: Arc::clone(&self.run) })
    }
}

struct SimAnnouncer {
    bells: Arc<Bells>,
    run: Arc<NodeRun>,
}

impl Announcer for SimAnnouncer {
    fn announce(&self, announcement: Announcement) {
        let mut attached = self.bells.attached();
        attached.retain(|other| other.run.liveness() != Liveness::Dead);
        let others: Vec<Attached> =
            attached.iter().filter(|other| other.run.name() != self.run.name()).cloned().collect();
        drop(attached);
        for other in others {
            self.bells.send(&self.run, &other, announcement.clone());
        }
    }
}
