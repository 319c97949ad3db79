//! `/v1/pairing` and `/v1/presence`.

use std::sync::Arc;

use countersign_wire::keys::SigningKey;
use serde_json::{Value, json};

use crate::{
    case::cases,
    support::{client::Answer, messages::bundle},
    world::{Pair, World},
};

cases! {
    a_code_leads_to_a_pair_and_both_sides_learn_of_it,
    initiate_refuses_what_is_malformed_and_who_may_not,
    a_code_that_leads_nowhere_is_404_however_it_is_wrong,
    the_sixth_wrong_code_must_wait,
    complete_is_once_and_for_whom_it_is_bound_to,
    status_is_for_the_two_parties,
    presence_lists_enforcers_that_have_called_and_is_scoped_to_the_tenant,
    presence_of_nobody_is_404,
}

pub async fn initiate(pair: &Pair, seed: u8) -> Answer {
    let request = json!({
        "enforcerId": pair.enforcer_id, "enforcerLabel": "Robot", "workspaceName": "widgets", "publicKey": bundle(seed).0,
    });
    pair.enforcer.post("/v1/pairing/initiate", request.to_string()).await
}

pub async fn complete(pair: &Pair, nonce: &Value, seed: u8) -> Answer {
    let request = json!({ "nonce": nonce, "approverId": pair.approver_id, "publicKey": bundle(seed).0 });
    pair.approver.post("/v1/pairing/complete", request.to_string()).await
}

/// Pairs the two, and returns the approver's key.
pub async fn pair_up(pair: &Pair, seed: u8) -> SigningKey {
    let begun = initiate(pair, seed + 100).await.expect(200).json();
    complete(pair, &begun["nonce"], seed).await.expect(200);
    bundle(seed).1
}

/// A token that leads to the approver.
pub async fn last_token(pair: &Pair) -> String {
    let begun = initiate(pair, 99).await.expect(200).json();
    let done = complete(pair, &begun["nonce"], 98).await.expect(200).json();
    done["routingToken"].as_str().unwrap().to_owned()
}

async fn a_code_leads_to_a_pair_and_both_sides_learn_of_it(world: Arc<World>) {
    let pair = world.pair().await;
    let answer = initiate(&pair, 1).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let begun = answer.json();
    let code = begun["code"].as_str().unwrap();
    assert!(code.len() == 9 && code.as_bytes()[4] == b'-', "{code}");
    let status = async |who: &crate::support::client::Client| {
        who.get(&format!("/v1/pairing/status/{}", begun["nonce"].as_str().unwrap())).await
    };
    assert_eq!(
        status(&pair.enforcer).await.expect(200).json(),
        json!({ "status": "pending", "expiresAt": begun["expiresAt"] })
    );
    let typed = code.replace('-', "").to_lowercase();
    let resolved = pair.approver.get(&format!("/v1/pairing/resolve/{typed}")).await.expect(200).json();
    let expected = json!({
        "nonce": begun["nonce"], "enforcerId": pair.enforcer_id, "enforcerLabel": "Robot", "workspaceName": "widgets",
        "publicKey": bundle(1).0,
    });
    assert_eq!(resolved, expected);
    assert_eq!(status(&pair.approver).await.expect(200).json()["status"], "resolved");
    let completed = complete(&pair, &begun["nonce"], 2).await.expect(200).json();
    assert_eq!(
        (&completed["enforcerLabel"], &completed["workspaceName"]),
        (&json!("Robot"), &json!("widgets"))
    );
    let received = status(&pair.enforcer).await.expect(200).json();
    assert_eq!(received["status"], "completed");
    assert_eq!(received["approverId"], *pair.approver_id);
    assert_eq!(received["publicKey"], bundle(2).0);
    assert_eq!(received["routingToken"], completed["routingToken"]);
}

