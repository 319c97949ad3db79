//! `POST /v1/acks`.

use std::sync::Arc;

use serde_json::json;

use crate::{case::cases, support::messages::envelope, world::World};

cases! {
    an_acknowledged_decision_is_delivered,
    an_unknown_message_is_acknowledged_without_effect,
    an_approvers_ack_does_not_deliver_a_decision,
    an_ack_about_nothing_is_404,
    an_ack_about_anothers_prompt_or_session_is_404,
    an_ack_of_the_wrong_shape_is_400,
    an_ack_is_for_whom_the_credential_names,
    a_prompt_ack_without_what_it_must_say_is_400_and_acknowledges_nothing,
    nobody_speaks_for_both_sides,
    an_ack_takes_any_status_and_the_enforcer_sees_what_an_approver_said,
    an_operator_acknowledges_nothing,
}

const PATH: &str = "/v1/acks";

async fn a_prompt_ack_without_what_it_must_say_is_400_and_acknowledges_nothing(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("half");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let ack = envelope("prompt.ack", &id, json!({ "enforcerId": pair.enforcer_id }), json!({}));
    pair.enforcer.post(PATH, ack.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    assert_eq!(pair.state(&id).await, "decided");
}

async fn nobody_speaks_for_both_sides(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("both");
    let both = json!({ "enforcerId": pair.enforcer_id, "approverId": pair.approver_id });
    let mut submission = pair.submission(&id);
    submission["sender"] = both.clone();
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.submit(&id).await.expect(202);
    let ack = envelope("ack.submit", &id, both, json!({})).to_string();
    pair.enforcer.post(PATH, &ack).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver.post(PATH, &ack).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let gateway = json!({ "enforcerId": pair.enforcer_id, "gatewayId": "gw" });
    let ack = envelope("ack.submit", &id, gateway, json!({})).to_string();
    pair.enforcer.post(PATH, ack).await.expect(200);
}

async fn an_ack_takes_any_status_and_the_enforcer_sees_what_an_approver_said(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("status");
    pair.submit(&id).await.expect(202);
    for status in ["ok", "delivered", "seen"] {
        let sender = json!({ "approverId": pair.approver_id });
        let ack = envelope("ack.submit", &id, sender, json!({ "status": status })).to_string();
        pair.approver.post(PATH, ack).await.expect(200);
        let seen = pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200).json();
        let seen = &seen["trace"]["org.countersign.seen"];
        assert_eq!((&seen[0]["approverId"], &seen[0]["status"]), (&json!(pair.approver_id), &json!(status)));
        assert_eq!(seen.as_array().unwrap().len(), 1);
    }
}

async fn an_operator_acknowledges_nothing(world: Arc<World>) {
    // Before the media type and the shape are looked at.
    let answer = world.operator.post_with(PATH, "no", &[("content-type", "text/html")]).await;
    answer.refuse(403, "PROTO_ERR_FORBIDDEN");
}

async fn an_acknowledged_decision_is_delivered(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("ack");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let received = pair.enforcer.get(&format!("/v1/exchanges/{id}/wait")).await.expect(200).json();
    let body = json!({ "msgId": received["msgId"], "status": "processed", "ackAt": "2026-11-15T12:00:00Z" });
    let ack = envelope("ack.submit", &id, json!({ "enforcerId": pair.enforcer_id }), body).to_string();
    let answer = pair.enforcer.post(PATH, &ack).await.expect(200).json();
    assert_eq!(answer["msgType"], "ack.accepted");
    assert_eq!(answer["body"], json!({ "requestId": id, "msgId": received["msgId"] }));
    assert_eq!(pair.state(&id).await, "delivered");
    pair.enforcer.post(PATH, &ack).await.expect(200);
    let again = pair.enforcer.get(&format!("/v1/exchanges/{id}/wait")).await.expect(200).json();
    assert_eq!(again, received, "a repeated request gets the same answer");
}

async fn an_unknown_message_is_acknowledged_without_effect(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("unknown");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let ack = |body| envelope("ack.submit", &id, json!({ "enforcerId": pair.enforcer_id }), body).to_string();
    pair.enforcer.post(PATH, ack(json!({ "msgId": "made-up" }))).await.expect(200);
    assert_eq!(pair.state(&id).await, "decided");
    let all = pair.enforcer.post(PATH, ack(json!({}))).await.expect(200);
    assert_eq!(all.body(), json!({ "requestId": id }), "without a msgId, everything outstanding");
    assert_eq!(pair.state(&id).await, "delivered");
}

async fn an_approvers_ack_does_not_deliver_a_decision(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("wrong-side");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let ack = envelope("ack.submit", &id, json!({ "approverId": pair.approver_id }), json!({}));
    pair.approver.post(PATH, ack.to_string()).await.expect(200);
    assert_eq!(pair.state(&id).await, "decided");
}

async fn an_ack_about_nothing_is_404(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("theirs");
    pair.submit(&id).await.expect(202);
    for id in ["nothing", &id] {
        let ack = envelope("ack.submit", id, json!({ "enforcerId": other.enforcer_id }), json!({}));
        other.enforcer.post(PATH, ack.to_string()).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
}

async fn an_ack_about_anothers_prompt_or_session_is_404(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    crate::pairing::pair_up(&pair, 71).await;
    let (prompt, session) = (pair.id("prompt"), pair.id("session"));
    let text = crate::support::messages::prompt(&prompt, "x").to_string();
    pair.approver.post("/v1/prompt", text).await.expect(202);
    let start = json!({ "sessionId": session, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z", "agentHost": "x" });
    pair.enforcer.post("/v1/session/event", start.to_string()).await.expect(202);
    for id in [&prompt, &session] {
        let ack = envelope("ack.submit", id, json!({}), json!({})).to_string();
        for stranger in [&other.enforcer, &other.approver] {
            stranger.post(PATH, &ack).await.refuse(404, "PROTO_ERR_NOT_FOUND");
        }
        for party in [&pair.enforcer, &pair.approver] {
            party.post(PATH, &ack).await.expect(200);
        }
    }
}

async fn an_ack_of_the_wrong_shape_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    let sender = json!({ "enforcerId": pair.enforcer_id });
    let ack = |body| envelope("ack.submit", "r", sender.clone(), body).to_string();
    for status in [json!(""), json!("x".repeat(65)), json!(1), json!(null)] {
        pair.enforcer.post(PATH, ack(json!({ "status": status }))).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    let unsent = envelope("ack.submit", "r", json!({}), json!({})).to_string();
    pair.enforcer.post(PATH, unsent).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let other = envelope("inbox.page", "r", sender.clone(), json!({})).to_string();
    pair.enforcer.post(PATH, other).await.refuse(400, "PROTO_ERR_UNSUPPORTED");
    pair.enforcer
        .post_with(PATH, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.enforcer.post(PATH, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn an_ack_is_for_whom_the_credential_names(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let ack = envelope("ack.submit", "r", json!({ "enforcerId": pair.enforcer_id }), json!({})).to_string();
    other.enforcer.post(PATH, &ack).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    world.operator.post(PATH, &ack).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.without_key().post(PATH, &ack).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}
