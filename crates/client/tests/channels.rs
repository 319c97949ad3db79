//! Live channels: over each transport, on both stores, through a network that cuts, swallows and refuses.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign_client::{
    approver::Approver,
    channel::{
        ApproverEvent, ApproverListener, ChannelError, EnforcerEvent, EnforcerListener, Settings, Transport,
    },
    clock::{Clock as _, SystemClock},
    enforcer::Enforcer,
    profile::Pins,
    reply::{Choice, Words},
    request::{Draft, OpenedRequest, Request},
};
use countersign_core::model::credential::Role;
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    id::RequestId,
};
use support::{Store, World, pair, proxy::Proxy};
use tokio::time::{Instant, sleep, timeout};

fn draft(valid_for: Duration) -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["git","push"]}"#.to_owned(),
        repo_name: "acme/widgets".to_owned(),
        valid_for,
    }
}

fn request(robot: &Enforcer, pins: &Pins, valid_for: Duration) -> Request {
    Request::build(&draft(valid_for), &robot.id, &robot.keys, pins, SystemClock.now()).unwrap()
}

fn approve() -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words::default(),
    }
}

fn only(transport: Transport) -> Settings {
    Settings { transports: vec![transport], poll_every: Duration::from_secs(1), ..Settings::default() }
}

const A_WHILE: Duration = Duration::from_secs(15);

/// The next event that is wanted; others are passed over.
async fn heard<T>(
    listener: &mut ApproverListener<'_>,
    pins: &Pins,
    mut wanted: impl FnMut(ApproverEvent) -> Option<T>,
) -> T {
    let found = async {
        loop {
            if let Some(found) = wanted(listener.next(pins).await.unwrap()) {
                return found;
            }
        }
    };
    timeout(A_WHILE, found).await.expect("it arrives")
}

async fn shown(listener: &mut ApproverListener<'_>, pins: &Pins) -> OpenedRequest {
    heard(listener, pins, |event| match event {
        ApproverEvent::Request(item) => Some(item.opened.unwrap()),
        _ => None,
    })
    .await
}

async fn gone(listener: &mut ApproverListener<'_>, pins: &Pins) -> (RequestId, bool) {
    heard(listener, pins, |event| match event {
        ApproverEvent::Gone { request_id, was_withdrawn } => Some((request_id, was_withdrawn)),
        _ => None,
    })
    .await
}

async fn connected(listener: &mut ApproverListener<'_>, pins: &Pins) -> Transport {
    heard(listener, pins, |event| match event {
        ApproverEvent::Connected { transport } => Some(transport),
        _ => None,
    })
    .await
}

/// The next event of an enforcer that is no news of the connection.
async fn news(listener: &mut EnforcerListener<'_>, pins: &Pins) -> EnforcerEvent {
    let found = async {
        loop {
            match listener.next(pins).await.unwrap() {
                EnforcerEvent::Connected { .. } | EnforcerEvent::Disconnected { .. } => {}
                other => return other,
            }
        }
    };
    timeout(A_WHILE, found).await.expect("it arrives")
}

async fn exchanges_over(transport: Transport, store: Store) {
    let world = World::start_on(store).await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    // One that waits already, and one that comes later.
    let first = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&first).await.unwrap();
    let mut at_ada = ada.listen(only(transport));
    let mut at_robot = robot.listen(vec![first.clone()], only(transport));
    assert_eq!(connected(&mut at_ada, &adas).await, transport);
    for round in 0..3 {
        let asked = if round == 0 {
            first.clone()
        } else {
            let next = request(&robot, &robots, Duration::from_mins(1));
            robot.submit(&next).await.unwrap();
            at_robot.watch(next.clone());
            next
        };
        let opened = shown(&mut at_ada, &adas).await;
        assert_eq!(
            (&opened.request_id, opened.payload.as_str()),
            (&asked.request_id, r#"{"argv":["git","push"]}"#)
        );
        ada.decide(&opened, &approve()).await.unwrap();
        match news(&mut at_robot, &robots).await {
            EnforcerEvent::Decided { request, decision } => {
                assert_eq!((*request, decision.unwrap().outcome), (asked, DecisionOutcome::Approve));
            }
            other => panic!("{other:?}"),
        }
    }
    // What is taken back and what expires is told, however it is learned.
    let taken_back = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&taken_back).await.unwrap();
    at_robot.watch(taken_back.clone());
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, taken_back.request_id);
    robot.withdraw(&taken_back).await.unwrap();
    if transport != Transport::Sse {
        let expected = (taken_back.request_id.clone(), transport == Transport::Websocket);
        loop {
            let told = gone(&mut at_ada, &adas).await;
            if told.0 == taken_back.request_id {
                assert_eq!(told, expected);
                break;
            }
        }
    }
    // Nothing is handed out twice.
    let more = timeout(Duration::from_millis(1_500), async {
        loop {
            if let ApproverEvent::Request(item) = at_ada.next(&adas).await.unwrap() {
                return item;
            }
        }
    });
    assert!(more.await.is_err(), "each request comes once");
}

