//! `/v1/approvers/{approverId}/inbox`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    support::messages::{LATER, sealed, soon},
    world::{Pair, World},
};

cases! {
    an_inbox_shows_pending_requests_oldest_first,
    a_request_is_relayed_byte_for_byte_without_its_routing_keys,
    an_open_artifact_is_relayed_whole_and_its_routing_token_is_not,
    a_request_to_nobody_is_in_every_inbox,
    what_is_decided_or_withdrawn_leaves_the_inbox,
    what_expires_moves_to_the_expired_list,
    a_page_has_as_many_items_as_asked_for_and_leads_to_the_next,
    a_walk_meets_what_is_pending_throughout_exactly_once,
    a_page_ends_at_four_mebibytes,
    a_cursor_that_is_not_of_this_list_is_400,
    a_limit_that_is_none_is_400,
    an_inbox_is_for_its_approver,
    a_deleted_item_is_gone_for_this_approver_only_and_can_be_decided,
    deleting_what_is_not_there_is_404,
}

async fn items(pair: &Pair, path: &str) -> Vec<Value> {
    pair.approver.get(path).await.expect(200).body()["items"].as_array().unwrap().clone()
}

fn ids(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["requestId"].as_str().unwrap()).collect()
}

async fn own_ids(pair: &Pair, path: &str) -> Vec<String> {
    let suffix = pair.id("");
    ids(&items(pair, path).await).into_iter().filter(|id| id.ends_with(&suffix)).map(str::to_owned).collect()
}

