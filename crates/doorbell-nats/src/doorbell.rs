//! The doorbell itself.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, Announcer, Doorbell, Receiver},
    random::RandomSource,
};
use countersign_wire::{hash::Sha256Hex, mac::MacKey};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Notify, time::timeout};

use crate::{
    comparison::{Comparison, Pacer},
    connect::{Connector, Link},
    counters::Counters,
    error::OpenError,
    intake::Intake,
    options::Options,
    outbox::{Outbox, Queue},
    peers::Peers,
    publisher::Publisher,
    seal::{ClusterKey, Sealer},
    subjects::{Cell, is_node_id},
};

/// How long [`NatsDoorbell::probe`] waits for its own message.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects the nodes of one cell over NATS. Each node that is attached has a connection of its own.
///
/// NATS may be away, at the start too: then nothing arrives, and the change poller finds what was committed.
pub struct NatsDoorbell {
    connector: Connector,
    cell: Cell,
    key: ClusterKey,
    random: Arc<dyn RandomSource>,
    counters: Arc<Counters>,
    comparison: Arc<Comparison>,
    runtime: Handle,
    pacer: Arc<Pacer>,
}

impl std::fmt::Debug for NatsDoorbell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsDoorbell").field("cell", &self.cell).finish_non_exhaustive()
    }
}

impl NatsDoorbell {
    /// Checks the options and does not connect yet. `key` must be the same on all nodes, and used for nothing else. Needs
    /// a runtime, on which it runs.
    pub fn open(options: Options, key: MacKey, random: Arc<dyn RandomSource>) -> Result<Self, OpenError> {
        let cell = Cell::new(&options.cell)?;
        let counters = Arc::new(Counters::new(options.metrics.clone()));
        let connector = Connector::new(options)?;
        let runtime = Handle::current();
        let (comparison, pacer) = Comparison::start(&runtime, Arc::clone(&counters));
        let key = ClusterKey::new(key, cell.clone());
        Ok(Self { connector, cell, key, random, counters, comparison, runtime, pacer: Arc::new(pacer) })
    }

    /// Whether NATS can be used as it is: it answers, and lets this user publish and subscribe. Other nodes don't notice.
    pub async fn probe(options: Options, random: &dyn RandomSource) -> Result<(), OpenError> {
        let cell = Cell::new(&options.cell)?;
        let connector = Connector::new(options)?;
        let failed = |reason| OpenError::Probe { reason, source: None };
        let complaints = Arc::new(Mutex::default());
        let client = connector
            .connect_once(Arc::clone(&complaints))
            .await
            .map_err(|error| OpenError::Probe { reason: "no connection", source: Some(error.into()) })?;
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        let own = cell.node(&NodeId(format!("check-{}", &Sha256Hex::from_bytes(bytes).to_string()[..32])));
        let probed = timeout(PROBE_TIMEOUT, async {
            let subscribed = client.subscribe(own.clone()).await.ok();
            let rings = client.subscribe(cell.rings()).await.ok();
            // Nodes ignore an empty message.
            client.publish(cell.rings(), "".into()).await.ok();
            client.publish(own, "".into()).await.ok();
            client.flush().await.ok();
            let (mut subscribed, mut rings) = (subscribed?, rings?);
            tokio::join!(subscribed.next(), rings.next());
            Some(())
        });
        let answered = probed.await;
        let said = complaints.lock().join("; ");
        match answered {
            _ if !said.is_empty() => Err(OpenError::Permission { subjects: cell.all(), said }),
            Ok(Some(())) => Ok(()),
            _ => Err(failed("a message to itself did not come back")),
        }
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Notified, at most once a second, when something may have been missed: compare what is listened to with the store.
    pub fn comparison_wanted(&self) -> &Arc<Notify> {
        self.comparison.wanted()
    }
}

impl Doorbell for NatsDoorbell {
    fn attach(&self, node: &NodeId, receiver: Arc<dyn Receiver>) -> Box<dyn Announcer> {
        if !is_node_id(&node.0) {
            tracing::error!(
                "this node's id can't be a part of a NATS subject; it learns of commits by polling"
            );
            return Box::new(Detached);
        }
        let mut session = [0; 16];
        self.random.fill(&mut session);
        let (outbox, announcer, queue) = Outbox::new(node.clone(), Arc::clone(&self.counters));
        let sealer = Sealer::new(&self.key, node.clone(), session);
        let intake = Intake {
            peers: Peers::new(node.clone(), session, self.key.clone(), Arc::clone(&self.random)),
            receiver,
            outbox: Arc::clone(&outbox),
            counters: Arc::clone(&self.counters),
            comparison: Arc::clone(&self.comparison),
            rings_subject: self.cell.rings(),
            node_subject: self.cell.node(node),
            node: node.clone(),
        };
        let link = Link::new(Arc::clone(&self.counters), Arc::clone(&self.comparison));
        let attached = Attachment {
            connector: self.connector.clone(),
            cell: self.cell.clone(),
            link,
            outbox,
            pacer: Arc::clone(&self.pacer),
        };
        self.runtime.spawn(attached.run(sealer, intake, queue));
        Box::new(announcer)
    }
}

/// Takes nothing: for a node that can't be attached.
struct Detached;

impl Announcer for Detached {
    fn announce(&self, _: Announcement) {}
}

/// One node's connection, until its announcer is dropped.
struct Attachment {
    connector: Connector,
    cell: Cell,
    link: Link,
    outbox: Arc<Outbox>,
    /// Also runs while this does.
    pacer: Arc<Pacer>,
}

impl Attachment {
    async fn run(self, sealer: Sealer, intake: Intake, queue: Queue) {
        let counters = Arc::clone(&intake.counters);
        let client = match self.connector.stay_connected(Arc::new(self.link)).await {
            Ok(client) => client,
            Err(error) => return tracing::error!(%error, "the doorbell is not connected"),
        };
        let rings = client.subscribe(intake.rings_subject.clone()).await;
        let own = client.subscribe(intake.node_subject.clone()).await;
        let (rings, own) = match (rings, own) {
            (Ok(rings), Ok(own)) => (rings, own),
            (Err(error), _) | (_, Err(error)) => {
                return tracing::error!(%error, "the doorbell is not subscribed");
            }
        };
        let publisher =
            Publisher { client, sealer, cell: self.cell, outbox: self.outbox, counters, number: 0 };
        let _pacer = self.pacer;
        tokio::select! {
            () = publisher.run(queue) => {}
            () = intake.run(rings, own) => tracing::error!("the doorbell's connection has ended"),
        }
    }
}