macro_rules! exchanges {
    ($($name:ident: $transport:ident $store:ident,)+) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            exchanges_over(Transport::$transport, Store::$store).await;
        }
    )+};
}

exchanges! {
    over_a_websocket_on_sqlite: Websocket Sqlite,
    over_a_websocket_on_postgres: Websocket Postgres,
    over_sse_on_sqlite: Sse Sqlite,
    over_sse_on_postgres: Sse Postgres,
    by_polling_on_sqlite: Poll Sqlite,
    by_polling_on_postgres: Poll Postgres,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_device_sees_every_request_and_hears_when_another_has_decided() {
    let world = World::start().await;
    let robot = world.enforcer("robot").await;
    let (phone, laptop) = (world.approver("ada").await, world.approver("ada").await);
    let (robots, of_phone) = pair(&robot, &phone, Pins::default()).await;
    let (robots, of_laptop) = pair(&robot, &laptop, robots).await;
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    let quick = || Settings { list_every: Duration::from_secs(1), ..Settings::default() };
    let mut at_phone = phone.listen(quick());
    let opened = shown(&mut at_phone, &of_phone).await;
    // The phone's acknowledgement is also the laptop's: the gateway does not push the request to it.
    sleep(Duration::from_millis(300)).await;
    let mut at_laptop = laptop.listen(quick());
    assert_eq!(shown(&mut at_laptop, &of_laptop).await.request_id, asked.request_id);
    phone.decide(&opened, &approve()).await.unwrap();
    assert_eq!(gone(&mut at_laptop, &of_laptop).await, (asked.request_id, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_expires_is_told_to_both_and_a_refresh_reaches_the_enforcer() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let asked = request(&robot, &robots, Duration::from_secs(2));
    robot.submit(&asked).await.unwrap();
    let quick = || Settings { list_every: Duration::from_secs(1), ..Settings::default() };
    let (mut at_robot, mut at_ada) = (robot.listen(vec![asked.clone()], quick()), ada.listen(quick()));
    shown(&mut at_ada, &adas).await;
    assert_eq!(gone(&mut at_ada, &adas).await, (asked.request_id.clone(), false));
    match news(&mut at_robot, &robots).await {
        EnforcerEvent::Ended { request, state } => {
            assert_eq!((*request, state.as_deref()), (asked.clone(), Some("expired")));
        }
        other => panic!("{other:?}"),
    }
    ada.refresh(&asked.request_id, Some("I was away")).await.unwrap();
    match news(&mut at_robot, &robots).await {
        EnforcerEvent::Refresh { request_id, reason } => {
            assert_eq!((request_id, reason.as_deref()), (asked.request_id, Some("I was away")));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_is_refused_ends_the_channel() {
    let world = World::start().await;
    let ada = world.approver("ada").await;
    // The credential of somebody else.
    for transport in [Transport::Websocket, Transport::Sse, Transport::Poll] {
        let bob = Approver { http: ada.http.clone(), ..world.approver("bob").await };
        let mut at_bob = bob.listen(only(transport));
        let error = timeout(A_WHILE, async {
            loop {
                if let Err(error) = at_bob.next(&Pins::default()).await {
                    return error;
                }
            }
        });
        let error = error.await.unwrap();
        assert!(matches!(error, ChannelError::Refused(_)), "{error}");
        assert_eq!(at_bob.next(&Pins::default()).await.unwrap_err(), error, "again and again");
    }
}

/// An approver whose calls go through a proxy.
async fn behind(proxy: &Proxy, world: &World, ada: Approver) -> Approver {
    Approver { http: world.http_at(proxy.address, Role::Approver(Some(ada.id.clone()))).await, ..ada }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upgrade_falls_back_and_goes_up_again_when_it_is_allowed() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    proxy.refuse_upgrades(true);
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let ada = behind(&proxy, &world, ada).await;
    let mut at_ada = ada.listen(Settings { up_again: Duration::from_secs(2), ..Settings::default() });
    assert_eq!(connected(&mut at_ada, &adas).await, Transport::Sse);
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, asked.request_id);
    // It tries again, in vain, and less and less often.
    sleep(Duration::from_secs(3)).await;
    assert!((2..=3).contains(&proxy.upgrades()), "{}", proxy.upgrades());
    proxy.refuse_upgrades(false);
    assert_eq!(connected(&mut at_ada, &adas).await, Transport::Websocket);
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, asked.request_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_half_open_is_noticed_and_replaced() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let ada = behind(&proxy, &world, ada).await;
    let mut at_ada = ada.listen(Settings { silence: Duration::from_secs(3), ..only(Transport::Websocket) });
    assert_eq!(connected(&mut at_ada, &adas).await, Transport::Websocket);
    // Quiet is not dead: pings are answered.
    let quiet = timeout(Duration::from_secs(4), at_ada.next(&adas));
    assert!(quiet.await.is_err());
    proxy.swallow(true);
    sleep(Duration::from_millis(100)).await;
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    let swallowed_at = Instant::now();
    let reason = heard(&mut at_ada, &adas, |event| match event {
        ApproverEvent::Disconnected { reason } => Some(reason),
        _ => None,
    });
    assert!(reason.await.contains("nothing was heard"));
    assert!(swallowed_at.elapsed() < Duration::from_secs(5), "{:?}", swallowed_at.elapsed());
    proxy.swallow(false);
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, asked.request_id);
}

/// A small generator, so that a failure can be repeated.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// Asks one after the other, each for `valid_for`, and records how often each was approved, and how it ended.
async fn ask_and_execute(
    robot: Enforcer,
    pins: Pins,
    stop: Arc<AtomicBool>,
    executions: Arc<Mutex<BTreeMap<RequestId, usize>>>,
) -> (usize, usize) {
    let valid_for = Duration::from_secs(20);
    let mut listener = robot.listen(Vec::new(), Settings::default());
    let (mut answered, mut failed) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let asked = request(&robot, &pins, valid_for);
        let until = Instant::now() + valid_for + Duration::from_secs(10);
        if robot.submit(&asked).await.is_err() {
            failed += 1;
            continue;
        }
        listener.watch(asked.clone());
        loop {
            let event = tokio::time::timeout_at(until, listener.next(&pins)).await;
            match event.expect("an answer or a clean error before the deadline").unwrap() {
                EnforcerEvent::Decided { request, decision } => {
                    assert_eq!(decision.unwrap().outcome, DecisionOutcome::Approve);
                    *executions.lock().unwrap().entry(request.request_id.clone()).or_default() += 1;
                    if request.request_id == asked.request_id {
                        answered += 1;
                        break;
                    }
                }
                EnforcerEvent::Ended { request, .. } if request.request_id == asked.request_id => {
                    failed += 1;
                    break;
                }
                _ => {}
            }
        }
    }
    // What was left over must not arrive a second time.
    while let Ok(event) = timeout(Duration::from_secs(1), listener.next(&pins)).await {
        if let EnforcerEvent::Decided { request, .. } = event.unwrap() {
            *executions.lock().unwrap().entry(request.request_id).or_default() += 1;
        }
    }
    (answered, failed)
}

async fn approve_everything(ada: Approver, pins: Pins, stop: Arc<AtomicBool>) {
    let mut listener = ada.listen(Settings::default());
    while !stop.load(Ordering::SeqCst) {
        let Ok(event) = timeout(Duration::from_millis(200), listener.next(&pins)).await else { continue };
        if let ApproverEvent::Request(item) = event.unwrap() {
            // It may have expired meanwhile.
            let _decided = ada.decide(&item.opened.unwrap(), &approve()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_at_random_cost_time_and_nothing_else() {
    const PAIRS: usize = 6;
    let cuts =
        std::env::var("COUNTERSIGN_NETWORK_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(200);
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    let (stop, executions) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(BTreeMap::new())));
    let (mut robots, mut people) = (Vec::new(), Vec::new());
    for number in 0..PAIRS {
        let robot = world.enforcer(&format!("robot-{number}")).await;
        let ada = world.approver(&format!("ada-{number}")).await;
        let (of_robot, of_ada) = pair(&robot, &ada, Pins::default()).await;
        let ada = behind(&proxy, &world, ada).await;
        let http = world.http_at(proxy.address, Role::Enforcer(Some(robot.id.clone()))).await;
        let robot = Enforcer { http, ..robot };
        robots.push(tokio::spawn(ask_and_execute(robot, of_robot, stop.clone(), executions.clone())));
        people.push(tokio::spawn(approve_everything(ada, of_ada, stop.clone())));
    }
    let (mut rng, mut done) = (Rng(0xcafe), 0);
    while done < cuts {
        sleep(Duration::from_millis(20 + u64::try_from(rng.below(120)).unwrap())).await;
        done += usize::from(proxy.cut(rng.below(1_000)));
    }
    // The network is whole again, so what is under way must end.
    let (mut answered, mut failed) = (0, 0);
    stop.store(true, Ordering::SeqCst);
    for robot in robots {
        let (of_it, not) = timeout(Duration::from_secs(40), robot).await.expect("no hang").unwrap();
        assert!(of_it > 0, "each pair has got something done");
        (answered, failed) = (answered + of_it, failed + not);
    }
    for person in people {
        timeout(Duration::from_secs(40), person).await.expect("no hang").unwrap();
    }
    let executions = executions.lock().unwrap();
    println!("{cuts} cuts, {answered} answered, {failed} clean errors");
    assert!(executions.values().all(|times| *times == 1), "{executions:?}");
    assert!(answered > failed, "{answered} answered, {failed} failed");
}
