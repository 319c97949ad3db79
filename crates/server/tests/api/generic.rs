//! The generic endpoints for exchanges: bare objects and both envelopes.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    support::messages::{decision_about, hash, open, sealed},
    world::World,
};

cases! {
    an_artifact_is_taken_bare_and_in_both_envelopes,
    a_decision_is_taken_bare_and_in_both_envelopes,
    errors_of_the_generic_rows_are_bare,
    artifacts_and_decisions_conflict_as_elsewhere,
    status_tells_of_the_gateway,
}

fn core(msg_type: &str, actor: &str, device: &str, body: Value) -> Value {
    json!({
        "envelopeId": "e", "msgType": msg_type, "createdAt": "2026-11-15T12:00:00Z", "body": body,
        "sender": { "actor": actor, "deviceId": device }, "recipient": { "actor": "GW", "deviceId": "gw" },
    })
}

async fn an_artifact_is_taken_bare_and_in_both_envelopes(world: Arc<World>) {
    let pair = world.pair().await;
    let (bare, inside, within) = (pair.id("bare"), pair.id("core"), pair.id("gateway"));
    let mut named = sealed(&inside);
    named["requestId"] = json!(inside);
    for (id, text) in [
        (&bare, open(&bare)),
        (&inside, core("artifact.submit", "HE", &pair.enforcer_id, named)),
        (&within, pair.submission(&within)),
    ] {
        let answer = pair.enforcer.post("/v1/artifact", text.to_string()).await.expect(202);
        assert_eq!(answer.header("content-type"), "application/json");
        let answer = answer.json();
        assert_eq!((&answer["requestId"], &answer["state"]), (&json!(id), &json!("pendingApproval")));
        assert_eq!(answer.as_object().unwrap().len(), 3);
        assert_eq!(pair.state(id).await, "pendingApproval");
    }
}

async fn a_decision_is_taken_bare_and_in_both_envelopes(world: Arc<World>) {
    let pair = world.pair().await;
    for (name, frame) in [("bare", 0), ("core", 1), ("gateway", 2)] {
        let id = pair.id(name);
        pair.submit(&id).await.expect(202);
        let decision = decision_about(&id, &hash(&id), "reject", None);
        let text = match frame {
            0 => decision,
            1 => core("decision.submit", "MA", &pair.approver_id, decision),
            _ => crate::support::messages::approval(&id, &pair.approver_id),
        };
        let answer = pair.approver.post("/v1/decision", text.to_string()).await.expect(200).json();
        assert_eq!(answer, json!({ "requestId": id, "state": "decided", "artifactHash": hash(&id) }));
    }
}

async fn errors_of_the_generic_rows_are_bare(world: Arc<World>) {
    let pair = world.pair().await;
    for path in ["/v1/artifact", "/v1/decision"] {
        let who = if path == "/v1/artifact" { &pair.enforcer } else { &pair.approver };
        let wrong = if path == "/v1/artifact" { &pair.approver } else { &pair.enforcer };
        let refused = who.post(path, "{").await.refuse(400, "PROTO_ERR_VALIDATION");
        assert_eq!(refused.header("content-type"), "application/json");
        assert_eq!(refused.json()["retryable"], false);
        assert!(refused.json()["message"].is_string());
        wrong.post(path, "{}").await.refuse(403, "PROTO_ERR_FORBIDDEN");
        who.without_key().post(path, "{}").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
        who.post_with(path, "{}", &[("content-type", "text/html")]).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
        who.post(path, "x".repeat(4 << 20)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    }
    pair.enforcer.post("/v1/artifact", "{}").await.refuse(422, "PROTO_ERR_STRUCTURE");
    let other = core("artifact.submit", "HE", "another", open(&pair.id("x"))).to_string();
    pair.enforcer.post("/v1/artifact", other).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    let wrong_type = core("decision.submit", "HE", &pair.enforcer_id, open(&pair.id("x"))).to_string();
    pair.enforcer.post("/v1/artifact", wrong_type).await.refuse(400, "PROTO_ERR_UNSUPPORTED");
}

async fn artifacts_and_decisions_conflict_as_elsewhere(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("conflict");
    pair.submit(&id).await.expect(202);
    pair.enforcer.post("/v1/artifact", open(&id).to_string()).await.refuse(409, "AlreadyExistsConflict");
    let decision = |verdict: &str| decision_about(&id, &hash(&id), verdict, None).to_string();
    pair.approver.post("/v1/decision", decision("approve")).await.expect(200);
    let again = pair.approver.post("/v1/decision", decision("approve")).await.expect(200);
    assert_eq!(again.header("idempotent-replayed"), "true");
    pair.approver.post("/v1/decision", decision("reject")).await.refuse(409, "AlreadyDecidedConflict");
    let unknown = decision_about("nothing", &hash("x"), "approve", None).to_string();
    pair.approver.post("/v1/decision", unknown).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn status_tells_of_the_gateway(world: Arc<World>) {
    let pair = world.pair().await;
    let expected = json!({ "status": "ok", "protocol": "0.2", "gatewayId": "gw" });
    assert_eq!(pair.enforcer.get("/v1/status").await.expect(200).json(), expected);
    pair.enforcer.without_key().get("/v1/status").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}
