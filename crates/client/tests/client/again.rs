//! What has expired is asked once more when an approver wants it: under a new id, naming the old one, and only so often.

use std::{sync::Arc, time::Duration};

use crate::support::{
    World,
    listen::{A_WHILE, approve, draft, news},
    pair,
};
use countersign_client::{
    again::MAX_AGAIN,
    approver::Approver,
    audience::Audience,
    authorize::Answer,
    channel::{EnforcerEvent, Settings},
    clock::{Clock, SystemClock},
    enforcer::{AskError, Enforcer},
    profile::Pins,
    request::{Draft, OpenedRequest, Request},
};
use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(1);

/// A robot and ada, who are paired.
struct Pair {
    world: World,
    robot: Enforcer,
    ada: Approver,
    robots: Pins,
    adas: Pins,
}

impl Pair {
    async fn start() -> Self {
        let world = World::start().await;
        let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
        let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
        Self { world, robot, ada, robots, adas }
    }

    /// Asks for something that has expired when this returns.
    async fn expired(&self) -> Request {
        let request = self.robot.ask_detached(&draft(SOON), &self.robots).await.unwrap();
        self.expires(&request).await;
        request
    }

    async fn expires(&self, request: &Request) {
        let answer = self.robot.pick_up_or_keep(&request.request_id, &self.robots).await;
        assert!(matches!(answer, Err(AskError::Expired)), "{answer:?}");
        while SystemClock.now() < request.expires_at {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn waiting(&self) -> Vec<OpenedRequest> {
        let items = self.ada.inbox(&self.adas).await.unwrap();
        items.into_iter().map(|item| item.opened.unwrap()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_asked_again_and_answered() {
    let pair = Pair::start().await;
    let Pair { robot, ada, robots, adas, .. } = &pair;
    let old = pair.expired().await;
    let listed = ada.expired(adas).await.unwrap();
    assert_eq!(listed.iter().map(|item| &item.request_id).collect::<Vec<_>>(), [&old.request_id]);
    let ids = [old.request_id.clone()];
    let heard =
        async { timeout(A_WHILE, robot.refreshed(&ids, Settings::default())).await.unwrap().unwrap() };
    let (heard, ()) = tokio::join!(heard, async { ada.refresh(&old.request_id, None).await.unwrap() });
    assert_eq!(heard, old.request_id);
    let new = robot.ask_again(&heard, robots).await.unwrap();
    let [shown] = &pair.waiting().await[..] else { panic!("one waits") };
    assert_eq!((&shown.request_id, &shown.supersedes), (&new.request_id, &Some(old.request_id.clone())));
    assert_eq!(shown.payload, draft(SOON).payload);
    assert_ne!((new.request_id.clone(), new.artifact_hash), (old.request_id.clone(), old.artifact_hash));
    let envelope: Value = serde_json::from_str(&new.envelope).unwrap();
    assert_eq!(envelope["trace"]["supersedes"], old.request_id.as_str(), "the gateway is told too");
    assert_eq!(
        robot.newest(&old.request_id).await.unwrap(),
        new.request_id,
        "whoever has the old id finds it"
    );
    let gone = robot.pick_up_or_keep(&old.request_id, robots).await;
    assert!(matches!(gone, Err(AskError::Replaced)), "{gone:?}");
    assert_eq!(robot.follow(&old.request_id, robots).await.unwrap(), new);
    ada.decide(shown, &approve()).await.unwrap();
    let answer = robot.pick_up_or_keep(&new.request_id, robots).await.unwrap();
    let Answer::Approved(taken) = answer else { panic!("it was approved") };
    assert_eq!(taken.request_id, new.request_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_is_left_for_whoever_waits_and_is_gone_once_it_was_asked_again() {
    let pair = Pair::start().await;
    let Pair { robot, ada, robots, .. } = &pair;
    let old = pair.expired().await;
    // A process that listens for other things hears of it, and does not take it away.
    let mut other = robot.listen(Vec::new(), Settings::default());
    ada.refresh(&old.request_id, None).await.unwrap();
    let heard = news(&mut other, robots).await;
    assert!(matches!(&heard, EnforcerEvent::Refresh { request_id, .. } if *request_id == old.request_id));
    drop(other);
    let ids = [old.request_id.clone()];
    let heard = timeout(A_WHILE, robot.refreshed(&ids, Settings::default())).await.unwrap().unwrap();
    robot.ask_again(&heard, robots).await.unwrap();
    let again = timeout(Duration::from_secs(2), robot.refreshed(&ids, Settings::default())).await;
    assert!(again.is_err(), "it was acknowledged: {again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_asks_again_and_the_other_waits_for_the_same() {
    let pair = Pair::start().await;
    let old = pair.expired().await;
    let ask = || pair.robot.ask_again(&old.request_id, &pair.robots);
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!(one.unwrap().request_id, two.unwrap().request_id);
    assert_eq!(pair.waiting().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_answered_was_answered_or_was_given_up_is_not_asked_again() {
    let pair = Pair::start().await;
    let Pair { robot, ada, robots, .. } = &pair;
    let waits = robot.ask_detached(&draft(Duration::from_secs(4)), robots).await.unwrap();
    let asked = robot.ask_again(&waits.request_id, robots).await;
    assert!(matches!(asked, Err(AskError::StillOpen)), "{asked:?}");
    // Somebody answers, and nobody has picked it up when its time is over.
    ada.decide(&pair.waiting().await[0], &approve()).await.unwrap();
    while SystemClock.now() < waits.expires_at {
        sleep(Duration::from_millis(50)).await;
    }
    let asked = robot.ask_again(&waits.request_id, robots).await;
    assert!(matches!(asked, Err(AskError::StillOpen)), "the answer is not thrown away: {asked:?}");
    let answer = robot.pick_up_or_keep(&waits.request_id, robots).await.unwrap();
    assert!(matches!(answer, Answer::Approved(_)));
    let given_up = pair.expired().await;
    robot.abandon(&given_up.request_id).await.unwrap();
    let asked = robot.ask_again(&given_up.request_id, robots).await;
    assert!(matches!(asked, Err(AskError::NotOpen)), "{asked:?}");
    let closed = robot.ask_detached(&draft(SOON), robots).await.unwrap();
    robot.pick_up(&closed.request_id, robots).await.unwrap_err();
    let asked = robot.ask_again(&closed.request_id, robots).await;
    assert!(matches!(asked, Err(AskError::NotOpen)), "who does not keep it does not ask again: {asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_were_asked_are_asked_again() {
    let pair = Pair::start().await;
    let bob = pair.world.approver("bob").await;
    let (robots, bobs) = crate::support::pair(&pair.robot, &bob, pair.robots.clone()).await;
    let draft = Draft { to: Audience::only(["bob"]), ..draft(SOON) };
    let old = pair.robot.ask_detached(&draft, &robots).await.unwrap();
    pair.expires(&old).await;
    let new = pair.robot.ask_again(&old.request_id, &robots).await.unwrap();
    assert!(pair.waiting().await.is_empty(), "ada was not asked before");
    let waiting = bob.inbox(&bobs).await.unwrap();
    assert_eq!(waiting.iter().map(|item| &item.request_id).collect::<Vec<_>>(), [&new.request_id]);
    let sealed: Value = serde_json::from_str(&new.envelope).unwrap();
    assert_eq!(sealed["body"]["ciphertext"]["recipients"].as_array().unwrap().len(), 1);
}

/// A clock that the test moves.
struct Moved(Mutex<Duration>);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(*self.0.lock())
    }
}

/// A gateway could ask again without end, and show people the same for ever.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_asked_again_ten_times_and_not_more_often_than_it_expires() {
    let mut pair = Pair::start().await;
    let clock = Arc::new(Moved(Mutex::default()));
    pair.robot.clock = clock.clone();
    let first = pair.robot.ask_attended(&draft(Duration::from_mins(5)), &pair.robots).await.unwrap();
    let mut ids = vec![first.request_id.clone()];
    for _ in 0..MAX_AGAIN {
        let early = pair.robot.ask_again(ids.last().unwrap(), &pair.robots).await;
        assert!(matches!(early, Err(AskError::StillOpen)), "{early:?}");
        *clock.0.lock() += Duration::from_mins(6);
        // Whichever of them is named, it is asked once.
        let new = pair.robot.ask_again(&first.request_id, &pair.robots).await.unwrap();
        let same = pair.robot.ask_again(&ids[ids.len() / 2], &pair.robots).await.unwrap();
        assert_eq!(new.request_id, same.request_id);
        assert!(!ids.contains(&new.request_id));
        ids.push(new.request_id);
    }
    *clock.0.lock() += Duration::from_mins(6);
    for id in [&ids[0], ids.last().unwrap()] {
        let more = pair.robot.ask_again(id, &pair.robots).await;
        assert!(matches!(more, Err(AskError::AskedTooOften)), "{more:?}");
    }
    assert!(!pair.robot.is_detached(&first.request_id).await.unwrap());
}
