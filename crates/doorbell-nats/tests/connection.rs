//! How NATS is reached: TLS, credentials, and what happens when it goes away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, Announcer, Doorbell as _, Receiver, Ring},
    store::{Key, Kind},
};
use countersign_doorbell_nats::{
    NatsDoorbell, OpenError, Options, counters::Dropped, options::ClientCertificate,
};
use countersign_testkit::{
    nats::{Certificates, Nats, NatsOptions},
    random::TestRandom,
};
use countersign_wire::mac::MacKey;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

#[derive(Default)]
struct Recorder(Mutex<Vec<(Ring, u64)>>);

impl Receiver for Recorder {
    fn receive(&self, announcement: Announcement) {
        self.0.lock().extend(announcement.rings);
    }
}

struct Node {
    doorbell: NatsDoorbell,
    recorder: Arc<Recorder>,
    announcer: Box<dyn Announcer>,
}

fn open(options: Options) -> NatsDoorbell {
    NatsDoorbell::open(options, MacKey::new([7; 32]), Arc::new(TestRandom)).unwrap()
}

impl Node {
    fn attach(name: &str, options: Options) -> Self {
        Self::attach_to(name, open(options))
    }

    fn attach_to(name: &str, doorbell: NatsDoorbell) -> Self {
        let recorder = Arc::new(Recorder::default());
        let announcer = doorbell.attach(&NodeId(name.to_owned()), Arc::clone(&recorder) as Arc<dyn Receiver>);
        Self { doorbell, recorder, announcer }
    }

    fn announce(&self, name: &str) {
        let rings = vec![(ring(name), 1)];
        self.announcer.announce(Announcement { timeline: 1, rings, hand_overs: Vec::new() });
    }

    fn has(&self, name: &str) -> bool {
        self.recorder.0.lock().iter().any(|(rung, _)| *rung == ring(name))
    }
}

fn ring(name: &str) -> Ring {
    Ring::Record("acme".parse().unwrap(), Key::new(Kind::Exchange, name))
}

/// Announces until it arrives. Returns whether it did in this time.
async fn flows(from: &Node, to: &Node, name: &str, within: Duration) -> bool {
    let arrived = async {
        while !to.has(name) {
            from.announce(name);
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(within, arrived).await.is_ok()
}

const SOON: Duration = Duration::from_secs(20);

fn with(nats: &Nats, change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::new([nats.url()]);
    change(&mut options);
    options
}

async fn probe(options: Options) -> Result<(), String> {
    NatsDoorbell::probe(options, &TestRandom).await.map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {source:?}")
    })
}