async fn initiate_refuses_what_is_malformed_and_who_may_not(world: Arc<World>) {
    let pair = world.pair().await;
    let path = "/v1/pairing/initiate";
    let with = |key: &str, label: &str| {
        json!({ "enforcerId": pair.enforcer_id, "enforcerLabel": label, "publicKey": key }).to_string()
    };
    for body in [with("v1.broken", "x"), with("", "x"), "{}".into(), "x".into()] {
        pair.enforcer.post(path, body).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    // A label is cut and cleaned, never a reason to refuse.
    let long = format!("a\u{202e}b\n{}", "x".repeat(200));
    let begun = pair.enforcer.post(path, with("opaque", &long)).await.expect(200).json();
    let code = begun["code"].as_str().unwrap();
    let resolved = pair.approver.get(&format!("/v1/pairing/resolve/{code}")).await.expect(200).json();
    let shown = format!("a\u{fffd}b\u{fffd}{}", "x".repeat(124));
    assert_eq!((&resolved["enforcerLabel"], &resolved["workspaceName"]), (&json!(shown), &json!("")));
    pair.approver.post(path, with("opaque", "x")).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    world.pair().await.enforcer.post(path, with("opaque", "x")).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer
        .without_key()
        .post(path, with("opaque", "x"))
        .await
        .refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    pair.enforcer
        .post_with(path, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.enforcer.post(path, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn a_code_that_leads_nowhere_is_404_however_it_is_wrong(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let used = initiate(&pair, 3).await.json();
    complete(&pair, &used["nonce"], 4).await.expect(200);
    let bound = initiate(&pair, 5).await.json();
    let bound = bound["code"].as_str().unwrap();
    other.approver.get(&format!("/v1/pairing/resolve/{bound}")).await.expect(200);
    for code in ["BBBB-BBBB", "nonsense", "AAAA-AAAA", used["code"].as_str().unwrap(), bound] {
        pair.approver.get(&format!("/v1/pairing/resolve/{code}")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    pair.approver.get("/v1/pairing/resolve/%ff").await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.enforcer.get("/v1/pairing/resolve/BBBB-BBBB").await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver
        .without_key()
        .get("/v1/pairing/resolve/BBBB-BBBB")
        .await
        .refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn the_sixth_wrong_code_must_wait(world: Arc<World>) {
    let pair = world.pair().await;
    for _ in 0..5 {
        pair.approver.get("/v1/pairing/resolve/BBBB-BBBB").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    let right = initiate(&pair, 6).await.json();
    let path = format!("/v1/pairing/resolve/{}", right["code"].as_str().unwrap());
    let refused = pair.approver.get(&path).await.refuse(429, "PROTO_ERR_RATE_LIMITED");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=600).contains(&wait), "{wait}");
    assert_eq!(refused.body()["retryable"], true);
}

async fn complete_is_once_and_for_whom_it_is_bound_to(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let begun = initiate(&pair, 10).await.json();
    pair.approver.get(&format!("/v1/pairing/resolve/{}", begun["code"].as_str().unwrap())).await.expect(200);
    complete(&other, &begun["nonce"], 11).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    complete(&pair, &json!("made-up"), 11).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    complete(&pair, &begun["nonce"], 10).await.refuse(400, "PROTO_ERR_VALIDATION");
    complete(&pair, &begun["nonce"], 11).await.expect(200);
    complete(&pair, &begun["nonce"], 11).await.refuse(409, "PROTO_ERR_STATE");
    let path = "/v1/pairing/complete";
    let request =
        json!({ "nonce": begun["nonce"], "approverId": pair.approver_id, "publicKey": bundle(11).0 })
            .to_string();
    other.approver.post(path, &request).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.post(path, &request).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver.without_key().post(path, &request).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    pair.approver
        .post_with(path, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.approver.post(path, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn status_is_for_the_two_parties(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let begun = initiate(&pair, 20).await.json();
    let path = format!("/v1/pairing/status/{}", begun["nonce"].as_str().unwrap());
    for stranger in [&other.enforcer, &other.approver, &pair.approver, &world.operator] {
        stranger.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    pair.enforcer.get("/v1/pairing/status/made-up").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.get("/v1/pairing/status/%00").await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.enforcer.without_key().get(&path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn presence_lists_enforcers_that_have_called_and_is_scoped_to_the_tenant(world: Arc<World>) {
    let pair = world.pair().await;
    pair.submit(&pair.id("here")).await.expect(202);
    let path = format!("/v1/presence/enforcers/{}", pair.enforcer_id);
    // It is written a moment after the call.
    let one = loop {
        let answer = pair.approver.get(&path).await;
        if answer.status == 200 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(one.header("content-type"), "application/json");
    let one = one.json();
    assert_eq!((&one["status"], &one["transport"]), (&json!("online"), &json!("poll")));
    assert_eq!(one["enforcerDeviceId"], *pair.enforcer_id);
    let list = pair.enforcer.get("/v1/presence/enforcers").await.expect(200).json();
    assert!(list.as_array().unwrap().iter().any(|record| record["enforcerDeviceId"] == *pair.enforcer_id));
    let (_, stranger) = world.tenant();
    assert_eq!(stranger.get("/v1/presence/enforcers").await.expect(200).json(), json!([]));
    stranger.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn presence_of_nobody_is_404(world: Arc<World>) {
    let pair = world.pair().await;
    pair.enforcer.get("/v1/presence/enforcers/nobody").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.get("/v1/presence/enforcers/%00").await.refuse(400, "PROTO_ERR_VALIDATION");
    for path in ["/v1/presence/enforcers", "/v1/presence/enforcers/nobody"] {
        pair.enforcer.without_key().get(path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    }
}
