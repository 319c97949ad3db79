//! Keys that replace themselves.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    support::{client::Client, polling::until, ws::Socket},
    world::World,
};

cases! {
    a_key_of_any_role_replaces_itself_and_both_work_for_a_while,
    a_rotated_key_ends_on_time_with_what_it_holds,
    a_rotation_of_the_wrong_shape_is_refused,
    a_ticket_can_not_rotate,
}

const PATH: &str = "/platform/v1/keys/rotate";
const NONCE: &str = "0123456789abcdef";

fn with_key(client: &Client, made: &Value) -> Client {
    client.with_key(made["key"].as_str().unwrap())
}

async fn a_key_of_any_role_replaces_itself_and_both_work_for_a_while(world: Arc<World>) {
    let (tenant, operator) = world.tenant();
    for (role, id) in [("enforcer", Some("robot")), ("approver", Some("ada")), ("operator", None)] {
        let mut spec = json!({ "role": role, "label": "laptop" });
        if let Some(id) = id {
            spec["id"] = id.into();
        }
        let made = operator.post("/platform/v1/keys", spec.to_string()).await.expect(201).json();
        let old = with_key(&operator, &made);
        let body = json!({ "nonce": NONCE }).to_string();
        let rotated = old.post(PATH, &body).await.expect(201).json();
        spec["tenant"] = tenant.clone().into();
        for member in ["keyId", "key", "previousExpiresAt"] {
            assert_ne!(rotated[member], made[member]);
            spec[member] = rotated[member].clone();
        }
        assert_eq!(rotated, spec);
        assert_eq!(old.post(PATH, &body).await.expect(201).json(), rotated, "the same again");
        let other = json!({ "nonce": "0123456789abcdeX" }).to_string();
        old.post(PATH, &other).await.refuse(409, "PROTO_ERR_STATE");
        let new = with_key(&operator, &rotated);
        new.post(PATH, &body).await.refuse(429, "PROTO_ERR_RATE_LIMITED");
        old.get("/v1/status").await.expect(200);
        new.get("/v1/status").await.expect(200);
        let listed = operator.get("/platform/v1/keys").await.expect(200).json()["keys"].take();
        let entry = listed.as_array().unwrap().iter().find(|key| key["keyId"] == made["keyId"]).unwrap();
        assert_eq!(entry["expiresAt"], rotated["previousExpiresAt"]);
    }
}

async fn a_rotated_key_ends_on_time_with_what_it_holds(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = Socket::open(&pair.enforcer, "enforcer", &pair.enforcer_id).await;
    let body = json!({ "nonce": NONCE, "overlapSeconds": 7 }).to_string();
    let rotated = pair.enforcer.post(PATH, body).await.expect(201).json();
    pair.enforcer.get("/v1/status").await.expect(200);
    // Other nodes may remember the key as it was for 5 s, less than it has left: none takes it after its end.
    until("the key ends", 30, || async { pair.enforcer.get("/v1/status").await.status == 401 }).await;
    pair.enforcer.get("/v1/status").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    assert_eq!(socket.closed().await, Some(1008));
    with_key(&pair.enforcer, &rotated).get("/v1/status").await.expect(200);
}

async fn a_rotation_of_the_wrong_shape_is_refused(world: Arc<World>) {
    let pair = world.pair().await;
    for body in [
        json!({}),
        json!({ "nonce": "short" }),
        json!({ "nonce": NONCE, "overlapSeconds": -1 }),
        json!({ "nonce": NONCE, "overlapSeconds": 604_801 }),
        json!({ "nonce": NONCE, "overlapSeconds": 0.5 }),
        json!({ "nonce": NONCE, "keyId": "01j2v8v3k6b2z9x6g1v7y2qk8h" }),
    ] {
        pair.approver.post(PATH, body.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    pair.approver.post(PATH, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    let wrong = [("content-type", "application/proto+json")];
    pair.approver.post_with(PATH, "{}", &wrong).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
}

async fn a_ticket_can_not_rotate(world: Arc<World>) {
    let pair = world.pair().await;
    let ticket = pair.enforcer.post("/platform/v1/tickets", "{}").await.expect(200).json();
    let ticket = format!("ticket.{}", ticket["ticket"].as_str().unwrap());
    let (nobody, body) = (pair.enforcer.without_key(), json!({ "nonce": NONCE }).to_string());
    for header in [("sec-websocket-protocol", ticket.as_str()), ("x-api-key", &ticket)] {
        nobody.post_with(PATH, &body, &[header]).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
}
