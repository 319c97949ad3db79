//! Prompts: routing to an enforcer, acknowledgements, conflicts, and sessions the approver may not see.

use countersign_core::{
    Error,
    delivery::feed::Reader,
    model::viewer::Viewer,
    store::Kind,
    use_cases::{pairs::PairFilter, prompt::PromptSubmission},
};
use countersign_wire::{RawObject, hash::Sha256Hex, parse, prompt::AckStatus, session::SessionEvent};

use super::{
    pairing_fixtures::pair,
    world::{World, approver, request, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    a_prompt_reaches_its_enforcer_and_its_acknowledgement_comes_back,
    a_prompt_with_another_hash_conflicts,
    a_session_that_an_approver_may_not_see_routes_no_prompt,
    a_prompt_that_nobody_took_is_acknowledged_as_expired_at_its_end,
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
    let reader = Reader::Enforcer(robot());
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
    let reader = Reader::Approver(approver("ada"));
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
    let send = async |who: &str, id: &str, session: &str| {
        let text = format!(
            r#"{{"requestId":"{id}","sessionId":"{session}","target":"agentChat","promptHash":"{}","ciphertext":"c"}}"#,
            Sha256Hex::digest(id.as_bytes())
        );
        let submission = PromptSubmission {
            tenant: world.tenant.clone(),
            approver: approver(who),
            request_id: id.parse().unwrap(),
            body: parse(text.as_bytes()).unwrap(),
            recipient: None,
            idempotency_key: None,
        };
        status_of(&world.gateway.send_prompt(submission).await, 202)
    };
    assert_eq!(send("ada", "p", "nowhere").await, 422);
    assert_eq!(send("bob", "q", "s").await, 202, "one that was never paired admits everybody");
    pair(&world, "ada", 2).await;
    assert_eq!(send("ada", "r", "s").await, 202);
    assert_eq!(send("bob", "t", "s").await, 422, "a paired one takes prompts from its approvers only");
    unpair(&world).await;
    assert_eq!(send("ada", "u", "s").await, 422, "one that has lost its last pair admits nobody");
    assert_eq!(status_of(&world.submit(&request("r")).await, 202), 422, "and shows its requests to nobody");
    assert_eq!(status_of(&world.submit(&request("s").to("ada")).await, 202), 202, "unless it names them");
}

/// Ends the only pair of the world.
async fn unpair(world: &World) {
    let all = PairFilter::default();
    for (id, _) in world.gateway.pairs(&world.tenant, &all, None, 10).await.unwrap().pairs {
        world.gateway.remove_pair(&world.tenant, Viewer::Operator, &id).await.unwrap();
    }
}

async fn a_prompt_that_nobody_took_is_acknowledged_as_expired_at_its_end(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    send_prompt(&world, "p", "hi").await.unwrap();
    let (reader, days) = (Reader::Approver(approver("ada")), 24 * 60);
    let news = async || world.gateway.feed(&world.tenant, &reader, &[]).unread().await.unwrap();
    world.at_minute(29 * days).await;
    world.gateway.sweep().await.unwrap();
    assert!(news().await.is_empty(), "it may still be taken");
    world.at_minute(31 * days).await;
    world.gateway.sweep().await.unwrap();
    let said = news().await;
    assert_eq!(said.len(), 1);
    let message = world.gateway.message(&world.tenant, &said[0].delivery).await.unwrap().unwrap();
    let body: serde_json::Value = serde_json::from_slice(&message.body).unwrap();
    assert_eq!((message.msg_type.as_str(), body["status"].as_str()), ("prompt.ack", Some("expired")));
    world.at_minute(62 * days).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(world.gateway.store().scan(&world.tenant, Kind::Prompt, None, 10).await.unwrap(), []);
}
