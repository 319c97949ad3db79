//! Prompts: routing to an enforcer, acknowledgements, conflicts, and sessions the approver may not see.

use countersign_core::{Error, use_cases::prompt::PromptSubmission};
use countersign_wire::{RawObject, hash::Sha256Hex, parse, prompt::AckStatus, session::SessionEvent};

use super::{
    pairing_fixtures::pair,
    world::{World, approver, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    a_prompt_reaches_its_enforcer_and_its_acknowledgement_comes_back,
    a_prompt_with_another_hash_conflicts,
    a_session_that_an_approver_may_not_see_routes_no_prompt,
}

fn prompt(id: &str, text: &str) -> String {
    let unhashed = format!(
        r#"{{"requestId":"{id}","artifactType":"prompt.send","createdAt":"2026-11-15T12:00:00Z","target":"agentChat","text":"{text}","promptHashAlg":"SHA-256"}}"#
    );
    let hash =
        Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes()).unwrap(), "promptHash").unwrap();
    unhashed.replacen('{', &format!(r#"{{"promptHash":"{hash}","#), 1)
}

pub(super) async fn send_prompt(world: &World, id: &str, text: &str) -> Result<AckStatus, Error> {
    let body = prompt(id, text);
    let submission = PromptSubmission {
        sees_all_sessions: false,
        tenant: world.tenant.clone(),
        approver: approver("ada"),
        request_id: id.parse().unwrap(),
        body: parse(body.as_bytes()).unwrap(),
        recipient: None,
        idempotency_key: None,
    };
    world.gateway.send_prompt(submission).await.map(|snapshot| snapshot.status)
}

async fn a_prompt_reaches_its_enforcer_and_its_acknowledgement_comes_back(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    assert_eq!(status_of(&send_prompt(&world, "p", "hi").await, 202), 422, "no enforcer to send it to");
    pair(&world, "ada", 2).await;
    assert_eq!(send_prompt(&world, "p", "hi").await.unwrap(), AckStatus::Queued);
    let reader = countersign_core::delivery::feed::Reader::Enforcer(robot());
    let items = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(items[0].delivery.msg_type.as_str(), "prompt.send");
    let body =
        world.gateway.store().payloads(&world.tenant, &[items[0].delivery.payload.unwrap()]).await.unwrap();
    assert_eq!(body[0].as_deref(), Some(prompt("p", "hi").as_bytes()));

    let hash: serde_json::Value = serde_json::from_str(&prompt("p", "hi")).unwrap();
    let ack = |status: &str| {
        format!(
            r#"{{"requestId":"p","promptHash":{},"status":"{status}","ackAt":"2026-11-15T12:00:01Z"}}"#,
            hash["promptHash"]
        )
    };
    let acknowledge = async |status| {
        let ack = ack(status);
        world.gateway.acknowledge_prompt(&world.tenant, &robot(), &parse(ack.as_bytes()).unwrap()).await
    };
    acknowledge("delivered").await.unwrap();
    acknowledge("error").await.unwrap();
    assert_eq!(
        send_prompt(&world, "p", "hi").await.unwrap(),
        AckStatus::Queued,
        "a replay gets the first response"
    );
    let reader = countersign_core::delivery::feed::Reader::Approver(approver("ada"));
    let items = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(
        (items.len(), items[0].delivery.msg_type.as_str()),
        (1, "prompt.ack"),
        "the status never goes back"
    );
}

async fn a_prompt_with_another_hash_conflicts(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    send_prompt(&world, "p", "hi").await.unwrap();
    assert_eq!(status_of(&send_prompt(&world, "p", "ho").await, 202), 409);
}

async fn a_session_that_an_approver_may_not_see_routes_no_prompt(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let start =
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#;
    let event = parse::<SessionEvent<'_>>(start.as_bytes()).unwrap();
    world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
    let send_as = async |who: &str, id: &str, session: &str, sees_all_sessions: bool| {
        let text = format!(
            r#"{{"requestId":"{id}","sessionId":"{session}","target":"agentChat","promptHash":"{}","ciphertext":"c"}}"#,
            Sha256Hex::digest(id.as_bytes())
        );
        let submission = PromptSubmission {
            sees_all_sessions,
            tenant: world.tenant.clone(),
            approver: approver(who),
            request_id: id.parse().unwrap(),
            body: parse(text.as_bytes()).unwrap(),
            recipient: None,
            idempotency_key: None,
        };
        status_of(&world.gateway.send_prompt(submission).await, 202)
    };
    let send = async |id: &str, session: &str, all: bool| send_as("ada", id, session, all).await;
    assert_eq!(send("p", "s", false).await, send("q", "nowhere", false).await);
    assert_eq!(send("r", "s", true).await, 202, "an approver with access to all sessions");
    pair(&world, "ada", 2).await;
    assert_eq!(send("t", "s", false).await, 202);
    assert_eq!(
        send_as("bob", "u", "s", true).await,
        422,
        "a paired enforcer takes prompts from its approvers only"
    );
}
