//! Gateways of the specification that are not ours: what they may leave out, and what is said where that is missing.

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
    pair,
};
use countersign_client::{
    approver::{Approver, DecideError},
    audience::Audience,
    authorize::Answer,
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, AskError, Enforcer, PairError},
    http::CallError,
    names::Names,
    pairing::{PairingError, link::PairingLink},
    profile::Pins,
    prompt::{Prompt, PromptContent, PromptDraft},
    reply::{Choice, Words},
    request::Draft,
    session::{OpenedSnapshot, SnapshotDraft},
};
use countersign_core::model::credential::Role;
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    exchange::ExchangeState,
    id::SessionId,
    prompt::{AckStatus, Target},
    session::SnapshotType,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Two ends, and somebody between both of them and the gateway.
async fn in_between(world: &World) -> (Evil, Enforcer, Approver) {
    let evil = Evil::start(world.address).await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let http = world.http_at(evil.address, Role::Enforcer(Some(robot.id.clone()))).await;
    let robot = Enforcer { http, ..robot };
    let http = world.http_at(evil.address, Role::Approver(Some(ada.id.clone()))).await;
    (evil, robot, Approver { http, ..ada })
}

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["git","push","canary-payload"]}"#.to_owned(),
        repo_name: "canary-repository".to_owned(),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

fn choice(outcome: DecisionOutcome) -> Choice {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    Choice { outcome, scope: Scope::Once, valid_until, words: Words::default() }
}

