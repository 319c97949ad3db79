//! Whoever reaches NATS can neither invent anything nor make nodes read: messages that are forged, sent again, out of
//! order, cut, changed, or moved to another subject, against real gateways on one store.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, Message};
use countersign_core::{Gateway, delivery::feed::Reader, retention::Retention, store::Store};
use countersign_doorbell_nats::{NatsDoorbell, Options, counters::Dropped};
use countersign_store_sqlite::SqliteStore;
use countersign_testkit::{
    gateway_suite::world::{Request, approver, decide, decision, request, robot, submit},
    nats::Nats,
    random::TestRandom,
    recording_store::RecordingStore,
};
use countersign_wire::{id::TenantId, mac::MacKey, presence::Transport};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};

/// How many messages the attacker sends.
const ATTACKS: usize = 100_000;

const SOON: Duration = Duration::from_mins(1);

/// One node, with an approver and an enforcer that listen.
struct Node {
    gateway: Gateway,
    doorbell: NatsDoorbell,
    store: Arc<RecordingStore>,
    /// Requests that its approver got. One that is decided at once may be gone before it is read.
    requests: Arc<AtomicUsize>,
    /// Decisions that its enforcer got.
    decisions: Arc<AtomicUsize>,
}

/// Counts what a reader gets.
fn count(gateway: &Gateway, reader: &Reader) -> Arc<AtomicUsize> {
    let total = Arc::new(AtomicUsize::new(0));
    let (mut feed, counter) = (gateway.feed(&tenant(), reader, &[]), Arc::clone(&total));
    tokio::spawn(async move {
        loop {
            let items = feed.next().await.unwrap();
            counter.fetch_add(items.len(), Ordering::SeqCst);
        }
    });
    total
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

impl Node {
    fn start(inner: &Arc<SqliteStore>, nats: &Nats) -> Self {
        let store = RecordingStore::new(Arc::clone(inner) as Arc<dyn Store>);
        let key = MacKey::new([7; 32]);
        let doorbell = NatsDoorbell::open(Options::new([nats.url()]), key, Arc::new(TestRandom)).unwrap();
        let gateway = Gateway::new(store.clone(), &doorbell, Arc::new(TestRandom), Retention::default());
        let requests = count(&gateway, &Reader::Approver(approver("ada")));
        let decisions = count(&gateway, &Reader::Enforcer(robot()));
        Self { gateway, doorbell, store, requests, decisions }
    }

    /// An exchange from its submission to its decision, on this node.
    async fn exchange(&self, id: &str) {
        let expires_at = self.store.now().await.unwrap().plus(Duration::from_hours(24));
        let request = Request { expires_at, ..request(id).to("ada") };
        submit(&self.gateway, &tenant(), &request).await.unwrap();
        let decision = decision(&request.id, id, "n", None);
        decide(&self.gateway, &tenant(), &approver("ada"), &request.id, &decision).await.unwrap();
    }

    fn decisions(&self) -> usize {
        self.decisions.load(Ordering::SeqCst)
    }

    fn pushed(&self) -> usize {
        self.requests.load(Ordering::SeqCst) + self.decisions()
    }

    /// Messages that were looked at and not taken.
    fn refused(&self) -> u64 {
        let counters = self.doorbell.counters();
        counters.late() + Dropped::ALL.iter().map(|reason| counters.dropped(*reason)).sum::<u64>()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waited = timeout(SOON, async {
            while !is_so(self) {
                sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(waited.await.is_ok(), "{what}: {:?}", self.doorbell.counters());
    }
}

/// The attacker's variations of what it has recorded. Each is published to the subject that it was for or to another.
fn attack(recorded: &[Message], index: usize) -> (String, Vec<u8>) {
    let message = &recorded[(index / 7) % recorded.len()];
    let other = &recorded[(index / 5) % recorded.len()];
    let (mut bytes, mut subject) = (message.payload.to_vec(), message.subject.to_string());
    let place = (index * 31) % bytes.len();
    match index % 7 {
        // Sent again as it was.
        0 => {}
        // Out of order.
        1 => {
            let backwards = &recorded[recorded.len() - 1 - (index / 7) % recorded.len()];
            (bytes, subject) = (backwards.payload.to_vec(), backwards.subject.to_string());
        }
        2 => bytes.truncate(place),
        3 => bytes[place] ^= 1 << (index % 8),
        // To another subject.
        4 => subject = other.subject.to_string(),
        // With the header of another.
        5 => {
            let head = bytes.len().min(other.payload.len()).min(60);
            bytes[..head].copy_from_slice(&other.payload[..head]);
        }
        // Made up, with a version that is right.
        _ => {
            bytes.iter_mut().enumerate().for_each(|(at, byte)| {
                *byte = u8::try_from(at * index % 251).unwrap();
            });
            bytes[0] = 2;
        }
    }
    (subject, bytes)
}

/// Sends all of it, not more at once than nodes take: what they don't see they don't refuse either.
async fn send_attacks(attacker: &Client, recorded: &[Message], nodes: &[&Node]) {
    let seen = || nodes.iter().map(|node| node.refused()).sum::<u64>();
    for index in 0..ATTACKS {
        let (subject, bytes) = attack(recorded, index);
        attacker.publish(subject, bytes.into()).await.unwrap();
        if index % 200 == 0 {
            attacker.flush().await.unwrap();
            let mut before = 0;
            while before != seen() {
                before = seen();
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    attacker.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_bad_messages_push_nothing_change_nothing_and_cost_no_read() {
    let nats = Nats::start();
    let folder = tempfile::tempdir().unwrap();
    let options = countersign_store_sqlite::Options::default();
    let inner = Arc::new(SqliteStore::open(folder.path().join("db"), options).unwrap());
    let attacker = async_nats::connect(nats.url()).await.unwrap();
    let mut heard = attacker.subscribe("countersign.>").await.unwrap();
    attacker.flush().await.unwrap();

    // Two nodes at work. The enforcer's channel is on the second, so that deliveries are handed over to it.
    let (one, two) = (Node::start(&inner, &nats), Node::start(&inner, &nats));
    for node in [&one, &two] {
        node.gateway.renew_lease(node.gateway.node()).await.unwrap();
    }
    two.gateway.open_channel(&tenant(), &robot(), two.gateway.node(), Transport::Websocket).await.unwrap();
    two.until("the nodes know each other", |two| two.doorbell.counters().received() > 0).await;
    one.until("the nodes know each other", |one| one.doorbell.counters().received() > 0).await;
    for index in 0..50 {
        one.exchange(&format!("r{index}")).await;
    }
    two.until("everything arrives", |two| two.decisions() == 50).await;
    let mut recorded = Vec::new();
    while let Ok(Some(message)) = timeout(Duration::from_millis(200), heard.next()).await {
        recorded.push(message);
        if recorded.len() > 2_000 {
            break;
        }
    }
    heard.unsubscribe().await.unwrap();
    recorded.retain(|message| message.payload.len() > 60);
    let to_one_node = recorded.iter().filter(|message| message.subject.contains(".node.")).count();
    assert!(recorded.len() > 20 && to_one_node > 3, "{} recorded, {to_one_node} to a node", recorded.len());
    // Sender, tenant and ids are not in what was heard.
    let readable = recorded.iter().any(|message| message.payload.windows(4).any(|part| part == b"acme"));
    assert!(!readable, "a tenant can be read");

    // A third node starts now: it has seen none of it.
    let three = Node::start(&inner, &nats);
    three.until("it reads what is there", |three| three.decisions() == 50).await;
    three.until("it knows the others", |three| three.doorbell.counters().received() > 0).await;
    sleep(Duration::from_millis(1_500)).await;
    let nodes = [&one, &two, &three];
    let before =
        nodes.map(|node| (node.pushed(), node.store.calls(), node.doorbell.counters().comparisons()));
    let (state_before, refused) = (state_of(&inner).await, nodes.map(Node::refused));

    let start = Instant::now();
    send_attacks(&attacker, &recorded, &nodes).await;
    sleep(Duration::from_millis(500)).await;
    let seconds = start.elapsed().as_secs() + 1;

    for (node, (refused, (pushed, calls, comparisons))) in nodes.iter().zip(refused.into_iter().zip(before)) {
        assert_eq!(node.pushed(), pushed, "nothing is pushed");
        assert_eq!(node.store.calls() - calls, 0, "nothing is read");
        let seen = node.refused() - refused;
        // What is made from its own messages it ignores; and deliveries go to one node only.
        assert!(seen > ATTACKS as u64 / 10, "the node saw the attack: {seen}");
        // A flood may displace a message of a node, which asks for a comparison: at most once a second.
        let asked = node.doorbell.counters().comparisons() - comparisons;
        assert!(asked <= seconds, "{asked} in {seconds} s: {:?}", node.doorbell.counters());
    }
    assert_eq!(state_of(&inner).await, state_before, "nothing is changed");
    for reason in [Dropped::Forged, Dropped::Malformed] {
        assert!(three.doorbell.counters().dropped(reason) > 1_000, "{:?}", three.doorbell.counters());
    }
    assert!(three.doorbell.counters().late() > 1_000, "{:?}", three.doorbell.counters());

    // And they still hear each other.
    one.exchange("afterwards").await;
    for node in [&two, &three] {
        node.until("what comes after the attack arrives", |node| node.decisions() == 51).await;
    }
}

/// What the store has of the tenant.
async fn state_of(store: &SqliteStore) -> Vec<String> {
    let mut all = Vec::new();
    for kind in countersign_core::store::Kind::ALL {
        let records = store.scan(&tenant(), *kind, None, 10_000).await.unwrap();
        all.extend(records.iter().map(|record| format!("{:?} {}", record.key, record.version)));
    }
    all
}
