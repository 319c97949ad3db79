//! `/v1/exchanges/{requestId}` with `wait`, `withdraw` and `refresh`.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use crate::{
    case::cases,
    support::messages::{approval, envelope, hash, soon, withdrawal},
    world::World,
};

cases! {
    status_says_which_state_an_exchange_is_in_and_shows_the_decision,
    status_of_what_one_may_not_see_is_404,
    ids_are_percent_decoded_in_paths_and_compared_byte_by_byte,
    an_id_that_can_not_be_one_is_400,
    a_decision_is_relayed_byte_for_byte,
    wait_is_answered_by_a_decision_that_is_there,
    wait_is_answered_by_a_decision_that_comes,
    wait_ends_with_204_and_the_state,
    wait_on_what_ended_without_a_decision_is_held_a_second,
    wait_refuses_what_is_no_timeout_and_cuts_what_is_too_long,
    wait_is_for_the_enforcer_and_for_what_it_may_see,
    a_connection_is_good_for_more_requests_after_a_wait,
    withdraw_takes_a_pending_exchange_back,
    withdraw_of_what_is_over_is_409,
    withdraw_of_nothing_or_of_anothers_is_404,
    withdraw_of_the_wrong_shape_is_400,
    withdraw_is_for_the_enforcer,
    refresh_is_queued,
    refresh_of_nothing_or_of_what_one_may_not_see_is_404,
    refresh_is_for_the_approver,
}

async fn status_says_which_state_an_exchange_is_in_and_shows_the_decision(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("status");
    pair.submit(&id).await.expect(202);
    let path = format!("/v1/exchanges/{id}");
    let answer = pair.enforcer.get(&path).await.expect(200).json();
    assert_eq!((&answer["msgType"], &answer["requestId"]), (&json!("exchange.status"), &json!(id)));
    let body = &answer["body"];
    assert_eq!(body["state"], "pendingApproval");
    assert_eq!(body["artifactHash"], hash(&id));
    assert_eq!(body["expiresAt"], *crate::support::messages::LATER);
    assert!(body.get("decision").is_none());
    pair.approve(&id).await.expect(200);
    for who in [&pair.enforcer, &pair.approver, &world.operator] {
        let body = who.get(&path).await.expect(200).body();
        assert_eq!((&body["state"], &body["decision"]["decision"]), (&json!("decided"), &json!("approve")));
    }
}

