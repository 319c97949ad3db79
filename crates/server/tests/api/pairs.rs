//! `/platform/v1/pairs`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    pairing::{complete, initiate, pair_up},
    support::{
        client::Client,
        messages::{bundle, decision_about, envelope, hash},
    },
    world::{Pair, World},
};

cases! {
    both_parties_and_the_operator_list_a_pair,
    a_credential_for_any_id_lists_all_pairs_of_its_tenant,
    pairs_come_in_pages_with_a_cursor,
    a_list_of_another_s_pairs_is_403_and_a_malformed_query_400,
    a_removed_pair_ends_its_token_and_its_key,
    ids_with_slashes_make_no_difference,
    sixteen_keys_and_then_one_more_after_a_removal,
    another_s_pair_is_404_with_the_same_body_as_an_unknown_one,
}

const PATH: &str = "/platform/v1/pairs";

async fn pairs_of(who: &Client, query: &str) -> Vec<Value> {
    let answer = who.get(&format!("{PATH}{query}")).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    answer.json()["pairs"].as_array().unwrap().clone()
}

fn path_of(pair: &Value) -> String {
    format!("{PATH}/{}", pair["pairId"].as_str().unwrap())
}

async fn both_parties_and_the_operator_list_a_pair(world: Arc<World>) {
    let pair = world.pair().await;
    assert_eq!(pairs_of(&pair.enforcer, "").await, [""; 0]);
    pair_up(&pair, 1).await;
    let listed = pairs_of(&pair.enforcer, "").await;
    let expected = json!({
        "pairId": listed[0]["pairId"], "enforcerId": pair.enforcer_id, "approverId": pair.approver_id,
        "enforcerLabel": "Robot", "workspaceName": "widgets", "createdAt": listed[0]["createdAt"],
        "signingKey": bundle(1).1.verifying_key().to_string(),
    });
    assert_eq!(listed, [expected]);
    assert_eq!(pairs_of(&pair.approver, "").await, listed);
    let query = format!("?enforcerId={}", pair.enforcer_id);
    assert_eq!(pairs_of(&pair.enforcer, &query).await, listed);
    assert_eq!(pairs_of(&world.operator, &query).await, listed);
    let query = format!("?approverId={}&enforcerId=", pair.approver_id);
    assert_eq!(pairs_of(&world.operator, &query).await, listed);
    assert_eq!(pairs_of(&pair.enforcer, "?approverId=nobody").await, [""; 0]);
    let (_, stranger) = world.tenant();
    assert_eq!(pairs_of(&stranger, "").await, [""; 0]);
}

async fn a_credential_for_any_id_lists_all_pairs_of_its_tenant(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let any = async |role: &str| {
        let made = operator.post("/platform/v1/keys", json!({ "role": role, "any": true }).to_string()).await;
        operator.with_key(made.expect(201).json()["key"].as_str().unwrap())
    };
    let (enforcer, approver) = (any("enforcer").await, any("approver").await);
    for (number, robot) in ["one", "two"].iter().enumerate() {
        let seed = u8::try_from(number).unwrap() + 1;
        let request = json!({ "enforcerId": robot, "publicKey": bundle(seed + 100).0 }).to_string();
        let begun = enforcer.post("/v1/pairing/initiate", request).await.expect(200).json();
        let request = json!({ "nonce": begun["nonce"], "approverId": "ada", "publicKey": bundle(seed).0 });
        approver.post("/v1/pairing/complete", request.to_string()).await.expect(200);
    }
    let all = pairs_of(&enforcer, "").await;
    assert_eq!(all.len(), 2);
    assert_eq!(pairs_of(&approver, "").await, all);
    assert_eq!(pairs_of(&enforcer, "?enforcerId=two").await, all[1..]);
    enforcer.delete(&path_of(&all[0])).await.expect(200);
    approver.delete(&path_of(&all[1])).await.expect(200);
    assert_eq!(pairs_of(&operator, "").await, [""; 0]);
}

