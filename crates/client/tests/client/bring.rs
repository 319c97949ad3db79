//! A device that is connected while requests wait gets them: they are taken back and asked anew, and whoever dies in between,
//! each is acted on once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::{
    World,
    evil::{Evil, Given},
    listen::{approve, draft},
    pair,
};
use countersign_client::{
    again::MAX_BROUGHT,
    approver::Approver,
    audience::Audience,
    authorize::Answer,
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer},
    journal::FileJournal,
    profile::Pins,
    reply::decide,
    request::{Draft, OpenedRequest, Request},
    taken::Taken,
};
use countersign_core::model::credential::Role;
use countersign_wire::{exchange::ExchangeState, id::RequestId};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_mins(5);

/// A robot behind a gateway that can lie, ada's laptop, and her phone, which is connected later.
struct Scene {
    world: World,
    evil: Evil,
    robot: Enforcer,
    laptop: Approver,
    phone: Approver,
    /// Whom the robot has pinned before the phone was connected, and after.
    before: Pins,
    after: Pins,
    laptops: Pins,
    phones: Pins,
}

impl Scene {
    async fn start() -> Self {
        let world = World::start().await;
        let evil = Evil::start(world.address).await;
        let journal = Arc::new(FileJournal::new(world.data.path().join("journal")));
        let robot = world.enforcer_with("robot", journal).await;
        let http = world.http_at(evil.address, Role::Enforcer(Some(robot.id.clone()))).await;
        let robot = Enforcer { http, ..robot };
        let (laptop, phone) = (world.approver("ada").await, world.approver("ada").await);
        let (before, laptops) = pair(&robot, &laptop, Pins::default()).await;
        let (after, phones) = pair(&robot, &phone, before.clone()).await;
        Self { world, evil, robot, laptop, phone, before, after, laptops, phones }
    }

    /// A request of the time before the phone was connected.
    async fn asked(&self) -> Request {
        self.robot.ask_detached(&draft(LONG), &self.before).await.unwrap()
    }

    async fn brought(&self, old: &Request) -> Request {
        self.robot.bring(&old.request_id, &self.after).await.unwrap().unwrap()
    }

    /// What the laptop can answer.
    async fn on_laptop(&self) -> Vec<OpenedRequest> {
        let items = self.laptop.inbox(&self.laptops).await.unwrap();
        items.into_iter().map(|item| item.opened.unwrap()).collect()
    }

    /// What the phone can answer.
    async fn on_phone(&self) -> Vec<OpenedRequest> {
        let items = self.phone.inbox(&self.phones).await.unwrap();
        items.into_iter().filter_map(|item| item.opened.ok()).collect()
    }

