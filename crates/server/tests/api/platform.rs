//! What is outside of the protocol: keys, policy, cancelling.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;

use crate::{
    case::cases,
    support::{
        messages::{soon, submission},
        polling::until,
    },
    world::World,
};

cases! {
    a_key_is_made_listed_and_revoked,
    a_key_has_a_label_and_an_end,
    keys_and_invitations_come_in_pages_with_a_cursor,
    a_request_lives_a_year_at_most_unless_the_policy_says_otherwise,
    a_key_request_of_the_wrong_shape_is_400,
    a_policy_is_set_and_read,
    cancelling_ends_a_pending_exchange_and_nothing_else,
    the_platform_is_for_operators,
    tenants_do_not_meet,
}

async fn a_key_is_made_listed_and_revoked(world: Arc<World>) {
    let (tenant, operator) = world.tenant();
    let made =
        operator.post("/platform/v1/keys", r#"{"role":"enforcer","id":"robot"}"#).await.expect(201).json();
    assert_eq!(
        (&made["tenant"], &made["role"], &made["id"]),
        (&json!(tenant), &json!("enforcer"), &json!("robot"))
    );
    let key_id = made["keyId"].as_str().unwrap();
    let enforcer = operator.with_key(made["key"].as_str().unwrap());
    enforcer.get("/v1/status").await.expect(200);
    let listed = operator.get("/platform/v1/keys").await.expect(200);
    assert!(!String::from_utf8_lossy(&listed.bytes).contains("csk_"), "keys are never shown again");
    let entry =
        listed.json()["keys"].as_array().unwrap().iter().find(|key| key["keyId"] == key_id).unwrap().clone();
    assert_eq!((&entry["role"], &entry["id"]), (&json!("enforcer"), &json!("robot")));
    let path = format!("/platform/v1/keys/{key_id}");
    world.tenant().1.delete(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    operator.delete(&path).await.expect(200);
    until("a revoked key is refused", 15, || async { enforcer.get("/v1/status").await.status == 401 }).await;
    operator.delete("/platform/v1/keys/nonsense").await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn keys_and_invitations_come_in_pages_with_a_cursor(world: Arc<World>) {
    let (_, operator) = world.tenant();
    for (list, path) in [("keys", "/platform/v1/keys"), ("invitations", "/platform/v1/invitations")] {
        for number in 0..5 {
            let body = json!({ "role": "enforcer", "id": format!("robot-{number}") });
            operator.post(path, body.to_string()).await.expect(201);
        }
        let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
        loop {
            let page = operator.get(&format!("{path}{query}")).await.expect(200).json();
            assert!(page[list].as_array().unwrap().len() <= 2);
            seen.extend(
                page[list].as_array().unwrap().iter().filter_map(|it| it["id"].as_str().map(str::to_owned)),
            );
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            world.tenant().1.get(&format!("{path}?cursor={cursor}")).await.refuse(400, "PROTO_ERR_CURSOR");
            query = format!("?limit=2&cursor={cursor}");
        }
        seen.sort();
        assert_eq!(seen, (0..5).map(|number| format!("robot-{number}")).collect::<Vec<_>>(), "{list}");
        operator.get(&format!("{path}?limit=0")).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn a_request_lives_a_year_at_most_unless_the_policy_says_otherwise(world: Arc<World>) {
    let pair = world.pair().await;
    let submit = async |name: &str, days: u64| {
        let id = pair.id(name);
        let mut request = submission(&id, &pair.enforcer_id, &pair.approver_id);
        request["body"]["expiresAt"] = soon(days * 24 * 3_600_000).into();
        pair.enforcer.post("/v1/artifacts", request.to_string()).await
    };
    submit("year", 365).await.expect(202);
    submit("longer", 367).await.refuse(403, "PROTO_ERR_POLICY_DENY");
    let mut never = submission(&pair.id("never"), &pair.enforcer_id, &pair.approver_id);
    never["body"]["expiresAt"] = "9999-12-31T23:59:59Z".into();
    pair.enforcer.post("/v1/artifacts", never.to_string()).await.refuse(403, "PROTO_ERR_POLICY_DENY");
}

async fn a_key_has_a_label_and_an_end(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let expires_at = soon(6_000);
    let key = json!({ "role": "operator", "label": "laptop\u{202e}", "expiresAt": expires_at });
    let made = operator.post("/platform/v1/keys", key.to_string()).await.expect(201).json();
    assert_eq!((&made["label"], &made["expiresAt"]), (&json!("laptop\u{fffd}"), &json!(expires_at)));
    let listed = operator.get("/platform/v1/keys").await.expect(200).json()["keys"].take();
    let entry = listed.as_array().unwrap().iter().find(|key| key["keyId"] == made["keyId"]).unwrap();
    assert_eq!((&entry["label"], &entry["expiresAt"]), (&made["label"], &made["expiresAt"]));
    let expiring = operator.with_key(made["key"].as_str().unwrap());
    expiring.get("/platform/v1/keys").await.expect(200);
    until("the key expires", 30, || async { expiring.get("/v1/status").await.status == 401 }).await;
    expiring.get("/platform/v1/keys").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    operator.get("/platform/v1/keys").await.expect(200);
}

async fn a_key_request_of_the_wrong_shape_is_400(world: Arc<World>) {
    for body in [
        json!({ "role": "operator", "expiresAt": "2020-01-01T00:00:00Z" }),
        json!({ "role": "operator", "expiresAt": 1 }),
        json!({ "role": "operator", "label": 1 }),
        json!({ "role": "king", "id": "x" }),
        json!({ "role": "enforcer" }),
        json!({ "role": "enforcer", "id": "x", "any": true }),
        json!({ "role": "approver", "id": "" }),
        json!({ "role": "approver", "id": "x", "more": 1 }),
        json!({}),
    ] {
        world.operator.post("/platform/v1/keys", body.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn a_policy_is_set_and_read(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let path = "/platform/v1/policy";
    let open =
        json!({ "requireSealed": false, "requireRegisteredSigner": false, "requireIdempotencyKey": false });
    assert_eq!(operator.get(path).await.expect(200).json(), open);
    let strict = json!({
        "requireSealed": true, "requireRegisteredSigner": true, "requireIdempotencyKey": true, "maxLifeSeconds": 60,
    });
    let set = operator.call(Method::PUT, path, &strict.to_string(), &[]).await.expect(200).json();
    assert_eq!((set, operator.get(path).await.expect(200).json()), (strict.clone(), strict));
    for bad in [
        json!({ "requireSealed": 1 }),
        json!({ "maxLifeSeconds": 0 }),
        json!({ "maxLifeSeconds": 1.5 }),
        json!({ "typo": true }),
    ] {
        operator.call(Method::PUT, path, &bad.to_string(), &[]).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn cancelling_ends_a_pending_exchange_and_nothing_else(world: Arc<World>) {
    let pair = world.pair().await;
    let (pending, decided) = (pair.id("pending"), pair.id("decided"));
    pair.submit(&pending).await.expect(202);
    pair.submit(&decided).await.expect(202);
    pair.approve(&decided).await.expect(200);
    let cancel =
        async |id: &str| world.operator.post(&format!("/platform/v1/exchanges/{id}/cancel"), "").await;
    assert_eq!(cancel(&pending).await.expect(200).json()["state"], "cancelled");
    cancel(&pending).await.expect(200);
    assert_eq!(pair.state(&pending).await, "cancelled");
    cancel(&decided).await.refuse(409, "AlreadyDecidedConflict");
    cancel("nothing").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    cancel("%00").await.refuse(400, "PROTO_ERR_VALIDATION");
    let answer = pair.enforcer.get(&format!("/v1/exchanges/{pending}/wait?timeout=5")).await.expect(204);
    assert_eq!(answer.header("proto-exchange-state"), "cancelled");
}

async fn the_platform_is_for_operators(world: Arc<World>) {
    let pair = world.pair().await;
    for (method, path) in [
        (Method::GET, "/platform/v1/keys"),
        (Method::POST, "/platform/v1/keys"),
        (Method::DELETE, "/platform/v1/keys/01j2v8v3k6b2z9x6g1v7y2qk8h"),
        (Method::GET, "/platform/v1/policy"),
        (Method::PUT, "/platform/v1/policy"),
        (Method::POST, "/platform/v1/exchanges/r/cancel"),
    ] {
        for who in [&pair.enforcer, &pair.approver] {
            who.call(method.clone(), path, "{}", &[]).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        }
        let nobody = pair.enforcer.without_key();
        nobody.call(method.clone(), path, "{}", &[]).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
        if method == Method::PUT || path == "/platform/v1/keys" && method == Method::POST {
            let wrong = [("content-type", "application/proto+json")];
            world.operator.call(method.clone(), path, "{}", &wrong).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
            world
                .operator
                .call(method, path, &"x".repeat(70_000), &[])
                .await
                .refuse(413, "PROTO_ERR_TOO_LARGE");
        }
    }
}

async fn tenants_do_not_meet(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("same");
    pair.submit(&id).await.expect(202);
    let (_, operator) = world.tenant();
    let key = async |role: &str, id: &str| {
        let made = operator.post("/platform/v1/keys", json!({ "role": role, "id": id }).to_string()).await;
        operator.with_key(made.expect(201).json()["key"].as_str().unwrap())
    };
    // The same ids in another tenant.
    let enforcer = key("enforcer", &pair.enforcer_id).await;
    let approver = key("approver", &pair.approver_id).await;
    enforcer.get(&format!("/v1/exchanges/{id}")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    assert_eq!(approver.get(&pair.inbox()).await.expect(200).body()["items"], json!([]));
    let decision = crate::support::messages::approval(&id, &pair.approver_id).to_string();
    approver.post("/v1/decisions", &decision).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    operator
        .post(&format!("/platform/v1/exchanges/{id}/cancel"), "")
        .await
        .refuse(404, "PROTO_ERR_NOT_FOUND");
    enforcer.post("/v1/artifacts", pair.submission(&id).to_string()).await.expect(202);
    approver.post("/v1/decisions", &decision).await.expect(200);
    assert_eq!(pair.state(&id).await, "pendingApproval", "theirs is decided, ours is not");
}
