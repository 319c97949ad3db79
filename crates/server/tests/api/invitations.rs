//! Invitations, and joining with them.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;

use crate::{case::cases, world::World};

cases! {
    an_invitation_is_made_listed_and_revoked,
    an_invitation_request_of_the_wrong_shape_is_400,
    invitations_are_for_operators,
    a_newcomer_joins_once_with_a_key_of_their_own,
    an_invitation_that_is_no_longer_good_is_404_with_the_same_bytes,
    a_join_of_the_wrong_shape_is_refused,
    an_invitation_says_what_it_is_for_before_it_is_used,
}

const PATH: &str = "/platform/v1/invitations";

async fn an_invitation_is_made_listed_and_revoked(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let body = json!({ "role": "approver", "id": "ada", "label": "phone", "expiresInSeconds": 604_800 });
    let made = operator.post(PATH, body.to_string()).await.expect(201).json();
    let invitation = made["invitation"].as_str().unwrap();
    // Without a public_url it is where the node listens, and of several nodes nobody knows which it was.
    let link = made["link"].as_str().unwrap();
    assert!(link.contains("://127.0.0.1:") && link.ends_with(&format!("/join#{invitation}")), "{link}");
    assert!(world.is_cluster || link.contains(&world.gateway.address.to_string()), "{link}");
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

const JOIN: &str = "/platform/v1/join";

fn join(invitation: &str, nonce: &str) -> String {
    json!({ "invitation": invitation, "nonce": nonce }).to_string()
}

async fn a_newcomer_joins_once_with_a_key_of_their_own(world: Arc<World>) {
    let (tenant, operator) = world.tenant();
    let newcomer = operator.without_key();
    for (role, id) in [("enforcer", "robot"), ("approver", "ada")] {
        let body = json!({ "role": role, "id": id, "label": "phone" });
        let made = operator.post(PATH, body.to_string()).await.expect(201).json();
        let invitation = made["invitation"].as_str().unwrap();
        let key = newcomer.post(JOIN, join(invitation, "0123456789abcdef")).await.expect(201).json();
        let known = json!({
            "keyId": key["keyId"], "key": key["key"], "tenant": tenant, "role": role, "id": id, "label": "phone",
        });
        assert_eq!(key, known);
        let again = newcomer.post(JOIN, join(invitation, "0123456789abcdef")).await.expect(201).json();
        assert_eq!(again, key);
        newcomer.post(JOIN, join(invitation, "0123456789abcdeX")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
        newcomer.with_key(key["key"].as_str().unwrap()).get("/v1/status").await.expect(200);
        let listed = operator.get(PATH).await.expect(200).json()["invitations"].take();
        let entry = listed.as_array().unwrap().iter().find(|entry| entry["id"] == id).unwrap();
        assert!(entry["keyId"] == key["keyId"] && entry["usedAt"].is_string(), "{entry}");
    }
    assert!(!world.gateway.log.lock().contains("csi_"), "invitations are not logged");
}

async fn an_invitation_that_is_no_longer_good_is_404_with_the_same_bytes(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let invite = async |seconds: u32| {
        let body = json!({ "role": "approver", "id": "ada", "expiresInSeconds": seconds });
        operator.post(PATH, body.to_string()).await.expect(201).json()
    };
    let (expired, revoked, used) = (invite(1).await, invite(60).await, invite(60).await);
    let text = |made: &serde_json::Value| made["invitation"].as_str().unwrap().to_owned();
    operator.delete(&format!("{PATH}/{}", revoked["invitationId"].as_str().unwrap())).await.expect(200);
    operator.post(JOIN, join(&text(&used), "0123456789abcdef")).await.expect(201);
    let forged = text(&used).replacen("csi_", "csi_x", 1);
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let newcomer = operator.without_key();
    let nonsense = newcomer.post(JOIN, join("nonsense", "0123456789abcdeX")).await;
    let nonsense = nonsense.refuse(404, "PROTO_ERR_NOT_FOUND");
    for invitation in [text(&expired), text(&revoked), text(&used), forged, String::new()] {
        let answer = newcomer.post(JOIN, join(&invitation, "0123456789abcdeX")).await;
        assert_eq!((answer.status, &answer.bytes), (404, &nonsense.bytes), "{invitation}");
    }
}

async fn a_join_of_the_wrong_shape_is_refused(world: Arc<World>) {
    let newcomer = world.operator.without_key();
    for body in [
        json!({}),
        json!({ "invitation": "x" }),
        json!({ "nonce": "0123456789abcdef" }),
        json!({ "invitation": 1, "nonce": "0123456789abcdef" }),
        json!({ "invitation": "x", "nonce": "0123456789abcde" }),
        json!({ "invitation": "x", "nonce": "0123456789abcde+" }),
        json!({ "invitation": "x", "nonce": "a".repeat(65) }),
        json!({ "invitation": "x", "nonce": "0123456789abcdef", "id": "ada" }),
    ] {
        newcomer.post(JOIN, body.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    newcomer.post(JOIN, "x".repeat(5_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    let wrong = [("content-type", "application/proto+json")];
    newcomer.post_with(JOIN, "{}", &wrong).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
    newcomer.get(JOIN).await.refuse(405, "PROTO_ERR_UNSUPPORTED");
}

const PREVIEW: &str = "/platform/v1/join/preview";

async fn an_invitation_says_what_it_is_for_before_it_is_used(world: Arc<World>) {
    let (tenant, operator) = world.tenant();
    let newcomer = operator.without_key();
    let body = json!({ "role": "approver", "id": "ada", "label": "phone" }).to_string();
    let made = operator.post(PATH, body).await.expect(201).json();
    let preview = json!({ "invitation": made["invitation"] }).to_string();
    for _ in 0..3 {
        let described = newcomer.post(PREVIEW, preview.clone()).await.expect(200).json();
        let expected = json!({
            "tenant": tenant, "role": "approver", "id": "ada", "label": "phone", "expiresAt": made["expiresAt"],
        });
        assert_eq!(described, expected);
    }
    let invitation = made["invitation"].as_str().unwrap();
    newcomer.post(JOIN, join(invitation, "0123456789abcdef")).await.expect(201);
    let used = newcomer.post(PREVIEW, preview).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let nonsense = newcomer.post(PREVIEW, r#"{"invitation":"nonsense"}"#).await;
    assert_eq!(nonsense.refuse(404, "PROTO_ERR_NOT_FOUND").bytes, used.bytes);
    for body in [r"{}", r#"{"invitation":1}"#, r#"{"invitation":"x","nonce":"0123456789abcdef"}"#] {
        newcomer.post(PREVIEW, body).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    newcomer.post(PREVIEW, "x".repeat(5_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    let wrong = [("content-type", "application/proto+json")];
    newcomer.post_with(PREVIEW, "{}", &wrong).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
}