    /// The answer to a request as a process gets it that waits since before the phone was connected.
    async fn waited(&self, request_id: &RequestId) -> Result<Taken, AskError> {
        let (mut id, mut pins) = (request_id.clone(), &self.before);
        loop {
            match self.robot.pick_up_or_keep(&id, pins).await {
                Ok(Answer::Approved(taken) | Answer::Rejected(taken)) => return Ok(taken),
                Err(AskError::Replaced) => {
                    pins = &self.after;
                    id = self.robot.follow(&id, pins).await?.request_id;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Approves on the phone whatever it can open first.
    async fn phone_approves(&self) -> RequestId {
        let approved = async {
            loop {
                if let [shown, ..] = &self.on_phone().await[..] {
                    self.phone.decide(shown, &approve()).await.unwrap();
                    return shown.request_id.clone();
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(30), approved).await.unwrap()
    }

    /// Whoever waits for the old request gets the answer of the phone to the one that has taken its place.
    async fn waits_and_gets_answer_of_phone(&self, old: &Request) {
        let (taken, approved) = tokio::join!(self.waited(&old.request_id), self.phone_approves());
        let taken = taken.unwrap();
        assert_eq!((&taken.request_id, taken.decision.device), (&approved, self.phone.keys.fingerprint()));
        assert_ne!(taken.request_id, old.request_id);
        assert!(self.robot.open_requests().await.unwrap().is_empty());
    }

    /// Begins to bring a request, and dies as soon as something is so.
    async fn dies(&self, old: &Request, is_so: impl AsyncFn() -> bool) {
        let far_enough = async {
            while !is_so().await {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            brought = self.robot.bring(&old.request_id, &self.after) => panic!("too early: {brought:?}"),
            far = timeout(Duration::from_secs(30), far_enough) => far.unwrap(),
        }
    }

    /// Dies before the gateway has taken the request back.
    async fn dies_before_it_is_withdrawn(&self, old: &Request) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        self.evil.forth(move |call| {
            let is_withdrawal = call.path.ends_with("/withdraw");
            counted.fetch_add(usize::from(is_withdrawal), Ordering::SeqCst);
            is_withdrawal.then(|| Given::invented(503, ""))
        });
        self.dies(old, async || calls.load(Ordering::SeqCst) > 0).await;
        self.evil.honest();
        assert_eq!(self.world.state(&old.request_id).await, ExchangeState::PendingApproval);
    }

    /// Dies after the gateway has taken the request back, and before that was recorded.
    async fn dies_before_it_is_recorded(&self, old: &Request) {
        let id = old.request_id.as_str().to_owned();
        self.evil.back(move |call, given| (!call.path.contains(&id)).then_some(given));
        self.dies(old, async || self.world.state(&old.request_id).await == ExchangeState::Withdrawn).await;
        self.evil.honest();
        assert_eq!(self.robot.newest(&old.request_id).await.unwrap(), old.request_id);
    }

    /// Dies after the new request was recorded, and before it was submitted.
    async fn dies_before_it_is_submitted(&self, old: &Request) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        self.evil.forth(move |call| {
            let is_submission = call.path == "/v1/artifacts";
            counted.fetch_add(usize::from(is_submission), Ordering::SeqCst);
            is_submission.then(|| Given::invented(503, ""))
        });
        // Once it was tried, nothing is on its way that an honest gateway would take.
        self.dies(old, async || calls.load(Ordering::SeqCst) > 0).await;
        self.evil.honest();
        assert_ne!(self.robot.newest(&old.request_id).await.unwrap(), old.request_id);
        assert!(self.on_phone().await.is_empty() && self.on_laptop().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_brought_to_a_new_device_for_the_rest_of_its_time() {
    let scene = Scene::start().await;
    let Scene { robot, after, .. } = &scene;
    let old = scene.asked().await;
    assert!(scene.on_phone().await.is_empty(), "it was not sealed to the phone");
    assert_eq!(robot.to_bring(&scene.before).await.unwrap(), [], "who was there can open it");
    assert_eq!(robot.to_bring(after).await.unwrap(), std::slice::from_ref(&old.request_id));
    let new = scene.brought(&old).await;
    assert_eq!((new.expires_at, new.request_id == old.request_id), (old.expires_at, false));
    for shown in [scene.on_laptop().await, scene.on_phone().await] {
        let [shown] = &shown[..] else { panic!("it is listed once") };
        assert_eq!((&shown.request_id, &shown.supersedes), (&new.request_id, &Some(old.request_id.clone())));
        assert_eq!((&shown.payload, shown.expires_at), (&draft(LONG).payload, old.expires_at));
    }
    let envelope: Value = serde_json::from_str(&new.envelope).unwrap();
    assert_eq!(envelope["trace"]["supersedes"], old.request_id.as_str(), "the gateway is told too");
    assert!(robot.bring(&old.request_id, after).await.unwrap().is_none(), "it is brought once");
    assert!(robot.bring(&new.request_id, after).await.unwrap().is_none(), "every device has it");
    scene.waits_and_gets_answer_of_phone(&old).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_meanwhile_goes_on_with_the_new_request() {
    let scene = Scene::start().await;
    let old = scene.asked().await;
    let (taken, ()) = tokio::join!(scene.waited(&old.request_id), async {
        sleep(Duration::from_millis(300)).await;
        scene.brought(&old).await;
        scene.phone_approves().await;
    });
    assert_eq!(taken.unwrap().decision.device, scene.phone.keys.fingerprint());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_before_counts() {
    let scene = Scene::start().await;
    let old = scene.asked().await;
    scene.laptop.decide(&scene.on_laptop().await[0], &approve()).await.unwrap();
    assert!(scene.robot.bring(&old.request_id, &scene.after).await.unwrap().is_none());
    assert!(scene.on_phone().await.is_empty());
    assert_eq!(scene.waited(&old.request_id).await.unwrap().request_id, old.request_id);
}

/// Even if a gateway lies about which one was taken back.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_the_old_request_is_not_acted_on_once_it_was_replaced() {
    let scene = Scene::start().await;
    let Scene { robot, laptop, .. } = &scene;
    let old = scene.asked().await;
    let shown = scene.on_laptop().await.remove(0);
    scene.brought(&old).await;
    laptop.decide(&shown, &approve()).await.unwrap_err();
    // The gateway keeps an answer that it has refused, and hands it over.
    let late = decide(&shown, &approve(), &laptop.id, &laptop.keys, SystemClock.now()).unwrap();
    let envelope = json!({
        "msgType": "decision.deliver", "requestId": old.request_id, "createdAt": SystemClock.now(),
        "sender": { "approverId": "ada" }, "body": serde_json::from_str::<Value>(&late).unwrap(),
    });
    let wait = format!("/v1/exchanges/{}/wait", old.request_id);
    scene
        .evil
        .forth(move |call| call.path.starts_with(&wait).then(|| Given::invented(200, envelope.to_string())));
    let taken = robot.wait(&old, &scene.after).await;
    assert!(matches!(taken, Err(AskError::Replaced)), "{taken:?}");
    scene.waits_and_gets_answer_of_phone(&old).await;
    assert_eq!(robot.unfinished().await.unwrap().len(), 1, "there is one use");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_before_the_withdrawal_leaves_a_request_that_is_answered() {
    let scene = Scene::start().await;
    let old = scene.asked().await;
    scene.dies_before_it_is_withdrawn(&old).await;
    scene.laptop.decide(&scene.on_laptop().await[0], &approve()).await.unwrap();
    assert_eq!(scene.waited(&old.request_id).await.unwrap().request_id, old.request_id);
    let second = scene.asked().await;
    scene.dies_before_it_is_withdrawn(&second).await;
    scene.brought(&second).await;
    scene.waits_and_gets_answer_of_phone(&second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_after_the_withdrawal_leaves_a_request_that_others_complete() {
    let scene = Scene::start().await;
    let by_who_waits = scene.asked().await;
    scene.dies_before_it_is_recorded(&by_who_waits).await;
    scene.waits_and_gets_answer_of_phone(&by_who_waits).await;
    let by_the_next = scene.asked().await;
    scene.dies_before_it_is_recorded(&by_the_next).await;
    scene.brought(&by_the_next).await;
    scene.waits_and_gets_answer_of_phone(&by_the_next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_dies_before_the_submission_leaves_a_request_that_others_submit() {
    let scene = Scene::start().await;
    let by_who_waits = scene.asked().await;
    scene.dies_before_it_is_submitted(&by_who_waits).await;
    scene.waits_and_gets_answer_of_phone(&by_who_waits).await;
    let by_the_next = scene.asked().await;
    scene.dies_before_it_is_submitted(&by_the_next).await;
    let new = scene.robot.newest(&by_the_next.request_id).await.unwrap();
    assert_eq!(scene.robot.to_bring(&scene.after).await.unwrap(), std::slice::from_ref(&new));
    assert!(scene.robot.bring(&new, &scene.after).await.unwrap().is_none(), "it is the same request");
    assert_eq!(scene.on_phone().await[0].request_id, new);
    scene.waits_and_gets_answer_of_phone(&by_the_next).await;
}

/// What is being moved is only asked anew if this machine has taken it back.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_cancels_stays_cancelled() {
    let scene = Scene::start().await;
    let old = scene.asked().await;
    scene.dies_before_it_is_withdrawn(&old).await;
    scene.world.cancel(&old.request_id).await;
    let taken = scene.waited(&old.request_id).await;
    assert!(matches!(taken, Err(AskError::TakenBack)), "{taken:?}");
    assert!(scene.robot.open_requests().await.unwrap().is_empty());
    assert!(scene.on_laptop().await.is_empty() && scene.on_phone().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_request_back_takes_back_what_has_replaced_it() {
    let scene = Scene::start().await;
    let (old, robot) = (scene.asked().await, &scene.robot);
    scene.brought(&old).await;
    robot.withdraw(&old).await.unwrap();
    assert!(scene.on_phone().await.is_empty() && robot.open_requests().await.unwrap().is_empty());
    // Before the gateway knows of it: it is recorded, and whoever submits it takes it back.
    let old = scene.asked().await;
    scene.evil.forth(|call| (call.path == "/v1/artifacts").then(|| Given::invented(503, "")));
    let (brought, withdrawn) = tokio::join!(robot.bring(&old.request_id, &scene.after), async {
        while robot.newest(&old.request_id).await.unwrap() == old.request_id {
            sleep(Duration::from_millis(5)).await;
        }
        let withdrawn = robot.withdraw(&old).await;
        scene.evil.honest();
        withdrawn
    });
    withdrawn.unwrap();
    assert!(brought.unwrap().is_none());
    let newest = robot.newest(&old.request_id).await.unwrap();
    assert_eq!(scene.world.state(&newest).await, ExchangeState::Withdrawn);
    assert!(scene.on_phone().await.is_empty() && robot.open_requests().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_what_was_not_for_them() {
    let scene = Scene::start().await;
    let Scene { robot, before, after, .. } = &scene;
    let bob = scene.world.approver("bob").await;
    let (with_bob, bobs) = pair(robot, &bob, before.clone()).await;
    let for_ada = Draft { to: Audience::only(["ada"]), ..draft(LONG) };
    let old = robot.ask_detached(&for_ada, before).await.unwrap();
    assert_eq!(robot.to_bring(&with_bob).await.unwrap(), []);
    assert!(robot.bring(&old.request_id, &with_bob).await.unwrap().is_none());
    // A device that was revoked in the meantime.
    let mut revoked = after.clone();
    revoked.revoke(scene.phone.keys.fingerprint(), SystemClock.now()).unwrap();
    assert_eq!(robot.to_bring(&revoked).await.unwrap(), []);
    assert!(robot.bring(&old.request_id, &revoked).await.unwrap().is_none());
    assert_eq!(scene.on_laptop().await[0].request_id, old.request_id, "it is where it was");
    let both = robot.bring(&old.request_id, after).await.unwrap().unwrap();
    let sealed: Value = serde_json::from_str(&both.envelope).unwrap();
    assert_eq!(sealed["body"]["ciphertext"]["recipients"].as_array().unwrap().len(), 2);
    assert!(bob.inbox(&bobs).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_or_is_about_to_is_left_alone() {
    let scene = Scene::start().await;
    let Scene { robot, before, after, .. } = &scene;
    robot.ask_detached(&draft(Duration::from_secs(4)), before).await.unwrap();
    let given_up = scene.asked().await;
    robot.abandon(&given_up.request_id).await.unwrap();
    let taken_back = scene.asked().await;
    robot.withdraw(&taken_back).await.unwrap();
    assert_eq!(robot.to_bring(after).await.unwrap(), []);
    for request in [&given_up, &taken_back] {
        assert!(robot.bring(&request.request_id, after).await.unwrap().is_none());
    }
    assert!(scene.on_phone().await.is_empty());
}

/// What was brought and has expired is asked again for as long as at first, and by its first id.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_brought_is_asked_again_for_its_whole_time() {
    let scene = Scene::start().await;
    let (robot, whole) = (&scene.robot, Duration::from_secs(9));
    let old = robot.ask_detached(&draft(whole), &scene.before).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    scene.brought(&old).await;
    while SystemClock.now() <= old.expires_at {
        sleep(Duration::from_millis(50)).await;
    }
    let again = robot.ask_again(&old.request_id, &scene.after).await.unwrap();
    let left = again.expires_at.since(SystemClock.now());
    assert!(left > Duration::from_secs(7) && left <= whole, "{left:?}");
    assert_eq!(robot.newest(&old.request_id).await.unwrap(), again.request_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_brought_ten_times_at_most() {
    let scene = Scene::start().await;
    let (first, mut pins) = (scene.asked().await, scene.before.clone());
    for round in 0..=MAX_BROUGHT {
        let device = scene.world.approver("ada").await;
        pins = pair(&scene.robot, &device, pins).await.0;
        let newest = scene.robot.newest(&first.request_id).await.unwrap();
        let brought = scene.robot.bring(&newest, &pins).await.unwrap();
        assert_eq!(brought.is_some(), round < MAX_BROUGHT, "{round}");
    }
    let newest = scene.robot.newest(&first.request_id).await.unwrap();
    assert_eq!(scene.on_laptop().await[0].request_id, newest, "who was there can still answer");
}

/// An answer, a new device, somebody who waits and somebody else who brings the same: whatever comes first, it is done once.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_and_a_new_device_at_the_same_time_lead_to_one_use() {
    let scene = Scene::start().await;
    let (mut to_old, mut to_new) = (0, 0);
    for round in 0..10_u64 {
        let old = scene.asked().await;
        let shown = scene.on_laptop().await.remove(0);
        let bring = || scene.robot.bring(&old.request_id, &scene.after);
        let (taken, (), ..) = tokio::join!(
            scene.waited(&old.request_id),
            async {
                sleep(Duration::from_micros(round % 6 * 1_500)).await;
                let is_first = scene.laptop.decide(&shown, &approve()).await.is_ok();
                if !is_first {
                    scene.phone_approves().await;
                }
            },
            bring(),
            bring(),
        );
        let taken = taken.unwrap();
        let is_old = taken.request_id == old.request_id;
        (to_old, to_new) = (to_old + u32::from(is_old), to_new + u32::from(!is_old));
        let uses = scene.robot.unfinished().await.unwrap();
        assert_eq!(uses.len(), usize::try_from(round).unwrap() + 1, "one use for each round");
        assert!(scene.robot.open_requests().await.unwrap().is_empty());
        assert!(scene.on_laptop().await.is_empty() && scene.on_phone().await.is_empty());
    }
    println!("the answer came first {to_old} times, the new device {to_new} times");
}