#[tokio::test]
async fn rings_flow_over_tls_and_the_server_and_its_clients_are_checked() {
    let (ours, others) = (Certificates::new(), Certificates::new());
    let nats = Nats::start_with(NatsOptions { tls: Some(&ours), verify_clients: true, authorization: None });
    let client = |from: &Certificates| {
        Some(ClientCertificate { certificate: from.file("client.pem"), key: from.file("client.key") })
    };
    let good = with(&nats, |options| {
        options.root_certificates = Some(ours.file("ca.pem"));
        options.client_certificate = client(&ours);
    });
    probe(good.clone()).await.unwrap();
    let (a, b) = (Node::attach("a", good.clone()), Node::attach("b", good.clone()));
    assert!(flows(&a, &b, "over-tls", SOON).await);

    let bad: [(&str, Options); 4] = [
        ("no certificate", Options { client_certificate: None, ..good.clone() }),
        ("another authority's certificate", Options { client_certificate: client(&others), ..good.clone() }),
        (
            "a server of another authority",
            Options { root_certificates: Some(others.file("ca.pem")), ..good.clone() },
        ),
        ("another name", Options { urls: vec![format!("nats://127.0.0.1:{}", nats.port())], ..good.clone() }),
    ];
    for (what, options) in bad {
        assert!(probe(options.clone()).await.is_err(), "{what}");
        let c = Node::attach("c", options);
        assert!(!flows(&a, &c, "to-c", Duration::from_millis(300)).await, "{what}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_used_where_tls_is_required() {
    let (certificates, nats) = (Certificates::new(), Nats::start());
    probe(with(&nats, |_| {})).await.unwrap();
    let required = with(&nats, |options| options.root_certificates = Some(certificates.file("ca.pem")));
    assert!(probe(required).await.is_err());
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    file
}

#[tokio::test]
async fn a_user_a_token_and_what_the_user_may_do() {
    let folder = tempfile::tempdir().unwrap();
    let users = "users = [ { user: ada, password: \"pass word\" }, \
                 { user: reader, password: r, permissions: { publish: \"other.>\", subscribe: \">\" } } ]";
    let nats = Nats::start_with(NatsOptions { authorization: Some(users), ..NatsOptions::default() });
    let as_user =
        |text: &str, name: &str| with(&nats, |options| options.credentials = Some(file(&folder, name, text)));
    let good = as_user("ada\npass word\n", "good");
    probe(good.clone()).await.unwrap();
    let (a, b) = (Node::attach("a", good.clone()), Node::attach("b", good));
    assert!(flows(&a, &b, "with-password", SOON).await);
    for (what, options) in [
        ("none", with(&nats, |_| {})),
        ("wrong", as_user("ada\nhunter2\n", "wrong")),
        ("token", as_user("t\n", "token")),
    ] {
        let said = probe(options).await.unwrap_err();
        assert!(!said.contains("hunter2") && !said.contains("pass word"), "{what}: {said}");
    }
    let said = probe(as_user("reader\nr\n", "reader")).await.unwrap_err();
    assert!(said.contains("countersign.main.>") && said.contains("ermission"), "{said}");

    let with_token =
        Nats::start_with(NatsOptions { authorization: Some("token: secret"), ..NatsOptions::default() });
    let as_token =
        |text: &str| with(&with_token, |options| options.credentials = Some(file(&folder, text, text)));
    probe(as_token("secret")).await.unwrap();
    probe(as_token("other")).await.unwrap_err();
}

#[tokio::test]
async fn nats_that_is_away_stops_nothing_and_rings_flow_when_it_is_there() {
    let mut nats = Nats::start();
    nats.stop();
    probe(with(&nats, |_| {})).await.unwrap_err();
    // A node starts all the same, and what it announces is dropped and counted.
    let (a, b) = (Node::attach("a", with(&nats, |_| {})), Node::attach("b", with(&nats, |_| {})));
    assert!(!flows(&a, &b, "nowhere", Duration::from_millis(200)).await);
    assert!(a.doorbell.counters().dropped(Dropped::Away) > 0);
    nats.start_again();
    assert!(flows(&a, &b, "there", SOON).await);
    assert!(flows(&b, &a, "back", SOON).await);
    assert!(timeout(SOON, b.doorbell.comparison_wanted().notified()).await.is_ok());
}

#[tokio::test]
async fn after_a_restart_of_nats_rings_flow_again_and_a_comparison_is_asked_for() {
    let mut nats = Nats::start();
    let (a, b) = (Node::attach("a", with(&nats, |_| {})), Node::attach("b", with(&nats, |_| {})));
    assert!(flows(&a, &b, "before", SOON).await);
    // What the first contact asked for.
    timeout(SOON, b.doorbell.comparison_wanted().notified()).await.unwrap();
    sleep(Duration::from_millis(1_500)).await;
    drop(timeout(Duration::from_millis(1), b.doorbell.comparison_wanted().notified()).await);
    nats.stop();
    a.announce("meanwhile");
    sleep(Duration::from_millis(100)).await;
    nats.start_again();
    timeout(SOON, b.doorbell.comparison_wanted().notified()).await.unwrap();
    assert!(flows(&a, &b, "after", SOON).await);
    assert!(b.doorbell.counters().reconnects() >= 1);
    assert!(!b.has("meanwhile"), "what was dropped is not sent later");
}

#[tokio::test]
async fn batches_that_did_not_arrive_are_counted_and_compared() {
    let nats = Nats::start();
    // The queue of a node that announces faster than it can send is full sometimes.
    let (a, b) = (Node::attach("a", with(&nats, |_| {})), Node::attach("b", with(&nats, |_| {})));
    assert!(flows(&a, &b, "before", SOON).await);
    let before = b.doorbell.counters().comparisons();
    while a.doorbell.counters().dropped(Dropped::QueueFull) == 0 {
        a.announce("flood");
    }
    let noticed = async {
        while b.doorbell.counters().lost() == 0 || b.doorbell.counters().comparisons() == before {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, noticed).await.unwrap();
}

#[tokio::test]
async fn cells_on_one_server_do_not_hear_each_other() {
    let nats = Nats::start();
    let in_cell =
        |name: &str, cell: &str| Node::attach(name, with(&nats, |options| options.cell = cell.to_owned()));
    let (a, b, c) = (in_cell("a", "one"), in_cell("b", "one"), in_cell("c", "two"));
    assert!(flows(&a, &b, "in-one", SOON).await);
    assert!(!c.has("in-one"));
    let refused = NatsDoorbell::open(
        with(&nats, |options| options.cell = "a.b".to_owned()),
        MacKey::new([7; 32]),
        Arc::new(TestRandom),
    );
    assert!(matches!(refused, Err(OpenError::Cell)));
}
