//! `GET /platform/v1/exchanges/{requestId}/progress`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    pairing::pair_up,
    support::{client::Client, messages::envelope},
    world::World,
};

cases! {
    each_approver_is_told_of_with_what_they_acknowledged,
    a_request_for_everybody_names_those_who_acknowledged_it,
    progress_is_for_the_enforcer_that_asked,
}

fn path(id: &str) -> String {
    format!("/platform/v1/exchanges/{id}/progress")
}

async fn acknowledge(who: &Client, approver_id: &str, id: &str, status: Option<&str>) {
    let body = status.map_or(json!({}), |status| json!({ "status": status }));
    let ack = envelope("ack.submit", id, json!({ "approverId": approver_id }), body);
    who.post("/v1/acks", ack.to_string()).await.expect(200);
}

async fn each_approver_is_told_of_with_what_they_acknowledged(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("progress");
    pair.submit(&id).await.expect(202);
    let progress = async || {
        let answer = pair.enforcer.get(&path(&id)).await.expect(200);
        assert_eq!(answer.header("content-type"), "application/json");
        answer.json()
    };
    let status = pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200).body();
    let begun = progress().await;
    let ada = json!({
        "approverId": pair.approver_id, "rung": status["createdAt"], "received": null, "seen": null,
    });
    assert_eq!(begun, json!({ "requestId": id, "state": "pendingApproval", "approvers": [ada] }));
    acknowledge(&pair.approver, &pair.approver_id, &id, Some("received")).await;
    let received = progress().await["approvers"][0].take();
    assert!(received["received"].as_str() > received["rung"].as_str());
    assert_eq!(received["seen"], Value::Null);
    acknowledge(&pair.approver, &pair.approver_id, &id, Some("seen")).await;
    let seen = progress().await["approvers"][0].take();
    assert_eq!(seen["received"], received["received"], "the first one stays");
    assert!(seen["seen"].as_str() > seen["received"].as_str());
    acknowledge(&pair.approver, &pair.approver_id, &id, None).await;
    assert_eq!(progress().await["approvers"][0], seen);
    pair.approve(&id).await.expect(200);
    let decided = progress().await;
    assert_eq!((&decided["state"], &decided["approvers"][0]), (&json!("decided"), &seen));
}

async fn a_request_for_everybody_names_those_who_acknowledged_it(world: Arc<World>) {
    let pair = world.pair().await;
    let submit = async |name: &str| {
        let id = pair.id(name);
        let mut submission = pair.submission(&id);
        submission.as_object_mut().unwrap().remove("recipient");
        pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
        id
    };
    let shared = submit("shared").await;
    assert_eq!(pair.enforcer.get(&path(&shared)).await.expect(200).json()["approvers"], json!([]));
    acknowledge(&pair.approver, &pair.approver_id, &shared, Some("seen")).await;
    let known = pair.enforcer.get(&path(&shared)).await.expect(200).json();
    assert_eq!(known["approvers"][0]["approverId"], *pair.approver_id);
    assert_eq!(known["approvers"][0]["seen"], known["approvers"][0]["received"], "one said both");
    pair_up(&pair, 1).await;
    let paired = submit("paired").await;
    let known = pair.enforcer.get(&path(&paired)).await.expect(200).json();
    assert_eq!(known["approvers"].as_array().unwrap().len(), 1);
    assert_eq!(known["approvers"][0]["approverId"], *pair.approver_id);
}

async fn progress_is_for_the_enforcer_that_asked(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("private");
    pair.submit(&id).await.expect(202);
    let unknown = other.enforcer.get(&path("nothing")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let refused = other.enforcer.get(&path(&id)).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    assert_eq!(refused.bytes, unknown.bytes);
    pair.approver.get(&path(&id)).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    world.operator.get(&path(&id)).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.without_key().get(&path(&id)).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    pair.enforcer.get(&path("%00")).await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.withdraw(&id).await.expect(200);
    assert_eq!(pair.enforcer.get(&path(&id)).await.expect(200).json()["state"], "withdrawn");
}