/// Two ends at a gateway that answers exactly the four members of the specification when a code is resolved.
async fn ends(world: &World) -> (Evil, Enforcer, Approver) {
    let evil = Evil::start(world.address).await;
    let robot = world.enforcer("robot").await;
    let ada = world.approver("ada").await;
    let http = world.http_at(evil.address, Role::Approver(Some(ada.id.clone()))).await;
    let ada = Approver { http, ..ada };
    evil.back(|call, mut given| {
        if call.path.starts_with("/v1/pairing/resolve/") {
            let mut body: Value = serde_json::from_slice(&given.body).unwrap();
            assert!(body.as_object_mut().unwrap().remove("enforcerId").is_some());
            given.body = body.to_string().into_bytes();
        }
        Some(given)
    });
    (evil, robot, ada)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_names_the_machine_where_the_gateway_does_not() {
    let world = World::start().await;
    let (_evil, robot, ada) = ends(&world).await;
    let started = robot.start_pairing("robot").await.unwrap();
    let there = ada.pair_by_link(&started.link).await.unwrap();
    let here = robot.finish_pairing(&started, Answered::Link).await.unwrap();
    assert_eq!(there.pin.party().id(), "robot");
    assert_eq!(there.pin.fingerprint(), robot.keys.fingerprint());
    assert_eq!(here.pin.fingerprint(), ada.keys.fingerprint());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_code_says_that_the_link_is_needed_and_accuses_nobody() {
    let world = World::start().await;
    let (_evil, robot, ada) = ends(&world).await;
    let started = robot.start_pairing("robot").await.unwrap();
    let error = ada.pair_by_code(&started.code, None).await.unwrap_err();
    assert!(matches!(error, PairError::Pairing(PairingError::MachineNotNamed)), "{error:?}");
    let words = error.to_string();
    assert_eq!(
        words,
        "this gateway does not say which machine the code is of; name the machine, or use the link"
    );
    // Nothing was completed. Under another name the digits differ; under its own they are the same.
    let other = ada.pair_by_code(&started.code, Some(&"other".parse().unwrap())).await.unwrap();
    let here = robot.finish_pairing(&started, Answered::TypedCode).await.unwrap();
    assert!(other.digits.is_some() && other.digits != here.digits, "{:?}", here.digits);
    let started = robot.start_pairing("robot").await.unwrap();
    let there = ada.pair_by_code(&started.code, Some(&robot.id)).await.unwrap();
    let here = robot.finish_pairing(&started, Answered::TypedCode).await.unwrap();
    assert_eq!((there.digits, there.pin.party().id()), (here.digits, "robot"));
}

/// A code of six digits, and the status of a completed pairing with what nobody can do without.
#[tokio::test(flavor = "multi_thread")]
async fn a_code_of_another_form_and_a_short_status_are_enough() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let code = Arc::new(Mutex::new(String::new()));
    let given = code.clone();
    evil.forth(move |call| {
        call.path = call.path.replace("/resolve/587929", &format!("/resolve/{}", code.lock()));
        None
    });
    evil.back(move |call, mut answer| {
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if call.path == "/v1/pairing/initiate" {
            *given.lock() =
                std::mem::replace(&mut body["code"], "587929".into()).as_str().unwrap().to_owned();
        } else if call.path.starts_with("/v1/pairing/status/") {
            for name in ["expiresAt", "routingToken"] {
                body.as_object_mut().unwrap().remove(name);
            }
            if body["status"] == "pending" {
                body["status"] = "waiting".into();
            }
        } else if call.path == "/v1/pairing/complete" {
            body = json!({});
        }
        answer.body = body.to_string().into_bytes();
        Some(answer)
    });
    for by_code in [false, true] {
        let started = robot.start_pairing("robot").await.unwrap();
        assert_eq!(started.code.as_str(), "587929");
        let link: PairingLink = started.link.to_string().parse().unwrap();
        let (there, here) = tokio::join!(
            async {
                sleep(Duration::from_millis(700)).await;
                match by_code {
                    true => ada.pair_by_code(&"587929".parse().unwrap(), Some(&robot.id)).await,
                    false => ada.pair_by_link(&link).await,
                }
            },
            robot.finish_pairing(&started, if by_code { Answered::TypedCode } else { Answered::Link }),
        );
        let (there, here) = (there.unwrap(), here.unwrap());
        assert_eq!((&there.digits, there.digits.is_some()), (&here.digits, by_code));
        assert_eq!(there.pin.fingerprint(), robot.keys.fingerprint());
        assert_eq!(here.pin.fingerprint(), ada.keys.fingerprint());
    }
}

/// Nothing of an answer is left but its status and a code that our own gateway does not have.
fn foreign(status: u16) -> Given {
    Given::invented(status, r#"{"code":"PROTO_ERR_OTHER","message":"m","retryable":false}"#)
}

/// Loses the first answer to a call whose path ends like this, and refuses when it comes again.
fn losing(evil: &Evil, end: &'static str, status: u16) {
    let lost = AtomicUsize::new(0);
    evil.back(move |call, given| match call.method == "POST" && call.path.ends_with(end) {
        true if lost.fetch_add(1, Ordering::SeqCst) == 0 => None,
        true => Some(foreign(status)),
        false => Some(given),
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_with_oneself_after_a_lost_answer_is_a_success() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    losing(&evil, "/artifacts", 409);
    let request = robot.ask_detached(&draft(), &robots).await.unwrap();
    let item = ada.inbox(&adas).await.unwrap().pop().unwrap().opened.unwrap();
    losing(&evil, "/decisions", 409);
    ada.decide(&item, &choice(DecisionOutcome::Approve)).await.unwrap();
    let second = ada.decide(&item, &choice(DecisionOutcome::Reject)).await;
    assert!(matches!(second, Err(DecideError::AnsweredBefore)), "{second:?}");
    let late = robot.withdraw(&request).await;
    assert!(matches!(late, Err(AskError::Call(_))), "a decision was faster: {late:?}");
    let taken = robot.pick_up(&request.request_id, &robots).await.unwrap();
    assert!(matches!(taken, Answer::Approved(_)));
    evil.honest();
    let request = robot.ask_detached(&draft(), &robots).await.unwrap();
    losing(&evil, "/withdraw", 409);
    robot.withdraw(&request).await.unwrap();
    assert_eq!(world.state(&request.request_id).await, ExchangeState::Withdrawn);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_a_request_is_told_by_status_and_state_whatever_the_code() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    robot.ask_detached(&draft(), &robots).await.unwrap();
    let item = ada.inbox(&adas).await.unwrap().pop().unwrap().opened.unwrap();
    let decided = async |status, state: Option<&'static str>| {
        evil.forth(move |call| (call.path == "/v1/decisions").then(|| foreign(status)));
        evil.back(move |call, mut given| {
            if call.path.starts_with("/v1/exchanges/") {
                let mut body: Value = serde_json::from_slice(&given.body).unwrap();
                body["body"]["state"] = state?.into();
                given.body = body.to_string().into_bytes();
            }
            Some(given)
        });
        ada.decide(&item, &choice(DecisionOutcome::Approve)).await.unwrap_err()
    };
    assert!(matches!(decided(404, None).await, DecideError::TakenBack));
    assert!(matches!(decided(409, Some("expired")).await, DecideError::TooLate));
    assert!(matches!(decided(409, Some("withdrawn")).await, DecideError::TakenBack));
    assert!(matches!(decided(409, Some("cancelled")).await, DecideError::TakenBack));
    assert!(matches!(decided(409, Some("decided")).await, DecideError::AnsweredBefore));
    assert!(matches!(decided(409, Some("pendingApproval")).await, DecideError::Call(_)));
    assert!(matches!(decided(400, Some("decided")).await, DecideError::Call(_)));
}

/// A gateway that takes the Artifact of the specification and nothing else. Ours takes both forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_does_not_know_sealed_bodies_gets_an_artifact() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    evil.forth(|call| {
        let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let is_sealed = call.path == "/v1/artifacts" && body["body"].get("ciphertext").is_some();
        is_sealed.then(|| foreign(422))
    });
    let draft = draft();
    let (asked, answered) = tokio::join!(robot.ask(&draft, &robots), async {
        let request = loop {
            if let Some(item) = ada.inbox(&adas).await.unwrap().pop() {
                break item.opened.unwrap();
            }
            sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(request.repo_name.as_deref(), Some("canary-repository"));
        ada.decide(&request, &choice(DecisionOutcome::Approve)).await
    });
    answered.unwrap();
    assert_eq!(asked.unwrap().outcome, DecisionOutcome::Approve);
    let heard = String::from_utf8_lossy(&evil.heard()).into_owned();
    assert!(!heard.contains("canary-"), "what the extensions and the payload say is sealed");
    // Another refusal is final: nothing is said twice.
    evil.forth(|call| {
        let code = r#"{"code":"PROTO_ERR_NO_RECIPIENT","message":"m","retryable":false}"#;
        (call.path == "/v1/artifacts").then(|| Given::invented(422, code))
    });
    let calls = || String::from_utf8_lossy(&evil.heard()).matches("POST /v1/artifacts").count();
    let before = calls();
    robot.ask(&draft, &robots).await.unwrap_err();
    assert_eq!(calls() - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_was_accepted_was_sent_whatever_the_answer_looks_like() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let (_, adas) = pair(&robot, &ada, Pins::default()).await;
    let draft = PromptDraft {
        target: Target::AgentChat,
        content: PromptContent::Text("go on".to_owned()),
        session_id: None,
        valid_for: Duration::from_mins(1),
    };
    let build = || Prompt::build(&draft, &ada.id, &robot.id, &ada.keys, &adas, SystemClock.now()).unwrap();
    let answered = |change: fn(Value) -> String| {
        evil.back(move |call, mut given| {
            if call.path == "/v1/prompt" {
                given.body = change(serde_json::from_slice(&given.body).unwrap()).into_bytes();
            }
            Some(given)
        });
    };
    let in_envelope = |mut ack: Value| {
        ack["status"] = "rejected".into();
        json!({ "msgType": "prompt.ack", "requestId": ack["requestId"], "createdAt": ack["ackAt"],
                "sender": { "gatewayId": "gw" }, "body": ack })
        .to_string()
    };
    answered(in_envelope);
    assert_eq!(ada.send_prompt(&build()).await.unwrap(), AckStatus::Rejected);
    let of_another = |mut ack: Value| {
        ack["status"] = "delivered".into();
        ack["requestId"] = "other".into();
        ack.to_string()
    };
    for change in [of_another, |_| "{}".to_owned(), |_| String::new()] {
        answered(change);
        assert_eq!(ada.send_prompt(&build()).await.unwrap(), AckStatus::Queued);
    }
    evil.forth(|call| (call.path == "/v1/prompt").then(|| foreign(400)));
    ada.send_prompt(&build()).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_sessions_are_read_in_other_shapes_too() {
    let world = World::start().await;
    let (evil, robot, ada) = in_between(&world).await;
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    robot.ask_detached(&draft(), &robots).await.unwrap();
    let session: SessionId = "5f0c7a52-6a5e-4a1b-9a8e-000000000001".parse().unwrap();
    let snapshot = |snapshot_id, payload| {
        let snapshot_type = SnapshotType::Summary;
        SnapshotDraft { session_id: &session, snapshot_id, snapshot_type, payload }
    };
    robot.session_snapshot(snapshot("1", r#"{"text":"done"}"#), &robots).await.unwrap();
    evil.back(|call, mut given| {
        let mut body: Value = serde_json::from_slice(&given.body).unwrap_or_default();
        if call.path.contains("/inbox?") {
            assert_eq!(body["body"].as_object_mut().unwrap().remove("nextCursor"), Some(Value::Null));
        } else if call.path.starts_with("/v1/session/") {
            body.as_object_mut().unwrap().remove("enforcerId");
            let newest = body["snapshots"]["summary"].clone();
            let mut older = newest.clone();
            older["snapshotId"] = "0".into();
            body["snapshots"] = json!([older, newest, { "snapshotType": "words of a gateway" }]);
            body = json!({ "msgType": "session.status", "requestId": "x", "createdAt": "2026-11-15T12:00:00Z",
                           "sender": {}, "body": body });
        }
        given.body = body.to_string().into_bytes();
        Some(given)
    });
    assert_eq!(ada.inbox(&adas).await.unwrap().len(), 1);
    let read = ada.session(&session).await.unwrap();
    assert_eq!((read.enforcer_id, read.snapshots.len()), (None, 1));
    let opened =
        OpenedSnapshot::open(&read.snapshots["summary"], "ada", &ada.keys, &adas, SystemClock.now()).unwrap();
    assert_eq!(opened.payload.as_str(), r#"{"text":"done"}"#);
    // A cursor that is not understood is an error and no last page: what is behind it would never be seen.
    evil.back(|call, mut given| {
        if call.path.contains("/inbox?") {
            let mut body: Value = serde_json::from_slice(&given.body).unwrap();
            body["body"]["nextCursor"] = 7.into();
            given.body = body.to_string().into_bytes();
        }
        Some(given)
    });
    assert_eq!(ada.inbox(&adas).await.unwrap_err(), CallError::NotUnderstood);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_begins_with_both_names() {
    let world = World::start().await;
    let evil = Evil::start(world.address).await;
    let robot = world.enforcer("robot").await;
    let http = world.http_at(evil.address, Role::Enforcer(Some(robot.id.clone()))).await;
    let robot = Enforcer { http, ..robot };
    let heard = Arc::new(Mutex::new(Value::Null));
    let kept = heard.clone();
    evil.forth(move |call| {
        if call.path == "/v1/pairing/initiate" {
            *kept.lock() = serde_json::from_slice(&call.body).unwrap();
        }
        None
    });
    robot.start_pairing(Names::new(&"m".repeat(200), "agent")).await.unwrap();
    let body = heard.lock().clone();
    assert_eq!((&body["enforcerLabel"], &body["workspaceName"]), (&"m".repeat(128).into(), &"agent".into()));
    robot.start_pairing("robot").await.unwrap();
    assert_eq!(heard.lock().get("workspaceName"), None, "what has no name says none");
}
