//! `POST /v1/decisions`.

use std::sync::Arc;

use serde_json::json;

use crate::{
    case::cases,
    support::{
        messages::{approval, bundle, decision_about, envelope, hash, soon},
        polling::until,
    },
    world::{Pair, World},
};

cases! {
    a_number_that_readers_disagree_about_is_400_only_where_a_signature_is_verified,
    a_decision_is_accepted,
    the_same_decision_again_is_a_replay,
    another_decision_is_409,
    a_decision_on_nothing_is_404,
    a_decision_on_a_withdrawn_exchange_is_404,
    a_decision_on_what_one_may_not_see_is_404_with_the_same_bytes,
    a_decision_about_another_hash_is_400,
    a_decision_that_is_void_already_is_400,
    a_decision_of_the_wrong_shape_is_400,
    a_decision_for_another_request_is_400,
    a_decision_on_an_expired_exchange_is_409,
    a_decision_on_a_cancelled_exchange_is_409,
    an_enforcer_can_never_decide,
    an_approver_can_not_decide_for_another,
    a_registered_key_is_checked_and_a_bad_signature_is_403_and_changes_nothing,
    a_policy_can_ask_for_registered_keys,
}

const PATH: &str = "/v1/decisions";

async fn submitted(world: &World, name: &str) -> (Pair, String) {
    let pair = world.pair().await;
    let id = pair.id(name);
    pair.submit(&id).await.expect(202);
    (pair, id)
}

async fn a_decision_is_accepted(world: Arc<World>) {
    let (pair, id) = submitted(&world, "decide").await;
    let answer = pair.approve(&id).await.expect(200).json();
    assert_eq!(answer["msgType"], "decision.accepted");
    assert_eq!(answer["body"], json!({ "requestId": id, "state": "decided", "artifactHash": hash(&id) }));
    assert_eq!(pair.state(&id).await, "decided");
}

async fn the_same_decision_again_is_a_replay(world: Arc<World>) {
    let (pair, id) = submitted(&world, "again").await;
    let first = pair.approve(&id).await.expect(200).body();
    let again = pair.approve(&id).await.expect(200);
    assert_eq!((again.header("idempotent-replayed"), again.body()), ("true", first));
}

async fn another_decision_is_409(world: Arc<World>) {
    let (pair, id) = submitted(&world, "other").await;
    pair.approve(&id).await.expect(200);
    let mut other = approval(&id, &pair.approver_id);
    other["body"]["decision"] = "reject".into();
    pair.approver.post(PATH, other.to_string()).await.refuse(409, "AlreadyDecidedConflict");
    let status = pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.body();
    assert_eq!(status["decision"]["decision"], "approve");
}

