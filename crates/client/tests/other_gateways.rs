//! Gateways of the specification that are not ours: what they may leave out, and what is said where that is missing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use countersign_client::{
    approver::Approver,
    enforcer::{Answered, Enforcer, PairError},
    names::Names,
    pairing::PairingError,
};
use countersign_core::model::credential::Role;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use support::{World, evil::Evil};

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
    let error = ada.pair_by_code(started.code).await.unwrap_err();
    assert!(matches!(error, PairError::Pairing(PairingError::MachineNotNamed)), "{error:?}");
    let words = error.to_string();
    assert_eq!(words, "this gateway does not say which machine the code is of; use the link, which does");
    // Nothing was completed, so the link still works.
    ada.pair_by_link(&started.link).await.unwrap();
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
