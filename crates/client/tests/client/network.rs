//! Channels through a network that cuts, swallows and refuses.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::{
    World,
    listen::{approve, behind, connected, heard, only, request, shown},
    pair,
    proxy::Proxy,
};
use countersign_client::{
    approver::Approver,
    channel::{ApproverEvent, EnforcerEvent, Settings, Transport},
    enforcer::Enforcer,
    profile::Pins,
};
use countersign_core::model::credential::Role;
use countersign_wire::{decision::DecisionOutcome, id::RequestId};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upgrade_falls_back_and_goes_up_again_when_it_is_allowed() {
    let world = World::start().await;
    let proxy = Proxy::start(world.address).await;
    proxy.refuse_upgrades(true);
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let ada = behind(&proxy, &world, ada).await;
    let began = Instant::now();
    let mut at_ada = ada.listen(Settings { up_again: Duration::from_secs(2), ..Settings::default() });
    assert_eq!(connected(&mut at_ada, &adas).await, Transport::Sse);
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, asked.request_id);
    // It tries again, in vain, and less and less often.
    while proxy.upgrades() < 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not try again");
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_secs(1)).await;
    let (tried, seconds) = (proxy.upgrades(), began.elapsed().as_secs());
    assert!(tried <= 1 + usize::try_from(seconds / 2).unwrap(), "{tried} times in {seconds} s");
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
    let mut at_ada = ada.listen(Settings { silence: Duration::from_secs(10), ..only(Transport::Websocket) });
    assert_eq!(connected(&mut at_ada, &adas).await, Transport::Websocket);
    // Quiet is not dead: pings are answered.
    let quiet = timeout(Duration::from_secs(12), at_ada.next(&adas));
    assert!(quiet.await.is_err());
    proxy.swallow(true);
    sleep(Duration::from_millis(500)).await;
    let asked = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    let swallowed_at = Instant::now();
    let reason = heard(&mut at_ada, &adas, |event| match event {
        ApproverEvent::Disconnected { reason } => Some(reason),
        _ => None,
    });
    assert!(reason.await.to_string().contains("nothing was heard"));
    assert!(swallowed_at.elapsed() < Duration::from_secs(30), "{:?}", swallowed_at.elapsed());
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
        let until = Instant::now() + valid_for + Duration::from_secs(11);
        if robot.submit(&asked).await.is_err() {
            failed += 1;
            continue;
        }
        listener.watch(asked.clone());
        loop {
            let event = tokio::time::timeout_at(until, listener.next(&pins)).await;
            match event.expect("an answer or a clean error before the deadline").unwrap() {
                EnforcerEvent::Decided { request, taken } => {
                    assert_eq!(taken.unwrap().decision.outcome, DecisionOutcome::Approve);
                    *executions.lock().entry(request.request_id.clone()).or_default() += 1;
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
            *executions.lock().entry(request.request_id).or_default() += 1;
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
    let [stop_asking, stop_answering] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let executions = Arc::new(Mutex::new(BTreeMap::new()));
    let (mut robots, mut people) = (Vec::new(), Vec::new());
    for number in 0..PAIRS {
        let robot = world.enforcer(&format!("robot-{number}")).await;
        let ada = world.approver(&format!("ada-{number}")).await;
        let (of_robot, of_ada) = pair(&robot, &ada, Pins::default()).await;
        let ada = behind(&proxy, &world, ada).await;
        let http = world.http_at(proxy.address, Role::Enforcer(Some(robot.id.clone()))).await;
        let robot = Enforcer { http, ..robot };
        robots.push(tokio::spawn(ask_and_execute(robot, of_robot, stop_asking.clone(), executions.clone())));
        people.push(tokio::spawn(approve_everything(ada, of_ada, stop_answering.clone())));
    }
    let (mut rng, mut done) = (Rng(0xcafe), 0);
    while done < cuts {
        sleep(Duration::from_millis(20 + u64::try_from(rng.below(120)).unwrap())).await;
        done += usize::from(proxy.cut(rng.below(1_000)));
    }
    // The network is whole again, so what is under way must end.
    let (mut answered, mut failed) = (0, 0);
    stop_asking.store(true, Ordering::SeqCst);
    for robot in robots {
        let (of_it, not) = timeout(Duration::from_mins(1), robot).await.expect("no hang").unwrap();
        assert!(of_it > 0, "each pair has got something done");
        (answered, failed) = (answered + of_it, failed + not);
    }
    stop_answering.store(true, Ordering::SeqCst);
    for person in people {
        timeout(Duration::from_mins(1), person).await.expect("no hang").unwrap();
    }
    let executions = executions.lock();
    println!("{cuts} cuts, {answered} answered, {failed} clean errors");
    assert!(executions.values().all(|times| *times == 1), "{executions:?}");
    assert!(answered > failed, "{answered} answered, {failed} failed");
}