async fn status_of_what_one_may_not_see_is_404(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let id = pair.id("unseen");
    pair.submit(&id).await.expect(202);
    let path = format!("/v1/exchanges/{id}");
    for who in [&stranger.enforcer, &stranger.approver, &world.tenant().1] {
        who.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    }
    pair.enforcer.get("/v1/exchanges/nothing").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.without_key().get(&path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn ids_are_percent_decoded_in_paths_and_compared_byte_by_byte(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("a/B é?");
    pair.submit(&id).await.expect(202);
    let path = id.replace('/', "%2F").replace(' ', "%20").replace('é', "%C3%A9").replace('?', "%3F");
    assert_eq!(pair.enforcer.get(&format!("/v1/exchanges/{path}")).await.expect(200).json()["requestId"], id);
    assert_eq!(
        pair.enforcer.get(&format!("/v1/exchanges/{path}/")).await.expect(200).json()["requestId"],
        id
    );
    pair.enforcer.get(&format!("/v1/exchanges/{}", path.to_lowercase())).await.expect(404);
}

async fn an_id_that_can_not_be_one_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    for id in ["%00", "%ff", "a%0Ab", &"x".repeat(257)] {
        pair.enforcer.get(&format!("/v1/exchanges/{id}")).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn a_decision_is_relayed_byte_for_byte(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("bytes");
    pair.submit(&id).await.expect(202);
    let mut decision = approval(&id, &pair.approver_id);
    let body = decision["body"].take().to_string();
    let body = body.replacen('{', "{ \"policyHints\" :{\"z\":1.0,\"a\":[1e2,\"\\u00e9\\/\"] },\r\n\t", 1);
    let text = decision.to_string().replace("\"body\":null", &format!("\"body\":{body}"));
    pair.approver.post("/v1/decisions", text).await.expect(200);
    for path in [format!("/v1/exchanges/{id}"), format!("/v1/exchanges/{id}/wait?timeout=0")] {
        let answer = pair.enforcer.get(&path).await.expect(200);
        let answer = std::str::from_utf8(&answer.bytes).unwrap();
        assert!(answer.contains(&body), "{body} is not in {answer}");
    }
}

async fn wait_is_answered_by_a_decision_that_is_there(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("there");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let path = format!("/v1/exchanges/{id}/wait");
    let first = pair.enforcer.get(&path).await.expect(200);
    assert_eq!(first.header("content-type"), "application/proto+json");
    let first = first.json();
    assert_eq!(first["msgType"], "decision.deliver");
    assert_eq!(first["recipient"], json!({ "enforcerId": pair.enforcer_id }));
    assert_eq!(first["sender"], json!({ "gatewayId": "gw", "approverId": pair.approver_id }));
    assert_eq!(first["body"], approval(&id, &pair.approver_id)["body"]);
    assert_eq!(pair.enforcer.get(&path).await.expect(200).json()["msgId"], first["msgId"], "stable");
    assert_eq!(pair.state(&id).await, "decided", "being told is not having acknowledged");
}

async fn wait_is_answered_by_a_decision_that_comes(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("comes");
    pair.submit(&id).await.expect(202);
    let (enforcer, path) = (pair.enforcer.clone(), format!("/v1/exchanges/{id}/wait?timeout=60"));
    let waiting = tokio::spawn(async move { enforcer.get(&path).await });
    // A decision between the look and the wait is found all the same, so this need not be exact.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let asked = Instant::now();
    pair.approve(&id).await.expect(200);
    let answer = waiting.await.unwrap().expect(200);
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    assert_eq!(answer.json()["msgType"], "decision.deliver");
}

async fn wait_ends_with_204_and_the_state(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("patience");
    pair.submit(&id).await.expect(202);
    for timeout in [0, 1] {
        let started = Instant::now();
        let answer =
            pair.enforcer.get(&format!("/v1/exchanges/{id}/wait?timeout={timeout}")).await.expect(204);
        assert_eq!(answer.header("proto-exchange-state"), "pendingApproval");
        assert!(answer.bytes.is_empty() && answer.header("x-request-id").len() == 26);
        assert!(started.elapsed() >= Duration::from_secs(timeout));
    }
}

async fn wait_on_what_ended_without_a_decision_is_held_a_second(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("ended");
    pair.submit(&id).await.expect(202);
    pair.withdraw(&id).await.expect(200);
    let started = Instant::now();
    let answer = pair.enforcer.get(&format!("/v1/exchanges/{id}/wait?timeout=60")).await.expect(204);
    assert_eq!(answer.header("proto-exchange-state"), "withdrawn");
    assert!((1..30).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

async fn wait_refuses_what_is_no_timeout_and_cuts_what_is_too_long(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("timeout");
    pair.submit(&id).await.expect(202);
    for timeout in ["-1", "1.5", "soon", "1&timeout=2"] {
        let path = format!("/v1/exchanges/{id}/wait?timeout={timeout}");
        let refused = pair.enforcer.get(&path).await.refuse(400, "PROTO_ERR_VALIDATION");
        assert_eq!(refused.body()["details"]["member"], "timeout");
    }
    pair.approve(&id).await.expect(200);
    pair.enforcer.get(&format!("/v1/exchanges/{id}/wait?timeout=")).await.expect(200);
    pair.enforcer.get(&format!("/v1/exchanges/{id}/wait?timeout=99999999999999999999")).await.expect(200);
}

async fn wait_is_for_the_enforcer_and_for_what_it_may_see(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let id = pair.id("mine");
    pair.submit(&id).await.expect(202);
    let path = format!("/v1/exchanges/{id}/wait?timeout=5");
    pair.approver.get(&path).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    stranger.enforcer.get(&path).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.get("/v1/exchanges/nothing/wait").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.enforcer.without_key().get(&path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn a_connection_is_good_for_more_requests_after_a_wait(world: Arc<World>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let pair = world.pair().await;
    let id = pair.id("keep");
    pair.submit(&id).await.expect(202);
    let key = pair.enforcer.key.clone().unwrap();
    let request =
        |path: &str| format!("GET {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\r\n");
    let mut stream = tokio::net::TcpStream::connect(pair.enforcer.address).await.unwrap();
    // All at once: what follows a wait must not get lost while the connection is held.
    let wait = format!("/v1/exchanges/{id}/wait?timeout=1");
    let text = [request(&wait), request("/healthz"), request(&wait), request("/v1/status")].concat();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    while answers.windows(8).filter(|window| window == b"HTTP/1.1").count() < 4 || !answers.ends_with(b"}") {
        assert!(stream.read_buf(&mut answers).await.unwrap() > 0);
    }
    let answers = String::from_utf8(answers).unwrap();
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["204", "200", "204", "200"], "{answers}");
}

async fn withdraw_takes_a_pending_exchange_back(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("back");
    pair.submit(&id).await.expect(202);
    let answer = pair.withdraw(&id).await.expect(200).json();
    assert_eq!(answer["msgType"], "exchange.withdrawn");
    assert_eq!(answer["body"], json!({ "requestId": id, "state": "withdrawn", "artifactHash": hash(&id) }));
    let inbox = pair.approver.get(&pair.inbox()).await.expect(200);
    assert!(!String::from_utf8_lossy(&inbox.bytes).contains(&id), "it leaves the inbox");
}

async fn withdraw_of_what_is_over_is_409(world: Arc<World>) {
    let pair = world.pair().await;
    let (decided, withdrawn, expired) = (pair.id("decided"), pair.id("withdrawn"), pair.id("expired"));
    pair.submit(&decided).await.expect(202);
    pair.approve(&decided).await.expect(200);
    pair.withdraw(&decided).await.refuse(409, "AlreadyDecidedConflict");
    pair.submit(&withdrawn).await.expect(202);
    pair.withdraw(&withdrawn).await.expect(200);
    pair.withdraw(&withdrawn).await.refuse(409, "PROTO_ERR_STATE");
    let mut short = pair.submission(&expired);
    short["body"]["expiresAt"] = soon(3_000).into();
    pair.enforcer.post("/v1/artifacts", short.to_string()).await.expect(202);
    pair.enforcer.get(&format!("/v1/exchanges/{expired}/wait?timeout=20")).await.expect(204);
    pair.withdraw(&expired).await.refuse(409, "PROTO_ERR_EXPIRED");
}

async fn withdraw_of_nothing_or_of_anothers_is_404(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let id = pair.id("not-yours");
    pair.submit(&id).await.expect(202);
    stranger.withdraw(&id).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.withdraw(&pair.id("nothing")).await.refuse(404, "PROTO_ERR_NOT_FOUND");
}

async fn withdraw_of_the_wrong_shape_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("shape");
    pair.submit(&id).await.expect(202);
    let path = format!("/v1/exchanges/{id}/withdraw");
    let other = withdrawal("another", &pair.enforcer_id).to_string();
    pair.enforcer.post(&path, other).await.refuse(400, "PROTO_ERR_VALIDATION");
    let mut unsent = withdrawal(&id, &pair.enforcer_id);
    unsent["sender"] = json!({});
    pair.enforcer.post(&path, unsent.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.enforcer.post(&path, approval(&id, "x").to_string()).await.refuse(400, "PROTO_ERR_UNSUPPORTED");
    pair.enforcer
        .post_with(&path, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.enforcer.post(&path, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn withdraw_is_for_the_enforcer(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("role");
    pair.submit(&id).await.expect(202);
    let path = format!("/v1/exchanges/{id}/withdraw");
    let body = withdrawal(&id, &pair.enforcer_id).to_string();
    pair.approver.post(&path, &body).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer
        .post(&path, withdrawal(&id, "another").to_string())
        .await
        .refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.without_key().post(&path, &body).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn refresh_is_queued(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("fresh");
    pair.submit(&id).await.expect(202);
    let body = json!({ "reason": "the branch has moved" });
    let sender = json!({ "approverId": pair.approver_id });
    let asked = envelope("refresh.request", &id, sender, body.clone()).to_string();
    let answer = pair.approver.post(&format!("/v1/exchanges/{id}/refresh"), &asked).await.expect(202).json();
    assert_eq!((&answer["msgType"], &answer["body"]), (&json!("refresh.request"), &body));
    let unsent = envelope("refresh.request", &id, json!({}), json!({})).to_string();
    pair.approver.post(&format!("/v1/exchanges/{id}/refresh"), unsent).await.expect(202);
}

async fn refresh_of_nothing_or_of_what_one_may_not_see_is_404(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let id = pair.id("stale");
    pair.submit(&id).await.expect(202);
    let ask = async |who: &crate::world::Pair, id: &str| {
        let asked = envelope("refresh.request", id, json!({ "approverId": who.approver_id }), json!({}));
        who.approver.post(&format!("/v1/exchanges/{id}/refresh"), asked.to_string()).await
    };
    ask(&pair, "nothing").await.refuse(404, "PROTO_ERR_NOT_FOUND");
    ask(&stranger, &id).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let elsewhere =
        envelope("refresh.request", "other", json!({ "approverId": pair.approver_id }), json!({}));
    let path = format!("/v1/exchanges/{id}/refresh");
    pair.approver.post(&path, elsewhere.to_string()).await.refuse(400, "PROTO_ERR_VALIDATION");
    pair.approver
        .post_with(&path, "{}", &[("content-type", "text/html")])
        .await
        .refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.approver.post(&path, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
}

async fn refresh_is_for_the_approver(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("role");
    pair.submit(&id).await.expect(202);
    let asked = envelope("refresh.request", &id, json!({}), json!({})).to_string();
    let path = format!("/v1/exchanges/{id}/refresh");
    pair.enforcer.post(&path, &asked).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.without_key().post(&path, &asked).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}
