//! Which channel gets what, on two nodes.

use std::{
    future::{Future as _, poll_fn},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use countersign_core::{
    Gateway,
    delivery::{feed::FeedItem, message::Party},
    model::channels::LEASE,
    notify::LocalDoorbell,
    random::RandomSource as _,
    retention::Retention,
    use_cases::acknowledge::Acknowledger,
};
use countersign_store_sqlite::{Clock, ManualClock, Options, SqliteStore};
use countersign_testkit::gateway_suite::world::{
    Seeded, approver, decide, decision, minutes, request, submit,
};
use countersign_wire::{
    ack::MessageAck,
    id::{EnforcerId, TenantId},
    presence::Transport,
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{Subscriber, subscribe};
use crate::{
    random::SystemRandom,
    secrets::Secrets,
    state::{AppState, Settings, SharedState},
};

/// Two nodes on one store, with one doorbell.
struct Nodes {
    apps: [SharedState; 2],
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

impl Nodes {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(minutes(0));
        let options = Options { clock: Clock::Manual(clock.clone()), ..Options::default() };
        let store = Arc::new(SqliteStore::open(folder.path().join("db"), options).unwrap());
        let doorbell = LocalDoorbell::default();
        let app = || {
            let gateway =
                Gateway::new(store.clone(), &doorbell, Arc::new(SystemRandom), Retention::default());
            AppState::new(gateway, "gw".parse().unwrap(), Secrets::random(), Settings::default()).unwrap()
        };
        let apps = [app(), app()];
        for app in &apps {
            app.gateway.renew_lease(app.gateway.node()).await.unwrap();
        }
        Self { apps, clock, _folder: folder }
    }

    fn gateway(&self) -> &Gateway {
        &self.apps[0].gateway
    }
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn robot() -> EnforcerId {
    "robot".parse().unwrap()
}

fn channels_key() -> countersign_core::store::Key {
    countersign_core::store::Key::new(countersign_core::store::Kind::Channels, robot())
}

/// A channel that reports what it has to send.
async fn channel(
    app: &SharedState,
    name: usize,
    sent: mpsc::UnboundedSender<(usize, String)>,
) -> JoinHandle<()> {
    let party = Party::Enforcer(robot());
    let subscriber = Subscriber { tenant: tenant(), party, transport: Transport::Websocket };
    let mut subscription = subscribe(app, subscriber, &[]).await.unwrap();
    tokio::spawn(async move {
        while let Ok(FeedItem { delivery, .. }) = subscription.next().await {
            sent.send((name, delivery.subject.id)).unwrap();
        }
    })
}

async fn decided(gateway: &Gateway, id: &str) {
    let request = request(id).to("ada");
    submit(gateway, &tenant(), &request).await.unwrap();
    let decision = decision(&request.id, id, "n", None);
    decide(gateway, &tenant(), &approver("ada"), &request.id, &decision).await.unwrap();
}

async fn acknowledged(gateway: &Gateway, id: &str) {
    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    gateway.acknowledge(&tenant(), by, &id.parse().unwrap(), &MessageAck::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_decision_goes_to_the_newest_live_channel_and_to_the_next_when_that_one_dies() {
    let nodes = Nodes::start().await;
    let random = Seeded::new(5);
    let draw = |below: usize| {
        let mut byte = [0];
        random.fill(&mut byte);
        usize::from(byte[0]) % below
    };
    let (sender, mut sent) = mpsc::unbounded_channel();
    let mut open: Vec<(usize, JoinHandle<()>)> = Vec::new();
    let (mut names, mut moved_on) = (0, 0);
    for round in 0..500 {
        while open.len() < 3 {
            let app = &nodes.apps[draw(2)];
            open.push((names, channel(app, names, sender.clone()).await));
            names += 1;
        }
        let id = format!("round-{round}");
        decided(nodes.gateway(), &id).await;
        // Some die before they acknowledge, and the next one gets the decision.
        let deaths = draw(3);
        for _ in 0..deaths {
            let newest = open.last().unwrap().0;
            assert_eq!(sent.recv().await.unwrap(), (newest, id.clone()), "round {round}");
            let (_, task) = open.pop().unwrap();
            task.abort();
            moved_on += 1;
        }
        let newest = open.last().unwrap().0;
        assert_eq!(sent.recv().await.unwrap(), (newest, id.clone()), "round {round}, after {deaths} deaths");
        acknowledged(nodes.gateway(), &id).await;
        // Others come and go in any order, and get nothing.
        if draw(2) == 0 {
            let (_, task) = open.remove(draw(open.len()));
            task.abort();
            drop(task.await);
        }
        assert!(sent.try_recv().is_err(), "round {round}: nobody else gets it");
    }
    assert!(moved_on > 300, "{moved_on}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_counted_as_dead_ends_its_channels_and_nothing_is_left_unsent() {
    let nodes = Nodes::start().await;
    let (sender, mut sent) = mpsc::unbounded_channel();
    // The node of this one sleeps for longer than its lease.
    let older = channel(&nodes.apps[1], 0, sender.clone()).await;
    nodes.clock.set(minutes(0).plus(LEASE));
    nodes.apps[0].gateway.renew_lease(nodes.apps[0].gateway.node()).await.unwrap();
    let newer = channel(&nodes.apps[0], 1, sender.clone()).await;
    nodes.apps[1].gateway.renew_lease(nodes.apps[1].gateway.node()).await.unwrap();
    newer.abort();
    drop(newer.await);
    decided(nodes.gateway(), "r").await;
    // It was dropped, so it must not stay open and silent: its client reconnects and gets the decision.
    older.await.unwrap();
    let _again = channel(&nodes.apps[1], 2, sender.clone()).await;
    assert_eq!(sent.recv().await.unwrap(), (2, "r".to_owned()));
}

#[tokio::test]
async fn a_client_that_disconnects_while_its_channel_opens_leaves_none_behind() {
    let nodes = Nodes::start().await;
    let subscriber =
        Subscriber { tenant: tenant(), party: Party::Enforcer(robot()), transport: Transport::Websocket };
    for polls in 0..40_u32 {
        let mut opening = Box::pin(subscribe(&nodes.apps[0], subscriber.clone(), &[]));
        for _ in 0..polls {
            let polled = poll_fn(|context| Poll::Ready(opening.as_mut().poll(context)));
            if polled.await.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let (sender, mut sent) = mpsc::unbounded_channel();
    let _only = channel(&nodes.apps[0], 7, sender).await;
    let presence = async {
        // What they left is closed soon.
        loop {
            let loaded = nodes.gateway().store().load(&tenant(), &[channels_key()]).await.unwrap();
            let text = String::from_utf8(loaded.first().unwrap().content.to_vec()).unwrap();
            if text.matches("number").count() == 1 {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), presence).await.unwrap();
    decided(nodes.gateway(), "r").await;
    assert_eq!(sent.recv().await.unwrap(), (7, "r".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_without_a_word_hands_over_when_its_lease_runs_out() {
    let nodes = Nodes::start().await;
    let (sender, mut sent) = mpsc::unbounded_channel();
    let _older = channel(&nodes.apps[0], 0, sender.clone()).await;
    // The newest channel is on a node that has died: nobody reads it and nobody closes it.
    let dead = &nodes.apps[1];
    dead.gateway.open_channel(&tenant(), &robot(), dead.gateway.node(), Transport::Websocket).await.unwrap();
    decided(nodes.gateway(), "r").await;
    sleep(Duration::from_mins(1)).await;
    assert!(sent.try_recv().is_err(), "its lease still runs by the store's clock");
    nodes.clock.set(minutes(0).plus(LEASE));
    assert_eq!(sent.recv().await.unwrap(), (0, "r".to_owned()));
}

#[tokio::test]
async fn a_hand_over_goes_on_however_often_the_client_interrupts_it() {
    let nodes = Nodes::start().await;
    let party = Party::Enforcer(robot());
    let subscriber = Subscriber { tenant: tenant(), party, transport: Transport::Websocket };
    let mut older = subscribe(&nodes.apps[0], subscriber.clone(), &[]).await.unwrap();
    let newer = subscribe(&nodes.apps[1], subscriber, &[]).await.unwrap();
    const DECISIONS: usize = 900;
    for index in 0..DECISIONS {
        decided(nodes.gateway(), &format!("r-{index:03}")).await;
    }
    while older.deferred_count() < DECISIONS {
        drop(timeout(Duration::from_millis(20), older.next()).await);
    }
    drop(newer);
    let started = tokio::time::Instant::now();
    let mut sent = Vec::new();
    while sent.len() < DECISIONS && started.elapsed() < Duration::from_secs(10) {
        // As a frame of the client does: whatever is under way is dropped.
        if let Ok(item) = timeout(Duration::from_millis(3), older.next()).await {
            sent.push(item.unwrap().delivery.subject.id);
        }
    }
    let expected: Vec<String> = (0..DECISIONS).map(|index| format!("r-{index:03}")).collect();
    assert_eq!(sent, expected, "each once, in order");
}
