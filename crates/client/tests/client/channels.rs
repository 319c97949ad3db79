//! Live channels, over each transport and on both stores.

use std::{sync::Arc, time::Duration};

use crate::support::{
    Store, World,
    listen::{A_WHILE, approve, connected, gone, news, only, request, shown},
    pair,
};
use countersign_client::{
    approver::Approver,
    channel::{ApproverEvent, Capabilities, ChannelError, EnforcerEvent, Settings, Transport},
    enforcer::Enforcer,
    journal::FileJournal,
    names::Names,
    profile::Pins,
    reply::Rejected,
    request::Request,
};
use countersign_core::model::credential::Role;
use countersign_wire::{Label, decision::DecisionOutcome, exchange::ExchangeState};
use tokio::time::{Instant, sleep, timeout};

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
            EnforcerEvent::Decided { request, taken } => {
                assert_eq!((*request, taken.unwrap().decision.outcome), (asked, DecisionOutcome::Approve));
            }
            other => panic!("{other:?}"),
        }
    }
    // What is taken back is told, however it is learned.
    let taken_back = request(&robot, &robots, Duration::from_mins(1));
    robot.submit(&taken_back).await.unwrap();
    at_robot.watch(taken_back.clone());
    assert_eq!(shown(&mut at_ada, &adas).await.request_id, taken_back.request_id);
    robot.withdraw(&taken_back).await.unwrap();
    if transport != Transport::Sse {
        let state = (transport == Transport::Websocket).then_some(ExchangeState::Withdrawn);
        let expected = (taken_back.request_id.clone(), state);
        loop {
            let ended = gone(&mut at_ada, &adas).await;
            if ended.0 == taken_back.request_id {
                assert_eq!(ended, expected);
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
    assert_eq!(gone(&mut at_laptop, &of_laptop).await.0, asked.request_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_expires_is_told_to_both_and_a_refresh_reaches_the_enforcer() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let asked = request(&robot, &robots, Duration::from_secs(8));
    robot.submit(&asked).await.unwrap();
    let quick = || Settings { list_every: Duration::from_secs(1), ..Settings::default() };
    let (mut at_robot, mut at_ada) = (robot.listen(vec![asked.clone()], quick()), ada.listen(quick()));
    shown(&mut at_ada, &adas).await;
    assert_eq!(gone(&mut at_ada, &adas).await.0, asked.request_id);
    match news(&mut at_robot, &robots).await {
        EnforcerEvent::Ended { request, state } => {
            assert_eq!((*request, state), (asked.clone(), Some(ExchangeState::Expired)));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_on_time_also_when_the_gateway_says_nothing() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, _) = pair(&robot, &ada, Pins::default()).await;
    let asked = request(&robot, &robots, Duration::from_secs(1));
    // Nobody answers at this address.
    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let http = world.http_at(nowhere, Role::Enforcer(Some(robot.id.clone()))).await;
    let robot = Enforcer { http, ..robot };
    let mut at_robot = robot.listen(vec![asked.clone()], Settings::default());
    match news(&mut at_robot, &robots).await {
        EnforcerEvent::Ended { request, state } => assert_eq!((*request, state), (asked, None)),
        other => panic!("{other:?}"),
    }
}

/// One exchange that is decided, and nobody has waited for it.
async fn decided(robot: &Enforcer, ada: &Approver, pins: (&Pins, &Pins)) -> Request {
    let asked = request(robot, pins.0, Duration::from_mins(1));
    robot.submit(&asked).await.unwrap();
    let opened = shown(&mut ada.listen(Settings::default()), pins.1).await;
    ada.decide(&opened, &approve()).await.unwrap();
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_enforcer_says_of_itself_is_in_its_presence() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, _) = pair(&robot, &ada, Pins::default()).await;
    let said = serde_json::json!({ "org.example.checked": { "findings": 0 }, "push": false, "nameless": 1 });
    let names = Names::new("build machine", &"w".repeat(200));
    let capabilities = Capabilities::new(move || said.as_object().unwrap().clone());
    let mut at_robot = robot.listen(Vec::new(), Settings { capabilities, names, ..Settings::default() });
    let until = Instant::now() + A_WHILE;
    let record = loop {
        assert!(Instant::now() < until, "it is recorded");
        // Somebody has to listen for the channel to go on.
        drop(timeout(Duration::from_millis(50), at_robot.next(&robots)).await);
        let record = ada.presence(&robot.id).await.unwrap();
        if record.capabilities.is_some() {
            break record;
        }
    };
    let wanted = serde_json::json!({ "org.example.checked": { "findings": 0 }, "push": true, "poll": true, "sse": true });
    assert_eq!(serde_json::to_value(record.capabilities).unwrap(), wanted);
    let label = |label: Option<Label>| label.unwrap().as_str().to_owned();
    assert_eq!(label(record.enforcer_label), "build machine");
    assert_eq!(label(record.workspace_name), "w".repeat(128));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_left_for_whoever_waits_for_it_and_acknowledged_once_it_is_used() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let mut at_robot = robot.listen(Vec::new(), Settings::default());
    let asked = decided(&robot, &ada, (&robots, &adas)).await;
    // It is pushed here, and nobody here waits for it.
    let nothing = timeout(Duration::from_millis(700), news(&mut at_robot, &robots)).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert_eq!(world.state(&asked.request_id).await, ExchangeState::Decided);
    at_robot.watch(asked.clone());
    let answer = news(&mut at_robot, &robots).await;
    assert!(matches!(&answer, EnforcerEvent::Decided { taken: Ok(_), .. }), "{answer:?}");
    let until = Instant::now() + A_WHILE;
    while world.state(&asked.request_id).await != ExchangeState::Delivered {
        assert!(Instant::now() < until, "it is acknowledged");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_can_not_be_recorded_is_neither_used_nor_acknowledged_and_comes_again() {
    let world = World::start().await;
    let folder = world.data.path().join("not there yet");
    let journal = Arc::new(FileJournal::new(folder.join("journal")));
    let (robot, ada) = (world.enforcer_with("robot", journal).await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let asked = decided(&robot, &ada, (&robots, &adas)).await;
    let quick = Settings { list_every: Duration::from_secs(1), ..Settings::default() };
    let mut at_robot = robot.listen(vec![asked.clone()], quick);
    let failed = news(&mut at_robot, &robots).await;
    assert!(matches!(&failed, EnforcerEvent::Decided { taken: Err(Rejected::Journal(_)), .. }), "{failed:?}");
    sleep(Duration::from_millis(300)).await;
    assert_eq!(world.state(&asked.request_id).await, ExchangeState::Decided);
    std::fs::create_dir(&folder).unwrap();
    loop {
        match news(&mut at_robot, &robots).await {
            EnforcerEvent::Decided { taken: Ok(_), .. } => break,
            EnforcerEvent::Decided { taken: Err(Rejected::Journal(_)), .. } => {}
            other => panic!("{other:?}"),
        }
    }
}