async fn an_inbox_shows_pending_requests_oldest_first(world: Arc<World>) {
    let pair = world.pair().await;
    let (one, two) = (pair.id("one"), pair.id("two"));
    pair.submit(&one).await.expect(202);
    pair.submit(&two).await.expect(202);
    let answer = pair.approver.get(&pair.inbox()).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/proto+json");
    let page = answer.json();
    assert_eq!(page["msgType"], "inbox.page");
    assert_eq!(page["requestId"], answer.header("x-request-id"), "it concerns no exchange");
    let own: Vec<&Value> = page["body"]["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["recipient"]["approverId"] == *pair.approver_id)
        .collect();
    let item = own.iter().find(|item| item["requestId"] == *one).unwrap();
    assert_eq!(item["msgType"], "approval.request");
    assert_eq!(item["sender"], json!({ "gatewayId": "gw", "enforcerId": pair.enforcer_id }));
    assert_eq!(item["expiresAt"], *LATER);
    assert_eq!(own_ids(&pair, &pair.inbox()).await, [one, two]);
}

async fn a_request_is_relayed_byte_for_byte_without_its_routing_keys(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("bytes");
    let later = &*LATER;
    let body = format!(
        "{{ \"artifactHash\" : \"{}\",\r\n\t\"ciphertext\":{{\"z\":1.0,\"a\":\"\\u00e9\\/\"}}, \"metadata\":{{ \"approverId\":\"x\" ,\"b\":1e2,\"routingToken\":\"SECRET\",\"tenantId\":\"t\"}},\"artifactType\":\"plan.review\",\"more\":[ ],\"expiresAt\":\"{later}\" }}",
        crate::support::messages::hash(&id)
    );
    // The token is a real one: an unknown one would be refused.
    crate::pairing::pair_up(&pair, 31).await;
    let token = crate::pairing::last_token(&pair).await;
    let body = body.replace("SECRET", &token);
    let mut submission = pair.submission(&id);
    submission["body"] = Value::Null;
    submission["trace"] = json!({ "routingToken": token, "keep": "this" });
    let text = submission.to_string().replace("\"body\":null", &format!("\"body\":{body}"));
    pair.enforcer.post("/v1/artifacts", text).await.expect(202);
    let answer = pair.approver.get(&pair.inbox()).await.expect(200);
    let answer = std::str::from_utf8(&answer.bytes).unwrap();
    let (before, after) = body.split_once("{ \"approverId\"").unwrap();
    let (_, after) = after.split_once('}').unwrap();
    assert!(answer.contains(before) && answer.contains(after), "{answer}");
    assert!(answer.contains("\"b\":1e2") && answer.contains("\"keep\":\"this\""), "{answer}");
    for gone in [token.as_str(), "routingToken", "tenantId", "\"approverId\":\"x\""] {
        assert!(!answer.contains(gone), "{gone} in {answer}");
    }
}

async fn an_open_artifact_is_relayed_whole_and_its_routing_token_is_not(world: Arc<World>) {
    let pair = world.pair().await;
    crate::pairing::pair_up(&pair, 32).await;
    let token = crate::pairing::last_token(&pair).await;
    let id = pair.id("open");
    let body = crate::support::messages::open(&id);
    let mut submission = crate::support::messages::envelope(
        "artifact.submit",
        &id,
        json!({ "enforcerId": pair.enforcer_id }),
        body.clone(),
    );
    submission["trace"] = json!({ "routingToken": token });
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    let items = items(&pair, &pair.inbox()).await;
    let item = items.iter().find(|item| item["requestId"] == *id).unwrap();
    assert_eq!(item["body"], body);
    assert!(!item.to_string().contains(&token));
}

async fn a_request_to_nobody_is_in_every_inbox(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("shared");
    let mut submission = pair.submission(&id);
    submission.as_object_mut().unwrap().remove("recipient");
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    for approver in [&pair, &other] {
        let items = walk(approver, 200, "").await;
        let item = items.iter().find(|item| item["requestId"] == *id).unwrap();
        assert_eq!(item["recipient"]["approverId"], *approver.approver_id);
    }
    other
        .approver
        .post("/v1/decisions", crate::support::messages::approval(&id, &other.approver_id).to_string())
        .await
        .expect(200);
    assert!(!walk(&pair, 200, "").await.iter().any(|item| item["requestId"] == *id));
}

async fn what_is_decided_or_withdrawn_leaves_the_inbox(world: Arc<World>) {
    let pair = world.pair().await;
    let (stays, decided, withdrawn) = (pair.id("stays"), pair.id("decided"), pair.id("withdrawn"));
    for id in [&stays, &decided, &withdrawn] {
        pair.submit(id).await.expect(202);
    }
    pair.approve(&decided).await.expect(200);
    pair.withdraw(&withdrawn).await.expect(200);
    assert_eq!(own_ids(&pair, &pair.inbox()).await, [stays]);
}

async fn what_expires_moves_to_the_expired_list(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("expires");
    let mut submission = pair.submission(&id);
    submission["body"]["expiresAt"] = soon(3_000).into();
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    let before = items(&pair, &pair.inbox()).await;
    let before = before.iter().find(|item| item["requestId"] == *id).unwrap();
    pair.enforcer.get(&format!("/v1/exchanges/{id}/wait?timeout=20")).await.expect(204);
    assert!(own_ids(&pair, &pair.inbox()).await.is_empty());
    let expired = format!("{}/expired", pair.inbox());
    let after = walk(&pair, 200, "/expired").await;
    let after = after.iter().find(|item| item["requestId"] == *id).unwrap();
    assert_eq!(after, before, "the same message, in another list");
    pair.approver.get(&format!("{expired}?limit=0")).await.refuse(400, "PROTO_ERR_VALIDATION");
    world.pair().await.approver.get(&expired).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver.without_key().get(&expired).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

/// A whole list, page by page.
async fn walk(pair: &Pair, limit: usize, list: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{}{list}?limit={limit}{cursor}", pair.inbox());
        let page = pair.approver.get(&path).await.expect(200).body();
        let on_page = page["items"].as_array().unwrap();
        assert!(on_page.len() <= limit);
        items.extend(on_page.iter().cloned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

async fn a_page_has_as_many_items_as_asked_for_and_leads_to_the_next(world: Arc<World>) {
    let pair = world.pair().await;
    let sent: Vec<String> = (0..7).map(|number| pair.id(&format!("page-{number}"))).collect();
    for id in &sent {
        pair.submit(id).await.expect(202);
    }
    for limit in [1, 2, 3, 50, 9_999] {
        let walked = walk(&pair, limit.min(200), "").await;
        let own: Vec<&str> = ids(&walked).into_iter().filter(|id| sent.contains(&(*id).to_owned())).collect();
        assert_eq!(own, sent, "limit {limit}");
    }
    pair.approver.get(&format!("{}?limit=9999", pair.inbox())).await.expect(200);
}

async fn a_walk_meets_what_is_pending_throughout_exactly_once(world: Arc<World>) {
    let pair = Arc::new(world.pair().await);
    let stay: Vec<String> = (0..20).map(|number| pair.id(&format!("stay-{number}"))).collect();
    for id in &stay {
        pair.submit(id).await.expect(202);
    }
    let (churning, stop) = (Arc::clone(&pair), tokio_stop());
    let ended = stop.clone();
    let churn = tokio::spawn(async move {
        let mut number = 0;
        while !ended.load(std::sync::atomic::Ordering::Relaxed) {
            let id = churning.id(&format!("come-and-go-{number}"));
            number += 1;
            churning.submit(&id).await.expect(202);
            match number % 3 {
                0 => drop(churning.approve(&id).await.expect(200)),
                1 => drop(churning.withdraw(&id).await.expect(200)),
                _ => {}
            }
        }
    });
    for limit in [1, 2, 3, 5, 7, 13, 50, 200] {
        let walked = walk(&pair, limit, "").await;
        let ids = ids(&walked);
        for id in &stay {
            let met = ids.iter().filter(|met| *met == id).count();
            assert_eq!(met, 1, "{id} with limit {limit}");
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    churn.await.unwrap();
}

fn tokio_stop() -> Arc<std::sync::atomic::AtomicBool> {
    Arc::default()
}

async fn a_page_ends_at_four_mebibytes(world: Arc<World>) {
    let pair = world.pair().await;
    for number in 0..3 {
        let id = pair.id(&format!("large-{number}"));
        let mut submission = pair.submission(&id);
        submission["body"]["ciphertext"] = "x".repeat(3 << 19).into();
        pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    }
    let page = pair.approver.get(&pair.inbox()).await.expect(200);
    assert!(page.bytes.len() < 5 << 20, "{}", page.bytes.len());
    assert!(page.body()["nextCursor"].is_string());
    let walked = walk(&pair, 200, "").await;
    assert_eq!(
        ids(&walked).iter().filter(|id| id.starts_with("large-") && id.ends_with(&pair.id(""))).count(),
        3
    );
}

async fn a_cursor_that_is_not_of_this_list_is_400(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    for number in 0..2 {
        pair.submit(&pair.id(&format!("cursor-{number}"))).await.expect(202);
    }
    let page = pair.approver.get(&format!("{}?limit=1", pair.inbox())).await.body();
    let cursor = page["nextCursor"].as_str().unwrap();
    pair.approver.get(&format!("{}?cursor={cursor}", pair.inbox())).await.expect(200);
    pair.approver
        .get(&format!("{}/expired?cursor={cursor}", pair.inbox()))
        .await
        .refuse(400, "PROTO_ERR_CURSOR");
    other.approver.get(&format!("{}?cursor={cursor}", other.inbox())).await.refuse(400, "PROTO_ERR_CURSOR");
    pair.approver.get(&format!("{}?cursor=made-up", pair.inbox())).await.refuse(400, "PROTO_ERR_CURSOR");
}

async fn a_limit_that_is_none_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    pair.approver.get(&format!("{}?cursor=&limit=", pair.inbox())).await.expect(200);
    for limit in ["0", "-1", "ten"] {
        pair.approver
            .get(&format!("{}?limit={limit}", pair.inbox()))
            .await
            .refuse(400, "PROTO_ERR_VALIDATION");
    }
}

async fn an_inbox_is_for_its_approver(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    other.approver.get(&pair.inbox()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.enforcer.get(&pair.inbox()).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver.without_key().get(&pair.inbox()).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn a_deleted_item_is_gone_for_this_approver_only_and_can_be_decided(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let id = pair.id("hidden");
    let mut submission = pair.submission(&id);
    submission["body"] = sealed(&id);
    submission.as_object_mut().unwrap().remove("recipient");
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    let answer = pair.approver.delete(&format!("{}/{id}", pair.inbox())).await.expect(200).json();
    assert_eq!(
        (&answer["msgType"], &answer["body"]["state"]),
        (&json!("exchange.status"), &json!("pendingApproval"))
    );
    assert!(!ids(&walk(&pair, 200, "").await).contains(&id.as_str()));
    assert!(ids(&walk(&other, 200, "").await).contains(&id.as_str()));
    pair.approver.delete(&format!("{}/{id}", pair.inbox())).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    pair.approve(&id).await.expect(200);
}

async fn deleting_what_is_not_there_is_404(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    pair.approver.delete(&format!("{}/nothing", pair.inbox())).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let id = pair.id("theirs");
    pair.submit(&id).await.expect(202);
    other.approver.delete(&format!("{}/{id}", other.inbox())).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    other.approver.delete(&format!("{}/{id}", pair.inbox())).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    pair.approver
        .without_key()
        .delete(&format!("{}/{id}", pair.inbox()))
        .await
        .refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    pair.approver.delete(&format!("{}/%00", pair.inbox())).await.refuse(400, "PROTO_ERR_VALIDATION");
}