async fn pairs_come_in_pages_with_a_cursor(world: Arc<World>) {
    let pair = world.pair().await;
    for seed in 1..6 {
        pair_up(&pair, seed).await;
    }
    let all = pairs_of(&pair.approver, "").await;
    let (mut listed, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = pair.approver.get(&format!("{PATH}{query}")).await.expect(200).json();
        listed.extend(page["pairs"].as_array().unwrap().clone());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        pair.enforcer.get(&format!("{PATH}?cursor={cursor}")).await.refuse(400, "PROTO_ERR_CURSOR");
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!((listed.len(), &listed), (5, &all));
    pair.approver.get(&format!("{PATH}?cursor=forged")).await.refuse(400, "PROTO_ERR_CURSOR");
}

async fn a_list_of_another_s_pairs_is_403_and_a_malformed_query_400(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let of_enforcer = format!("{PATH}?enforcerId={}", other.enforcer_id);
    let of_approver = format!("{PATH}?approverId={}", other.approver_id);
    pair.enforcer.get(&of_enforcer).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver.get(&of_approver).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    for query in ["?limit=0", "?limit=x", "?enforcerId=%00", "?approverId=%00", "?enforcerId=a&enforcerId=b"]
    {
        world.operator.get(&format!("{PATH}{query}")).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    let nobody = pair.enforcer.without_key();
    nobody.get(PATH).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    nobody.delete(&format!("{PATH}/x")).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    pair.enforcer.delete(&format!("{PATH}/%ff")).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn decide(pair: &Pair, id: &str, key: Option<&countersign_wire::keys::SigningKey>) -> (u16, String) {
    let decision = decision_about(id, &hash(id), "approve", key);
    let body = envelope("decision.submit", id, json!({ "approverId": pair.approver_id }), decision);
    pair.approver.post("/v1/decisions", body.to_string()).await.outcome()
}

async fn a_removed_pair_ends_its_token_and_its_key(world: Arc<World>) {
    let pair = world.pair().await;
    let begun = initiate(&pair, 101).await.expect(200).json();
    let token = complete(&pair, &begun["nonce"], 1).await.expect(200).json()["routingToken"].take();
    let routed = async |id: &str| {
        let mut submission = pair.submission(id);
        submission.as_object_mut().unwrap().remove("recipient");
        submission["trace"] = json!({ "routingToken": token });
        pair.enforcer.post("/v1/artifacts", submission.to_string()).await
    };
    let (before, after) = (pair.id("before"), pair.id("after"));
    routed(&before).await.expect(202);
    let listed = pairs_of(&pair.approver, "").await;
    let removed = pair.approver.delete(&path_of(&listed[0])).await.expect(200).json();
    assert_eq!(removed["pairId"], listed[0]["pairId"]);
    assert!(removed["removedAt"].as_str() > listed[0]["createdAt"].as_str());
    routed(&after).await.refuse(422, "PROTO_ERR_NO_RECIPIENT");
    let inbox = pair.approver.get(&pair.inbox()).await.expect(200).body();
    let mut items = inbox["items"].as_array().unwrap().iter();
    assert!(items.any(|item| item["requestId"] == *before), "what was sent before is still there");
    let refused = (403, "PROTO_ERR_SIGNATURE_INVALID".to_owned());
    assert_eq!(decide(&pair, &before, Some(&bundle(1).1)).await, refused);
    assert_eq!(decide(&pair, &before, None).await, refused, "an approver that had a key stays strict");
    pair.approver.delete(&path_of(&listed[0])).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    assert_eq!(pairs_of(&pair.enforcer, "").await, [""; 0]);
}

async fn ids_with_slashes_make_no_difference(world: Arc<World>) {
    let pair = world.pair().await;
    let enforcer_id = format!("{}/a b?c&d=é", pair.enforcer_id);
    let approver_id = format!("{}/%2F#", pair.approver_id);
    let pair = Pair {
        enforcer: pair.enforcer.with_key(&world.key("enforcer", &enforcer_id).await),
        approver: pair.approver.with_key(&world.key("approver", &approver_id).await),
        enforcer_id,
        approver_id,
        ..pair
    };
    pair_up(&pair, 1).await;
    let listed = pairs_of(&pair.enforcer, "").await;
    assert_eq!(
        (&listed[0]["enforcerId"], &listed[0]["approverId"]),
        (&json!(pair.enforcer_id), &json!(pair.approver_id))
    );
    pair.enforcer.delete(&path_of(&listed[0])).await.expect(200);
    assert_eq!(pairs_of(&pair.approver, "").await, [""; 0]);
}

async fn sixteen_keys_and_then_one_more_after_a_removal(world: Arc<World>) {
    let pair = world.pair().await;
    for seed in 1..17 {
        pair_up(&pair, seed).await;
    }
    let begun = initiate(&pair, 117).await.expect(200).json();
    complete(&pair, &begun["nonce"], 17).await.refuse(400, "PROTO_ERR_VALIDATION");
    let listed = pairs_of(&pair.approver, "").await;
    pair.approver.delete(&path_of(&listed[0])).await.expect(200);
    complete(&pair, &begun["nonce"], 17).await.expect(200);
    assert_eq!(pairs_of(&pair.approver, "").await.len(), 16);
}

async fn another_s_pair_is_404_with_the_same_body_as_an_unknown_one(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    pair_up(&pair, 1).await;
    let path = path_of(&pairs_of(&pair.enforcer, "").await[0]);
    let unknown = other.enforcer.delete(&format!("{PATH}/nonsense")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let (_, stranger) = world.tenant();
    for who in [&other.enforcer, &other.approver, &stranger] {
        let refused = who.delete(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
        assert_eq!(refused.bytes, unknown.bytes);
    }
    world.operator.delete(&path).await.expect(200);
}
