//! Invitations.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;

use crate::{cases, world::World};

cases! {
    an_invitation_is_made_listed_and_revoked,
    an_invitation_request_of_the_wrong_shape_is_400,
    invitations_are_for_operators,
}

const PATH: &str = "/platform/v1/invitations";

async fn an_invitation_is_made_listed_and_revoked(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let body = json!({ "role": "approver", "id": "ada", "label": "phone", "expiresInSeconds": 604_800 });
    let made = operator.post(PATH, body.to_string()).await.expect(201).json();
    let invitation = made["invitation"].as_str().unwrap();
    let link = format!("http://{}/join#{invitation}", world.gateway.address);
    assert_eq!(made["link"], link, "where it listens, since there is no public_url");
    operator.post(PATH, r#"{"role":"enforcer","id":"robot"}"#).await.expect(201);
    let listed = operator.get(PATH).await.expect(200);
    assert!(!String::from_utf8_lossy(&listed.bytes).contains("csi_"), "invitations are never shown again");
    let listed = listed.json()["invitations"].take();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let entry = listed.as_array().unwrap().iter().find(|entry| entry["id"] == "ada").unwrap();
    assert_eq!((&entry["role"], &entry["label"]), (&json!("approver"), &json!("phone")));
    assert_eq!((&entry["invitationId"], &entry["expiresAt"]), (&made["invitationId"], &made["expiresAt"]));
    let path = format!("{PATH}/{}", made["invitationId"].as_str().unwrap());
    world.tenant().1.delete(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let revoked = operator.delete(&path).await.expect(200).json();
    assert_eq!(operator.delete(&path).await.expect(200).json(), revoked);
    let listed = operator.get(PATH).await.expect(200).json()["invitations"].take();
    let entry = listed.as_array().unwrap().iter().find(|entry| entry["id"] == "ada").unwrap();
    assert_eq!(entry["revokedAt"], revoked["revokedAt"]);
    operator.delete(&format!("{PATH}/nonsense")).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn an_invitation_request_of_the_wrong_shape_is_400(world: Arc<World>) {
    for body in [
        json!({}),
        json!({ "role": "operator" }),
        json!({ "role": "approver" }),
        json!({ "role": "approver", "any": true }),
        json!({ "role": "approver", "id": "x", "any": false }),
        json!({ "role": "enforcer", "id": "" }),
        json!({ "role": "enforcer", "id": "x", "expiresInSeconds": 0 }),
        json!({ "role": "enforcer", "id": "x", "expiresInSeconds": 1.5 }),
        json!({ "role": "enforcer", "id": "x", "expiresInSeconds": 604_801 }),
        json!({ "role": "enforcer", "id": "x", "expiresInSeconds": "60" }),
    ] {
        world.operator.post(PATH, body.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn invitations_are_for_operators(world: Arc<World>) {
    let pair = world.pair().await;
    let one = format!("{PATH}/{}", "0".repeat(42));
    for (method, path) in [(Method::GET, PATH), (Method::POST, PATH), (Method::DELETE, one.as_str())] {
        for who in [&pair.enforcer, &pair.approver] {
            who.call(method.clone(), path, "{}", &[]).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        }
        let nobody = pair.enforcer.without_key();
        nobody.call(method, path, "{}", &[]).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
    let wrong = [("content-type", "application/proto+json")];
    world.operator.post_with(PATH, "{}", &wrong).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
    world.operator.post(PATH, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}
