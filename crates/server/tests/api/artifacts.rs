//! `POST /v1/artifacts`.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;

use crate::{
    case::cases,
    support::messages::{LATER, envelope, hash, open, soon},
    world::World,
};

cases! {
    a_sealed_artifact_is_accepted,
    an_open_artifact_is_accepted,
    the_same_submission_again_is_the_same_answer_and_says_so,
    another_submission_under_the_same_id_is_409,
    another_enforcer_under_the_same_id_is_409,
    a_hash_that_does_not_fit_is_422,
    a_body_of_the_wrong_shape_is_422_and_names_the_member,
    the_expiry_of_the_body_counts_where_the_envelope_has_one_too,
    an_artifact_that_is_sealed_in_place_is_relayed_byte_for_byte,
    an_integer_that_readers_disagree_about_is_422,
    an_artifact_that_is_past_already_is_422,
    an_unknown_routing_token_is_422,
    requested_actions_that_are_broken_are_422,
    an_envelope_of_the_wrong_shape_is_400_and_names_the_member,
    json_that_two_readers_could_take_for_two_things_is_400,
    another_message_type_is_400,
    no_credential_or_a_broken_one_is_401,
    an_approver_can_not_submit,
    an_enforcer_can_not_submit_for_another,
    a_body_that_declares_too_much_is_413_even_without_a_credential,
    a_body_that_turns_out_too_large_is_413,
    metadata_and_trace_have_a_limit_of_their_own,
    another_media_type_or_encoding_is_415,
    an_idempotency_key_is_for_one_request,
    a_policy_can_ask_for_sealed_bodies_and_idempotency_keys_and_short_lives,
}

const PATH: &str = "/v1/artifacts";

async fn a_sealed_artifact_is_accepted(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("sealed");
    let answer = pair.submit(&id).await.expect(202);
    assert_eq!(answer.header("content-type"), "application/proto+json");
    let envelope = answer.json();
    assert_eq!(envelope["msgType"], "artifact.accepted");
    assert_eq!(envelope["requestId"], id.as_str());
    assert_eq!(envelope["sender"], json!({ "gatewayId": "gw" }));
    assert_eq!(envelope["msgId"].as_str().unwrap().len(), 26);
    assert_eq!(
        envelope["body"],
        json!({ "requestId": id, "state": "pendingApproval", "artifactHash": hash(&id) })
    );
    assert_eq!(answer.header("idempotent-replayed"), "");
}

async fn an_open_artifact_is_accepted(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("open");
    let submission = envelope("artifact.submit", &id, json!({ "enforcerId": pair.enforcer_id }), open(&id));
    pair.enforcer.post(PATH, submission.to_string()).await.expect(202);
}

async fn the_same_submission_again_is_the_same_answer_and_says_so(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("twice");
    let first = pair.submit(&id).await.expect(202).body();
    pair.approve(&id).await.expect(200);
    let again = pair.submit(&id).await.expect(202);
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.body(), first, "the answer is the one that was given");
    assert_eq!(pair.state(&id).await, "decided", "and nothing was done again");
}

async fn another_submission_under_the_same_id_is_409(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("taken");
    pair.submit(&id).await.expect(202);
    let mut other = pair.submission(&id);
    other["body"]["artifactHash"] = hash("other").into();
    pair.enforcer.post(PATH, other.to_string()).await.refuse(409, "AlreadyExistsConflict");
}

async fn another_enforcer_under_the_same_id_is_409(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("theirs");
    pair.submit(&id).await.expect(202);
    let refused = other.submit(&id).await.refuse(409, "AlreadyExistsConflict");
    assert_eq!(refused.json()["requestId"], id.as_str());
}