async fn a_decision_on_nothing_is_404(world: Arc<World>) {
    let pair = world.pair().await;
    pair.approve(&pair.id("nothing")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn a_decision_on_a_withdrawn_exchange_is_404(world: Arc<World>) {
    let (pair, id) = submitted(&world, "withdrawn").await;
    pair.withdraw(&id).await.expect(200);
    pair.approve(&id).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn a_decision_on_what_one_may_not_see_is_404_with_the_same_bytes(world: Arc<World>) {
    let (pair, id) = submitted(&world, "secret").await;
    let stranger = world.pair().await;
    let nothing = pair.id("absent");
    let strip = |answer: crate::support::client::Answer, id: &str| {
        let mut json = answer.refuse(404, "PROTO_ERR_NOT_FOUND").json();
        (json["msgId"], json["createdAt"]) = (json!(null), json!(null));
        json.to_string().replace(id, "ID")
    };
    let hidden = strip(stranger.approve(&id).await, &id);
    assert_eq!(hidden, strip(stranger.approve(&nothing).await, &nothing));
    assert_eq!(pair.state(&id).await, "pendingApproval");
}

async fn a_decision_about_another_hash_is_400(world: Arc<World>) {
    let (pair, id) = submitted(&world, "hash").await;
    let body = decision_about(&id, &hash("other"), "approve", None);
    let decision = envelope("decision.submit", &id, json!({ "approverId": pair.approver_id }), body);
    pair.approver.post(PATH, decision.to_string()).await.refuse(400, "PROTO_ERR_HASH_MISMATCH");
}

async fn a_decision_that_is_void_already_is_400(world: Arc<World>) {
    let (pair, id) = submitted(&world, "void").await;
    let mut decision = approval(&id, &pair.approver_id);
    decision["body"]["expiresAt"] = "2020-01-01T00:00:00Z".into();
    pair.approver.post(PATH, decision.to_string()).await.refuse(400, "PROTO_ERR_EXPIRED");
}

async fn a_decision_of_the_wrong_shape_is_400(world: Arc<World>) {
    let (pair, id) = submitted(&world, "shape").await;
    for (member, value) in [
        ("sigAlg", json!("RS256")),
        ("artifactHashAlg", json!("MD5")),
        ("decision", json!("maybe")),
        ("signature", json!("")),
        ("scope", json!(null)),
        ("surplus", json!(1)),
    ] {
        let mut decision = approval(&id, &pair.approver_id);
        decision["body"][member] = value;
        pair.approver.post(PATH, decision.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    let mut unsent = approval(&id, &pair.approver_id);
    unsent["sender"] = json!({});
    pair.approver.post(PATH, unsent.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.approver
        .post_with(PATH, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.approver.without_key().post(PATH, "{}").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn a_decision_for_another_request_is_400(world: Arc<World>) {
    let (pair, id) = submitted(&world, "crossed").await;
    let mut decision = approval(&id, &pair.approver_id);
    decision["body"]["requestId"] = "another".into();
    pair.approver.post(PATH, decision.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn a_decision_on_an_expired_exchange_is_409(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("late");
    let mut submission = pair.submission(&id);
    submission["body"]["expiresAt"] = soon(3_000).into();
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    until("it expires", 30, || async { pair.state(&id).await != "pendingApproval" }).await;
    pair.approve(&id).await.refuse(409, "PROTO_ERR_EXPIRED");
    assert_eq!(pair.state(&id).await, "expired");
}

async fn a_decision_on_a_cancelled_exchange_is_409(world: Arc<World>) {
    let (pair, id) = submitted(&world, "cancelled").await;
    world.operator.post(&format!("/platform/v1/exchanges/{id}/cancel"), "").await.expect(200);
    pair.approve(&id).await.refuse(409, "PROTO_ERR_STATE");
}

async fn an_enforcer_can_never_decide(world: Arc<World>) {
    let (pair, id) = submitted(&world, "itself").await;
    for path in [PATH, "/v1/decision"] {
        for sender in [json!({ "approverId": pair.approver_id }), json!({ "enforcerId": pair.enforcer_id })] {
            let body = decision_about(&id, &hash(&id), "approve", None);
            let decision = envelope("decision.submit", &id, sender, body);
            pair.enforcer.post(path, decision.to_string()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        }
    }
    world
        .operator
        .post(PATH, approval(&id, &pair.approver_id).to_string())
        .await
        .refuse(403, "PROTO_ERR_FORBIDDEN");
    assert_eq!(pair.state(&id).await, "pendingApproval");
}

async fn an_approver_can_not_decide_for_another(world: Arc<World>) {
    let (pair, id) = submitted(&world, "proxy").await;
    let other = world.pair().await;
    let decision = approval(&id, &pair.approver_id).to_string();
    other.approver.post(PATH, decision).await.refuse(403, "PROTO_ERR_FORBIDDEN");
}

async fn a_registered_key_is_checked_and_a_bad_signature_is_403_and_changes_nothing(world: Arc<World>) {
    let pair = world.pair().await;
    let key = crate::pairing::pair_up(&pair, 7).await;
    let id = pair.id("signed");
    pair.submit(&id).await.expect(202);
    let signed_by = |key| {
        let body = decision_about(&id, &hash(&id), "approve", Some(key));
        envelope("decision.submit", &id, json!({ "approverId": pair.approver_id }), body).to_string()
    };
    let (_, stranger) = bundle(8);
    pair.approve(&id).await.refuse(403, "PROTO_ERR_SIGNATURE_INVALID");
    pair.approver.post(PATH, signed_by(&stranger)).await.refuse(403, "PROTO_ERR_SIGNATURE_INVALID");
    assert_eq!(pair.state(&id).await, "pendingApproval");
    pair.approver.post(PATH, signed_by(&key)).await.expect(200);
}

async fn a_policy_can_ask_for_registered_keys(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let key = async |role: &str| {
        let made = operator.post("/platform/v1/keys", json!({ "role": role, "any": true }).to_string()).await;
        operator.with_key(made.expect(201).json()["key"].as_str().unwrap())
    };
    let (enforcer, approver) = (key("enforcer").await, key("approver").await);
    let policy = r#"{"requireRegisteredSigner":true}"#;
    operator.call(hyper::Method::PUT, "/platform/v1/policy", policy, &[]).await.expect(200);
    let submission = crate::support::messages::submission("r", "robot", "ada");
    enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    approver.post(PATH, approval("r", "ada").to_string()).await.refuse(403, "PROTO_ERR_SIGNATURE_INVALID");
}

async fn a_number_that_readers_disagree_about_is_400_only_where_a_signature_is_verified(world: Arc<World>) {
    let with_hint = |pair: &Pair, id: &str| {
        let mut body = decision_about(id, &hash(id), "approve", None);
        body["policyHints"] = json!({ "n": "NUMBER" });
        let envelope = envelope("decision.submit", id, json!({ "approverId": pair.approver_id }), body);
        envelope.to_string().replace("\"NUMBER\"", "1e20")
    };
    let (pair, id) = submitted(&world, "relayed").await;
    pair.approver.post(PATH, with_hint(&pair, &id)).await.expect(200);
    let strict = world.pair().await;
    crate::pairing::pair_up(&strict, 9).await;
    let id = strict.id("verified");
    strict.submit(&id).await.expect(202);
    strict.approver.post(PATH, with_hint(&strict, &id)).await.refuse(400, "PROTO_ERR_CANONICALIZATION");
    assert_eq!(strict.state(&id).await, "pendingApproval");
}
