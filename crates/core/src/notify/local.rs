//! The doorbell within one process.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use super::{
    announcement::Announcement,
    doorbell::{Announcer, Doorbell, Receiver},
};
use crate::model::channels::NodeId;

/// Connects the nodes of this process; as a rule there is one. Clones connect the same nodes. Nodes of other processes
/// find a commit with their change poller.
#[derive(Clone, Default)]
pub struct LocalDoorbell(Arc<Nodes>);

#[derive(Default)]
struct Nodes {
    attached: Mutex<Vec<Attached>>,
    last: AtomicU64,
}

#[derive(Clone)]
struct Attached {
    number: u64,
    node: NodeId,
    receiver: Arc<dyn Receiver>,
}

impl std::fmt::Debug for LocalDoorbell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalDoorbell").field("nodes", &self.0.attached.lock().len()).finish()
    }
}

impl Doorbell for LocalDoorbell {
    fn attach(&self, node: &NodeId, receiver: Arc<dyn Receiver>) -> Box<dyn Announcer> {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed);
        self.0.attached.lock().push(Attached { number, node: node.clone(), receiver });
        Box::new(LocalAnnouncer { nodes: Arc::clone(&self.0), number })
    }
}

struct LocalAnnouncer {
    nodes: Arc<Nodes>,
    number: u64,
}

impl Announcer for LocalAnnouncer {
    fn announce(&self, announcement: Announcement) {
        let others: Vec<Attached> =
            self.nodes.attached.lock().iter().filter(|other| other.number != self.number).cloned().collect();
        for Attached { node, receiver, .. } in others {
            let mut announcement = announcement.clone();
            announcement.hand_overs.retain(|(to, _)| *to == node);
            receiver.receive(announcement);
        }
    }

    fn has_others(&self) -> bool {
        self.nodes.attached.lock().len() > 1
    }
}

impl Drop for LocalAnnouncer {
    fn drop(&mut self) {
        self.nodes.attached.lock().retain(|attached| attached.number != self.number);
    }
}