async fn a_hash_that_does_not_fit_is_422(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("hash");
    let mut artifact = open(&id);
    artifact["payload"]["command"] = "rm -rf /".into();
    let submission = envelope("artifact.submit", &id, json!({ "enforcerId": pair.enforcer_id }), artifact);
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(422, "PROTO_ERR_HASH_MISMATCH");
    pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn a_body_of_the_wrong_shape_is_422_and_names_the_member(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("shape");
    for (member, value, at) in [
        ("artifactHash", json!("XYZ"), "artifactHash"),
        ("artifactType", json!("poem.review"), "artifactType"),
        ("metadata", json!(null), "metadata"),
        ("ciphertext", json!(1), "ciphertext"),
    ] {
        let mut submission = pair.submission(&id);
        submission["body"][member] = value;
        let refused =
            pair.enforcer.post(PATH, submission.to_string()).await.refuse(422, "PROTO_ERR_STRUCTURE");
        assert_eq!(refused.body()["details"]["member"], at, "{member}");
    }
    let mut timeless = pair.submission(&id);
    timeless["body"].as_object_mut().unwrap().remove("expiresAt");
    pair.enforcer.post(PATH, timeless.to_string()).await.refuse(422, "PROTO_ERR_STRUCTURE");
}

async fn the_expiry_of_the_body_counts_where_the_envelope_has_one_too(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("two-times");
    let mut two_times = pair.submission(&id);
    two_times["expiresAt"] = "2020-01-01T00:00:00Z".into();
    pair.enforcer.post(PATH, two_times.to_string()).await.expect(202);
    let status = pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200).body();
    assert_eq!(status["expiresAt"], *LATER);
}

async fn an_artifact_that_is_sealed_in_place_is_relayed_byte_for_byte(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("in-place");
    let mut artifact = open(&id);
    // The hash is that of the plaintext, which the gateway can't know.
    artifact["payload"] = json!({ "ciphertext": "c2VhbGVk", "n": 1e20 });
    artifact["metadata"] = json!({ "routingToken": "kept" });
    let sender = json!({ "enforcerId": pair.enforcer_id });
    let mut submission = envelope("artifact.submit", &id, sender, artifact.clone());
    submission["recipient"] = json!({ "approverId": pair.approver_id });
    pair.enforcer.post(PATH, submission.to_string()).await.expect(202);
    let page = pair.approver.get(&pair.inbox()).await.expect(200);
    assert!(String::from_utf8_lossy(&page.bytes).contains(&artifact.to_string()), "nothing is taken out");
}

