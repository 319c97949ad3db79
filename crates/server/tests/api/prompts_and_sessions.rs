//! `POST /v1/prompt` and `/v1/session`.

use std::sync::Arc;

use serde_json::json;

use crate::{
    case::cases,
    support::messages::{envelope, hash, prompt, prompt_ack, snapshot},
    world::World,
};

cases! {
    an_enforcer_that_is_paired_takes_prompts_from_its_approvers_only,
    a_prompt_is_queued_and_its_acknowledgement_is_taken,
    a_sealed_prompt_is_queued,
    the_same_prompt_again_is_a_replay_and_another_is_409,
    a_prompt_to_nobody_or_with_a_wrong_hash_is_422,
    a_prompt_of_the_wrong_shape_or_size_is_refused,
    what_surrounds_a_prompt_or_an_event_has_its_own_limits,
    session_events_are_taken_once_and_not_after_the_end,
    a_session_reads_as_it_was_reported,
    session_events_of_the_wrong_shape_are_refused,
    a_session_is_seen_by_its_enforcer_and_its_approvers,
}

const PROMPT: &str = "/v1/prompt";
const EVENT: &str = "/v1/session/event";

async fn a_prompt_is_queued_and_its_acknowledgement_is_taken(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("prompt");
    let text = prompt(&id, "please continue");
    let mut sent = envelope("prompt.send", &id, json!({ "approverId": pair.approver_id }), text.clone());
    sent["recipient"] = json!({ "enforcerId": pair.enforcer_id });
    let answer = pair.approver.post(PROMPT, sent.to_string()).await.expect(202);
    assert_eq!(answer.header("content-type"), "application/json");
    let answer = answer.json();
    assert_eq!((&answer["requestId"], &answer["status"]), (&json!(id), &json!("queued")));
    assert_eq!(answer["promptHash"], text["promptHash"]);
    let ack = prompt_ack(&text, "delivered").to_string();
    let broken_key = pair.enforcer.post_with(PROMPT, &ack, &[("idempotency-key", "")]).await;
    broken_key.refuse(400, "PROTO_ERR_VALIDATION");
    let taken = pair.enforcer.post(PROMPT, ack).await.expect(200);
    assert_eq!(taken.json(), json!({ "requestId": id }));
    let again = pair.approver.post(PROMPT, sent.to_string()).await.expect(202);
    assert_eq!(again.header("proto-prompt-status"), "delivered", "what has become of it");
    assert_eq!(again.json(), answer, "the answer that was given");
    // The same over the row for acknowledgements.
    let ack =
        envelope("ack.submit", &id, json!({ "enforcerId": pair.enforcer_id }), prompt_ack(&text, "error"));
    pair.enforcer.post("/v1/acks", ack.to_string()).await.expect(200);
    let named =
        envelope("prompt.ack", &id, json!({ "enforcerId": pair.enforcer_id }), prompt_ack(&text, "error"));
    pair.enforcer.post("/v1/acks", named.to_string()).await.expect(200);
    let mut other = prompt_ack(&text, "delivered");
    other["promptHash"] = hash("other").into();
    pair.enforcer.post(PROMPT, other.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    let unknown = prompt_ack(&prompt("nothing", "x"), "delivered").to_string();
    pair.enforcer.post(PROMPT, unknown).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn a_sealed_prompt_is_queued(world: Arc<World>) {
    let pair = world.pair().await;
    crate::pairing::pair_up(&pair, 40).await;
    let id = pair.id("sealed");
    let text = json!({ "requestId": id, "ciphertext": { "any": 1 }, "promptHash": hash("x"), "target": "tool", "more": 1 });
    pair.approver.post(PROMPT, text.to_string()).await.expect(202);
}

async fn the_same_prompt_again_is_a_replay_and_another_is_409(world: Arc<World>) {
    let pair = world.pair().await;
    crate::pairing::pair_up(&pair, 41).await;
    let id = pair.id("twice");
    let first = pair.approver.post(PROMPT, prompt(&id, "one").to_string()).await.expect(202).json();
    let again = pair.approver.post(PROMPT, prompt(&id, "one").to_string()).await.expect(202);
    assert_eq!((again.header("idempotent-replayed"), again.json()), ("true", first));
    assert_eq!(again.header("proto-prompt-status"), "queued");
    pair.approver.post(PROMPT, prompt(&id, "two").to_string()).await.refuse(409, "AlreadyExistsConflict");
}

async fn a_prompt_to_nobody_or_with_a_wrong_hash_is_422(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("nobody");
    pair.approver.post(PROMPT, prompt(&id, "x").to_string()).await.refuse(422, "PROTO_ERR_NO_RECIPIENT");
    let mut wrong = prompt(&id, "x");
    wrong["text"] = "y".into();
    pair.approver.post(PROMPT, wrong.to_string()).await.refuse(422, "PROTO_ERR_HASH_MISMATCH");
}

async fn a_prompt_of_the_wrong_shape_or_size_is_refused(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("shape");
    let mut wrong = prompt(&id, "x");
    wrong["target"] = "fridge".into();
    pair.approver.post(PROMPT, wrong.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.approver
        .post(PROMPT, prompt(&id, &"x".repeat(300_000)).to_string())
        .await
        .refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver
        .post_with(PROMPT, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.approver.without_key().post(PROMPT, "{}").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    world.operator.post(PROMPT, prompt(&id, "x").to_string()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let other = envelope("prompt.send", &id, json!({ "approverId": "another" }), prompt(&id, "x"));
    pair.approver.post(PROMPT, other.to_string()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
}

async fn what_surrounds_a_prompt_or_an_event_has_its_own_limits(world: Arc<World>) {
    let pair = world.pair().await;
    crate::pairing::pair_up(&pair, 42).await;
    let id = pair.id("wide");
    let sealed = |member: &str, size: usize| {
        let mut prompt = json!({
            "requestId": id, "target": "agentChat", "promptHash": hash("wide"), "ciphertext": "c",
        });
        prompt[member] = json!({ "x": "x".repeat(size) });
        prompt.to_string()
    };
    pair.approver.post(PROMPT, sealed("more", 70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver.post(PROMPT, sealed("metadata", 17_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver.post(PROMPT, sealed("metadata", 15_000)).await.expect(202);
    // The text of a prompt may be spelled at length.
    let mut open = prompt(&pair.id("escaped"), &"x".repeat(50_000));
    open["promptHash"] = "".into();
    let hashed = crate::support::messages::hash_without(&open, "promptHash");
    open["promptHash"] = hashed.into();
    let spelled = open.to_string().replace("xxxxxxxxxx", &r"\u0078".repeat(10));
    pair.approver.post(PROMPT, spelled).await.expect(202);
    let mut namespaced = prompt(&pair.id("named"), "x");
    namespaced["extensions"] = json!({ "x": 1 });
    pair.approver.post(PROMPT, namespaced.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    let event = json!({
        "sessionId": id, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z",
        "agentHost": "h", "metadata": { "x": "x".repeat(17_000) },
    });
    pair.enforcer.post(EVENT, event.to_string()).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn session_events_are_taken_once_and_not_after_the_end(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("session");
    let start = json!({ "sessionId": id, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z", "agentHost": "codex" });
    let first = pair.enforcer.post(EVENT, start.to_string()).await.expect(202);
    assert_eq!(first.json(), json!({ "sessionId": id }));
    pair.enforcer.post(EVENT, start.to_string()).await.expect(200);
    pair.enforcer.post(EVENT, snapshot(&id, "s1", "plan").to_string()).await.expect(202);
    let other = snapshot(&id, "s1", "another plan").to_string();
    pair.enforcer.post(EVENT, other).await.refuse(409, "PROTO_SESSION_ERR_DUPLICATE_SNAPSHOT");
    let end = json!({ "sessionId": id, "eventType": "session.end", "endedAt": "2026-11-15T13:00:00Z", "reason": "user_end" });
    let framed = envelope("session.end", &id, json!({ "enforcerId": pair.enforcer_id }), end.clone());
    pair.enforcer.post(EVENT, framed.to_string()).await.expect(202);
    pair.enforcer.post(EVENT, end.to_string()).await.expect(200);
    let late = snapshot(&id, "s2", "late").to_string();
    pair.enforcer.post(EVENT, late).await.refuse(409, "PROTO_SESSION_ERR_SESSION_CLOSED");
}

async fn a_session_reads_as_it_was_reported(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("told");
    let start = json!({ "sessionId": id, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z", "agentHost": "codex", "repoRef": "r" });
    let status = json!({ "sessionId": id, "eventType": "session.status", "state": "editing", "updatedAt": "2026-11-15T12:01:00Z" });
    let plan = snapshot(&id, "s", "the plan");
    for event in [&start, &status, &plan] {
        pair.enforcer.post(EVENT, event.to_string()).await.expect(202);
    }
    let received = pair.enforcer.get(&format!("/v1/session/{id}")).await.expect(200).json();
    let expected = json!({
        "sessionId": id, "enforcerId": pair.enforcer_id, "agentHost": "codex", "repoRef": "r", "state": "editing",
        "createdAt": "2026-11-15T12:00:00Z", "updatedAt": "2026-11-15T12:01:00Z", "snapshots": { "plan": plan },
    });
    assert_eq!(received, expected);
}

async fn session_events_of_the_wrong_shape_are_refused(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("shape");
    let mut wrong = snapshot(&id, "s", "x");
    wrong["payload"]["says"] = "y".into();
    pair.enforcer.post(EVENT, wrong.to_string()).await.refuse(422, "PROTO_ERR_HASH_MISMATCH");
    let unknown = json!({ "sessionId": id, "eventType": "session.dance" }).to_string();
    pair.enforcer.post(EVENT, unknown).await.refuse(400, "PROTO_ERR_VALIDATION");
    let crossed =
        envelope("session.end", &id, json!({ "enforcerId": pair.enforcer_id }), snapshot(&id, "s", "x"));
    pair.enforcer.post(EVENT, crossed.to_string()).await.refuse(400, "PROTO_ERR_UNSUPPORTED");
    let huge = json!({ "sessionId": id, "eventType": "session.status", "state": "idle", "updatedAt": "2026-11-15T12:00:00Z", "details": { "x": "x".repeat(70_000) } });
    pair.enforcer.post(EVENT, huge.to_string()).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.enforcer
        .post_with(EVENT, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    let open = snapshot(&id, "large", &"x".repeat(6 << 20)).to_string();
    pair.enforcer.post(EVENT, open).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver.post(EVENT, "{}").await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.without_key().post(EVENT, "{}").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn a_session_is_seen_by_its_enforcer_and_its_approvers(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("seen");
    let start = json!({ "sessionId": id, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z", "agentHost": "codex" });
    pair.enforcer.post(EVENT, start.to_string()).await.expect(202);
    let path = format!("/v1/session/{id}");
    other.enforcer.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    // It was never paired.
    other.approver.get(&path).await.expect(200);
    crate::pairing::pair_up(&pair, 42).await;
    pair.approver.get(&path).await.expect(200);
    other.approver.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    other
        .enforcer
        .post(EVENT, start.to_string().replace("codex", "x"))
        .await
        .refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.get("/v1/session/%00").await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.enforcer.without_key().get(&path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn an_enforcer_that_is_paired_takes_prompts_from_its_approvers_only(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let to = |by: &crate::world::Pair, id: &str| {
        let body = prompt(id, "x");
        let mut sent = envelope("prompt.send", id, json!({ "approverId": by.approver_id }), body);
        sent["recipient"] = json!({ "enforcerId": pair.enforcer_id });
        sent.to_string()
    };
    let first = stranger.id("before");
    stranger.approver.post(PROMPT, to(&stranger, &first)).await.expect(202);
    crate::pairing::pair_up(&pair, 12).await;
    let second = stranger.id("after");
    stranger.approver.post(PROMPT, to(&stranger, &second)).await.refuse(422, "PROTO_ERR_NO_RECIPIENT");
    let own = pair.id("own");
    pair.approver.post(PROMPT, to(&pair, &own)).await.expect(202);
}
