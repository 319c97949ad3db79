//! What all endpoints have in common.

use std::{collections::BTreeSet, sync::Arc};

use hyper::Method;
use serde_json::Value;

use crate::{case::cases, world::World};

cases! {
    an_unknown_path_is_404_before_anything_else,
    another_method_is_405_and_says_which_are_allowed,
    a_trailing_slash_makes_no_difference,
    every_answer_has_an_id_and_is_not_cached,
    the_gateway_is_alive_and_ready,
    every_route_is_in_the_openapi_document_and_the_other_way_round,
    errors_are_envelopes_or_bare_by_interface,
    secrets_and_bodies_are_not_logged,
}

async fn an_unknown_path_is_404_before_anything_else(world: Arc<World>) {
    let nobody = world.operator.without_key();
    nobody.get("/v2/artifacts").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    nobody.get("/pages").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    nobody.post("/v1/exchanges//wait/x", "").await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn another_method_is_405_and_says_which_are_allowed(world: Arc<World>) {
    let nobody = world.operator.without_key();
    let refused =
        nobody.call(Method::PUT, "/v1/artifacts", "", &[]).await.refuse(405, "PROTO_ERR_UNSUPPORTED");
    assert_eq!(refused.header("allow"), "POST");
    let refused =
        nobody.call(Method::POST, "/v1/exchanges/r", "", &[]).await.refuse(405, "PROTO_ERR_UNSUPPORTED");
    assert!(refused.header("allow").contains("GET"));
    let refused =
        nobody.call(Method::GET, "/v1/artifact", "", &[]).await.refuse(405, "PROTO_ERR_UNSUPPORTED");
    assert_eq!(refused.header("content-type"), "application/json", "in the form of its row");
    let refused = nobody.call(Method::POST, "/healthz", "", &[]).await.refuse(405, "PROTO_ERR_UNSUPPORTED");
    assert_eq!(
        refused.header("content-type"),
        "application/json",
        "what is not the protocol has no envelopes"
    );
}

async fn a_trailing_slash_makes_no_difference(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("slash");
    pair.enforcer.post("/v1/artifacts/", pair.submission(&id).to_string()).await.expect(202);
    pair.approver.get(&format!("{}/?limit=1", pair.inbox())).await.expect(200);
}

async fn every_answer_has_an_id_and_is_not_cached(world: Arc<World>) {
    let pair = world.pair().await;
    let mut ids = BTreeSet::new();
    for path in ["/healthz", "/v1/status", "/v1/exchanges/nothing", "/nowhere", "/openapi.json"] {
        let answer = pair.enforcer.get(path).await;
        assert_eq!(answer.header("x-request-id").len(), 26, "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert!(ids.insert(answer.header("x-request-id").to_owned()));
    }
    let own = pair.enforcer.call(Method::GET, "/healthz", "", &[("x-request-id", "mine")]).await;
    assert_ne!(own.header("x-request-id"), "mine", "a client's own id gets into no log");
}

async fn the_gateway_is_alive_and_ready(world: Arc<World>) {
    let nobody = world.operator.without_key();
    assert_eq!(nobody.get("/healthz").await.expect(200).json()["status"], "ok");
    assert_eq!(nobody.get("/readyz").await.expect(200).json()["status"], "ready");
}

async fn every_route_is_in_the_openapi_document_and_the_other_way_round(world: Arc<World>) {
    let document = world.operator.without_key().get("/openapi.json").await.expect(200).json();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    // All routes are on one page, one on a line: ("path", method(handler).method(handler)),
    let page = include_str!("../../src/router.rs").split("#[cfg(test)]").next().unwrap();
    let mut routed = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.trim().strip_prefix("(\"/")) {
        let (path, handlers) = line.split_once('"').unwrap();
        for method in ["get", "post", "put", "delete"] {
            if handlers.contains(&format!(" {method}(")) || handlers.contains(&format!(".{method}(")) {
                routed.insert((method.to_uppercase(), format!("/{path}")));
            }
        }
    }
    assert_eq!(page.matches(".route(").count(), 1, "only a group adds routes");
    assert!(routed.len() > 30, "{routed:?}");
    let undocumented: Vec<_> = routed.difference(&documented).collect();
    let unrouted: Vec<_> = documented.difference(&routed).collect();
    assert!(undocumented.is_empty(), "not in openapi.json: {undocumented:?}");
    assert!(unrouted.is_empty(), "not in router.rs: {unrouted:?}");
}

async fn errors_are_envelopes_or_bare_by_interface(world: Arc<World>) {
    let document = world.operator.without_key().get("/openapi.json").await.expect(200).json();
    const GENERIC: [&str; 6] = [
        "/v1/artifact",
        "/v1/decision",
        "/v1/prompt",
        "/v1/session/event",
        "/v1/session/{sessionId}",
        "/v1/status",
    ];
    for path in document["paths"].as_object().unwrap().keys() {
        let protocol = path.starts_with("/v1/") && !GENERIC.contains(&path.as_str());
        let media_type = if protocol { "application/proto+json" } else { "application/json" };
        let concrete = path.replace(['{', '}'], "");
        let answer = world.operator.call(Method::PATCH, &concrete, "", &[]).await.expect(405);
        assert_eq!(answer.header("content-type"), media_type, "{path}");
    }
}

async fn secrets_and_bodies_are_not_logged(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("canary-request-id");
    let mut submission = pair.submission(&id);
    submission["body"]["ciphertext"] = "canary-ciphertext".into();
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    pair.enforcer.get(&format!("/v1/exchanges/{id}?secret=canary-query")).await.expect(200);
    pair.enforcer.with_key("canary-key").get("/v1/status").await.expect(401);
    let begun = crate::pairing::initiate(&pair, 50).await.expect(200).json();
    let code = begun["code"].as_str().unwrap();
    pair.approver.get(&format!("/v1/pairing/resolve/{code}")).await.expect(200);
    pair.enforcer.post("/v1/artifacts", "{\"canary-json\":").await.expect(400);
    let mut log = String::new();
    while !log.contains("\"status\":400") {
        log.clone_from(&world.gateway.log.lock());
        tokio::task::yield_now().await;
    }
    for secret in
        ["canary", code, pair.enforcer.key.as_deref().unwrap(), begun["nonce"].as_str().unwrap(), "csk_"]
    {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("every line is an object");
        assert!(line["level"].is_string() && line["timestamp"].is_string());
    }
}