async fn an_integer_that_readers_disagree_about_is_422(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("integer");
    for number in ["9007199254740993", "9007199254740993.0", "1e20", "100000000000000000000"] {
        let artifact = open(&id).to_string().replace("1.0", number);
        let text =
            envelope("artifact.submit", &id, json!({ "enforcerId": pair.enforcer_id }), json!({ "BODY": 1 }))
                .to_string()
                .replace(r#"{"BODY":1}"#, &artifact);
        pair.enforcer.post(PATH, text).await.refuse(422, "PROTO_ERR_CANONICALIZATION");
    }
}

async fn an_artifact_that_is_past_already_is_422(world: Arc<World>) {
    let pair = world.pair().await;
    let mut submission = pair.submission(&pair.id("past"));
    submission["body"]["expiresAt"] = "2020-01-01T00:00:00Z".into();
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(422, "PROTO_ERR_EXPIRED");
}

async fn an_unknown_routing_token_is_422(world: Arc<World>) {
    let pair = world.pair().await;
    let mut submission = pair.submission(&pair.id("token"));
    submission["body"]["metadata"] = json!({ "routingToken": "made-up" });
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(422, "PROTO_ERR_NO_RECIPIENT");
}

async fn requested_actions_that_are_broken_are_422(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("actions");
    let mut artifact = open(&id);
    artifact["extensions"] = json!({ "org.proto.requestedActions": { "version": 1, "actions": [] } });
    artifact["artifactHash"] = crate::support::messages::hash_without(&artifact, "artifactHash").into();
    let submission = envelope("artifact.submit", &id, json!({ "enforcerId": pair.enforcer_id }), artifact);
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(422, "PROTO_ERR_STRUCTURE");
}

async fn an_envelope_of_the_wrong_shape_is_400_and_names_the_member(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("envelope");
    for (member, value, at) in [
        ("sender", json!({}), "sender.enforcerId"),
        ("sender", json!({ "enforcerId": null }), "sender.enforcerId"),
        ("createdAt", json!("yesterday"), "createdAt"),
        ("requestId", json!(""), "requestId"),
        ("msgId", json!(7), "msgId"),
    ] {
        let mut submission = pair.submission(&id);
        submission[member] = value;
        let refused =
            pair.enforcer.post(PATH, submission.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
        assert_eq!(refused.body()["details"]["member"], at);
    }
    let mut more = pair.submission(&id);
    more["surplus"] = 1.into();
    pair.enforcer.post(PATH, more.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn json_that_two_readers_could_take_for_two_things_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    let good = pair.submission(&pair.id("json")).to_string();
    let twice = good.replacen('{', r#"{"msgType":"artifact.submit","#, 1);
    for bad in [
        twice,
        format!("\u{feff}{good}"),
        good.replace("sealed", r"\ud800"),
        String::new(),
        "[]".into(),
        good[1..].into(),
    ] {
        pair.enforcer.post(PATH, bad).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn another_message_type_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    let mut submission = pair.submission(&pair.id("type"));
    submission["msgType"] = "decision.submit".into();
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(400, "PROTO_ERR_UNSUPPORTED");
}

async fn no_credential_or_a_broken_one_is_401(world: Arc<World>) {
    let pair = world.pair().await;
    let body = pair.submission(&pair.id("nobody")).to_string();
    let good = pair.enforcer.key.clone().unwrap();
    let typo = format!("{}{}", &good[..good.len() - 1], if good.ends_with('0') { "1" } else { "0" });
    let stranger = countersign_wire::api_key::ApiKey::new(
        "acme".parse().unwrap(),
        good.parse::<countersign_wire::api_key::ApiKey>().unwrap().key_id().clone(),
        [0; 32],
    );
    for key in [typo.as_str(), &stranger.unwrap().expose(), "", "csk_acme"] {
        let refused = pair.enforcer.with_key(key).post(PATH, &body).await;
        assert_eq!(refused.refuse(401, "PROTO_ERR_UNAUTHENTICATED").header("www-authenticate"), "Bearer");
    }
    pair.enforcer.without_key().post(PATH, &body).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    let basic = [("authorization", "Basic YTpi")];
    pair.enforcer.post_with(PATH, &body, &basic).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    let header = [("x-api-key", good.as_str())];
    pair.enforcer.without_key().post_with(PATH, &body, &header).await.expect(202);
}

async fn an_approver_can_not_submit(world: Arc<World>) {
    let pair = world.pair().await;
    let body = pair.submission(&pair.id("role")).to_string();
    pair.approver.post(PATH, &body).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    world.operator.post(PATH, &body).await.refuse(403, "PROTO_ERR_FORBIDDEN");
}

async fn an_enforcer_can_not_submit_for_another(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let body = other.submission(&pair.id("other")).to_string();
    pair.enforcer.post(PATH, body).await.refuse(403, "PROTO_ERR_FORBIDDEN");
}

async fn a_body_that_declares_too_much_is_413_even_without_a_credential(world: Arc<World>) {
    let pair = world.pair().await;
    let much = "x".repeat(4 << 20);
    pair.enforcer.without_key().post(PATH, &much).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver.post("/v1/decisions", &much[..70_000]).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn a_body_that_turns_out_too_large_is_413(world: Arc<World>) {
    let pair = world.pair().await;
    let fits = pair.id("fits");
    let mut submission = pair.submission(&fits);
    submission["body"]["ciphertext"] = "x".repeat(2 << 20).into();
    pair.enforcer.post(PATH, submission.to_string()).await.expect(202);
    submission["requestId"] = pair.id("large").into();
    submission["body"]["ciphertext"] = "x".repeat((2 << 20) * 4 / 3 + (64 << 10) + 10).into();
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    // Without a declared length, as chunks.
    let answer = crate::support::client::chunked(&pair.enforcer, PATH, "x".repeat(4 << 20)).await;
    answer.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn metadata_and_trace_have_a_limit_of_their_own(world: Arc<World>) {
    let pair = world.pair().await;
    let mut submission = pair.submission(&pair.id("trace"));
    submission["trace"] = json!({ "note": "x".repeat(17 << 10) });
    pair.enforcer.post(PATH, submission.to_string()).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn another_media_type_or_encoding_is_415(world: Arc<World>) {
    let pair = world.pair().await;
    let body = pair.submission(&pair.id("media")).to_string();
    for header in [
        ("content-type", "text/plain"),
        ("content-type", "application/x-www-form-urlencoded"),
        ("content-encoding", "gzip"),
        ("content-encoding", "identity, br"),
    ] {
        pair.enforcer.post_with(PATH, &body, &[header]).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
    }
    for header in [
        ("content-type", "application/json"),
        ("content-type", "Application/Proto+JSON; charset=utf-8"),
        ("content-encoding", "identity"),
    ] {
        pair.enforcer.post_with(PATH, &body, &[header]).await.expect(202);
    }
}

async fn an_idempotency_key_is_for_one_request(world: Arc<World>) {
    let pair = world.pair().await;
    let key = [("idempotency-key", "once")];
    let (one, two) =
        (pair.submission(&pair.id("one")).to_string(), pair.submission(&pair.id("two")).to_string());
    pair.enforcer.post_with(PATH, &one, &key).await.expect(202);
    pair.enforcer.post_with(PATH, &one, &key).await.expect(202);
    pair.enforcer.post_with(PATH, &two, &key).await.refuse(409, "PROTO_ERR_IDEMPOTENCY");
    // The state's own answer comes first: a replay is a replay, a conflict a conflict.
    pair.enforcer.post(PATH, &two).await.expect(202);
    assert_eq!(
        pair.enforcer.post_with(PATH, &two, &key).await.expect(202).header("idempotent-replayed"),
        "true"
    );
    let other = world.pair().await;
    let theirs = other.submission(&other.id("three")).to_string();
    other.enforcer.post_with(PATH, theirs, &key).await.expect(202);
    pair.enforcer.post_with(PATH, &two, &[("idempotency-key", "")]).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn a_policy_can_ask_for_sealed_bodies_and_idempotency_keys_and_short_lives(world: Arc<World>) {
    let (_, operator) = world.tenant();
    let made = operator.post("/platform/v1/keys", r#"{"role":"enforcer","any":true}"#).await.expect(201);
    let enforcer = operator.with_key(made.json()["key"].as_str().unwrap());
    let set = async |policy: serde_json::Value| {
        operator.call(Method::PUT, "/platform/v1/policy", &policy.to_string(), &[]).await.expect(200)
    };
    let sender = json!({ "enforcerId": "robot" });
    let clear = envelope("artifact.submit", "clear", sender.clone(), open("clear")).to_string();
    let sealed =
        |id: &str| envelope("artifact.submit", id, sender.clone(), crate::support::messages::sealed(id));
    set(json!({ "requireSealed": true })).await;
    let denied = enforcer.post(PATH, &clear).await.refuse(403, "PROTO_ERR_POLICY_DENY");
    assert_eq!(denied.body()["details"], json!({ "policy": "requireSealed" }));
    enforcer.post(PATH, sealed("sealed").to_string()).await.expect(202);
    set(json!({ "requireIdempotencyKey": true })).await;
    let refused = enforcer.post(PATH, &clear).await.refuse(400, "PROTO_ERR_VALIDATION");
    assert_eq!(refused.body()["details"]["member"], "Idempotency-Key");
    enforcer.post_with(PATH, &clear, &[("idempotency-key", "k")]).await.expect(202);
    set(json!({ "maxLifeSeconds": 60 })).await;
    assert_eq!(sealed("long")["body"]["expiresAt"], *LATER);
    enforcer.post(PATH, sealed("long").to_string()).await.refuse(403, "PROTO_ERR_POLICY_DENY");
    let mut short = sealed("short");
    short["body"]["expiresAt"] = soon(30_000).into();
    enforcer.post(PATH, short.to_string()).await.expect(202);
}
