//! `/v1/ws`: what is pushed and submitted over WebSockets.

use std::{sync::Arc, time::Duration};

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

use crate::{
    case::cases,
    pairing::pair_up,
    support::{
        messages::{approval, envelope, hash, prompt, prompt_ack, snapshot, withdrawal},
        ws::Socket,
    },
    world::{Pair, World},
};

// CONTRIBUTING: add a message type, step 6
cases! {
    a_bare_refresh_request_of_an_approver_is_answered_in_kind,
    a_socket_is_for_whom_the_credential_names,
    an_upgrade_of_the_wrong_shape_is_400,
    a_ticket_opens_one_socket_once,
    an_approver_is_sent_requests_and_withdrawals,
    an_enforcer_is_sent_decisions_and_refreshes,
    what_is_unacknowledged_is_sent_on_every_connection_in_order_and_then_never_again,
    an_ack_over_the_socket_delivers_the_decision,
    submits_over_the_socket_are_as_over_rest,
    binary_and_fragmented_frames_are_the_same_messages,
    a_bad_frame_gets_an_error_and_the_tenth_closes,
    a_message_that_is_too_large_for_its_type_is_refused,
    nobody_can_speak_for_another,
    an_enforcers_socket_can_not_decide,
    hello_fills_the_presence_record_and_the_channel_makes_it_online,
    capabilities_of_more_than_a_kilobyte_are_413,
    a_prompt_reaches_the_enforcer_and_its_ack_comes_back,
    session_events_reach_the_paired_approver_live_and_on_reconnect,
    what_is_not_acknowledged_is_redelivered_after_ten_seconds,
    a_decision_goes_to_the_newest_channel_and_to_the_next_when_it_dies,
}

async fn enforcer(pair: &Pair) -> Socket {
    Socket::open(&pair.enforcer, "enforcer", &pair.enforcer_id).await
}

pub async fn approver(pair: &Pair) -> Socket {
    Socket::open(&pair.approver, "approver", &pair.approver_id).await
}

/// The next message about one of this pair's own requests.
pub async fn own(socket: &mut Socket, pair: &Pair) -> Value {
    loop {
        let message = socket.message().await;
        if message["requestId"].as_str().unwrap().ends_with(&pair.id("")) {
            return message;
        }
    }
}

pub fn ack(message: &Value, sender: Value) -> Value {
    envelope(
        "ack.submit",
        message["requestId"].as_str().unwrap(),
        sender,
        json!({ "msgId": message["msgId"] }),
    )
}

async fn a_socket_is_for_whom_the_credential_names(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let refused = async |client: &crate::support::client::Client, role: &str, id: &str| {
        Socket::connect(client, &format!("?role={role}&id={id}"), None).await.err()
    };
    assert_eq!(refused(&pair.enforcer, "enforcer", &other.enforcer_id).await, Some(403));
    assert_eq!(refused(&pair.enforcer, "approver", &pair.approver_id).await, Some(403));
    assert_eq!(refused(&pair.approver, "enforcer", &pair.enforcer_id).await, Some(403));
    assert_eq!(refused(&world.operator, "enforcer", &pair.enforcer_id).await, Some(403));
    assert_eq!(refused(&pair.enforcer.without_key(), "enforcer", &pair.enforcer_id).await, Some(401));
    assert_eq!(refused(&pair.enforcer, "enforcer", &pair.enforcer_id).await, None);
}

async fn an_upgrade_of_the_wrong_shape_is_400(world: Arc<World>) {
    let pair = world.pair().await;
    for query in [
        "",
        "?role=enforcer",
        "?id=x",
        "?role=king&id=x",
        "?role=enforcer&id=",
        "?role=enforcer&role=approver&id=x",
    ] {
        assert_eq!(Socket::connect(&pair.enforcer, query, None).await.err(), Some(400), "{query}");
    }
    let path = format!("/v1/ws?role=enforcer&id={}", pair.enforcer_id);
    pair.enforcer.get(&path).await.refuse(400, "PROTO_ERR_VALIDATION");
}

async fn a_ticket_opens_one_socket_once(world: Arc<World>) {
    let pair = world.pair().await;
    let made = pair.approver.post("/platform/v1/tickets", "").await.expect(200).json();
    let ticket = format!("ticket.{}", made["ticket"].as_str().unwrap());
    let browser = pair.approver.without_key();
    let query = format!("?role=approver&id={}", pair.approver_id);
    let elsewhere = [("sec-websocket-protocol", ticket.as_str())];
    let refused = browser.call(hyper::Method::GET, "/v1/status", "", &elsewhere).await;
    refused.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    let mut socket = Socket::connect(&browser, &query, Some(&ticket)).await.expect("an upgrade");
    let id = pair.id("by-ticket");
    pair.submit(&id).await.expect(202);
    assert_eq!(own(&mut socket, &pair).await["requestId"], *id);
    assert_eq!(Socket::connect(&browser, &query, Some(&ticket)).await.err(), Some(401), "once");
    assert_eq!(Socket::connect(&browser, &query, Some("ticket.acme.made-up")).await.err(), Some(401));
    world.operator.post("/platform/v1/tickets", "").await.refuse(403, "PROTO_ERR_FORBIDDEN");
    browser.post("/platform/v1/tickets", "").await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
}

async fn an_approver_is_sent_requests_and_withdrawals(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = approver(&pair).await;
    let id = pair.id("told");
    pair.submit(&id).await.expect(202);
    let request = own(&mut socket, &pair).await;
    assert_eq!(request["msgType"], "approval.request");
    let inbox = pair.approver.get(&pair.inbox()).await.body();
    assert!(inbox["items"].as_array().unwrap().contains(&request), "as in the inbox");
    pair.withdraw(&id).await.expect(200);
    let withdrawn = own(&mut socket, &pair).await;
    assert_eq!(withdrawn["msgType"], "exchange.withdrawn");
    assert_eq!(
        withdrawn["body"],
        json!({ "requestId": id, "state": "withdrawn", "artifactHash": hash(&id) })
    );
}

async fn an_enforcer_is_sent_decisions_and_refreshes(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let id = pair.id("told");
    pair.submit(&id).await.expect(202);
    let asked = envelope(
        "refresh.request",
        &id,
        json!({ "approverId": pair.approver_id }),
        json!({ "reason": "stale" }),
    );
    pair.approver.post(&format!("/v1/exchanges/{id}/refresh"), asked.to_string()).await.expect(202);
    let refresh = socket.message().await;
    let members: Vec<&String> = refresh.as_object().unwrap().keys().collect();
    assert_eq!(members, ["createdAt", "msgId", "msgType", "reason", "requestId"], "a bare control object");
    assert_eq!((&refresh["msgType"], &refresh["reason"]), (&json!("refresh.request"), &json!("stale")));
    pair.approve(&id).await.expect(200);
    let decision = socket.message().await;
    assert_eq!(decision, pair.enforcer.get(&format!("/v1/exchanges/{id}/wait")).await.expect(200).json());
}

async fn what_is_unacknowledged_is_sent_on_every_connection_in_order_and_then_never_again(world: Arc<World>) {
    let pair = world.pair().await;
    let ids: Vec<String> = (0..4).map(|number| pair.id(&format!("again-{number}"))).collect();
    for id in &ids {
        pair.submit(id).await.expect(202);
        pair.approve(id).await.expect(200);
    }
    for round in 0..=ids.len() {
        let mut socket = enforcer(&pair).await;
        let mut first = None;
        for id in &ids[round..] {
            let message = socket.message().await;
            assert_eq!(message["requestId"], *id);
            first.get_or_insert(message);
        }
        match first {
            Some(message) => {
                let answer = socket.ask(&ack(&message, json!({}))).await;
                assert_eq!(answer["msgType"], "ack.accepted");
                assert_eq!(
                    answer["body"],
                    json!({ "requestId": message["requestId"], "msgId": message["msgId"] })
                );
            }
            None => socket.expect_nothing().await,
        }
    }
}

async fn an_ack_over_the_socket_delivers_the_decision(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let id = pair.id("ack");
    pair.submit(&id).await.expect(202);
    pair.approve(&id).await.expect(200);
    let decision = socket.message().await;
    assert_eq!(pair.state(&id).await, "decided");
    socket.ask(&ack(&decision, json!({ "enforcerId": pair.enforcer_id }))).await;
    assert_eq!(pair.state(&id).await, "delivered");
}

async fn submits_over_the_socket_are_as_over_rest(world: Arc<World>) {
    let pair = world.pair().await;
    let (mut enforcing, mut approving) = (enforcer(&pair).await, approver(&pair).await);
    let id = pair.id("socket");
    let accepted = enforcing.ask(&pair.submission(&id)).await;
    assert_eq!(accepted["msgType"], "artifact.accepted");
    assert_eq!(
        accepted["body"],
        json!({ "requestId": id, "state": "pendingApproval", "artifactHash": hash(&id) })
    );
    assert_eq!(enforcing.ask(&pair.submission(&id)).await["body"], accepted["body"], "a replay");
    let mut other = pair.submission(&id);
    other["body"]["artifactHash"] = hash("other").into();
    let refused = enforcing.ask(&other).await;
    assert_eq!((&refused["msgType"], &refused["requestId"]), (&json!("error"), &json!(id)));
    assert_eq!(
        (&refused["body"]["code"], &refused["body"]["retryable"]),
        (&json!("AlreadyExistsConflict"), &json!(false))
    );
    assert_eq!(own(&mut approving, &pair).await["requestId"], *id);
    approving.send(&approval(&id, &pair.approver_id)).await;
    let answer = own(&mut approving, &pair).await;
    assert_eq!(
        (&answer["msgType"], &answer["body"]["state"]),
        (&json!("decision.accepted"), &json!("decided"))
    );
    assert_eq!(enforcing.message().await["msgType"], "decision.deliver");
    let back = pair.id("back");
    enforcing.ask(&pair.submission(&back)).await;
    let withdrawn = enforcing.ask(&withdrawal(&back, &pair.enforcer_id)).await;
    assert_eq!(
        (&withdrawn["msgType"], &withdrawn["body"]["state"]),
        (&json!("exchange.withdrawn"), &json!("withdrawn"))
    );
}

async fn binary_and_fragmented_frames_are_the_same_messages(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let (binary, fragmented) = (pair.id("binary"), pair.id("fragments"));
    socket.0.send(Message::binary(pair.submission(&binary).to_string().into_bytes())).await.unwrap();
    assert_eq!(socket.message().await["msgType"], "artifact.accepted");
    let text = pair.submission(&fragmented).to_string().into_bytes();
    let count = text.chunks(50).count();
    for (number, part) in text.chunks(50).enumerate() {
        let opcode = if number == 0 { OpCode::Data(Data::Text) } else { OpCode::Data(Data::Continue) };
        let frame = Frame::message(part.to_vec(), opcode, number + 1 == count);
        socket.0.send(Message::Frame(frame)).await.unwrap();
    }
    assert_eq!(socket.message().await["body"]["requestId"], *fragmented);
}

async fn a_bad_frame_gets_an_error_and_the_tenth_closes(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    for bad in ["{", "[]", "{}", r#"{"msgType":"dance"}"#, r#"{"msgType":7}"#] {
        socket.0.send(Message::text(bad)).await.unwrap();
        let error = socket.message().await;
        assert_eq!(
            (&error["msgType"], &error["body"]["retryable"]),
            (&json!("error"), &json!(false)),
            "{bad}"
        );
    }
    let unknown = socket.ask(&envelope("inbox.page", "r", json!({}), json!({}))).await;
    assert_eq!(unknown["body"]["code"], "PROTO_ERR_UNSUPPORTED");
    // It still works.
    let id = pair.id("works");
    assert_eq!(socket.ask(&pair.submission(&id)).await["msgType"], "artifact.accepted");
    for _ in 0..4 {
        socket.0.send(Message::text("{")).await.unwrap();
    }
    assert_eq!(socket.closed().await, Some(1008));
}

async fn a_message_that_is_too_large_for_its_type_is_refused(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = approver(&pair).await;
    let mut decision = approval(&pair.id("large"), &pair.approver_id);
    decision["body"]["policyHints"] = json!({ "x": "x".repeat(70_000) });
    // Between the message and its answer, requests of other tests may arrive.
    let refused = async |socket: &mut Socket, message: &Value| {
        socket.send(message).await;
        loop {
            let message = socket.message().await;
            if message["msgType"] == "error" {
                return message;
            }
        }
    };
    let error = refused(&mut socket, &decision).await;
    assert_eq!(error["body"]["code"], "PROTO_ERR_TOO_LARGE");
    assert_eq!(error["requestId"], pair.id("large"), "who sent many must know which it was");
    let hello = json!({ "msgType": "hello", "workspaceName": "w", "more": "x".repeat(70_000) });
    assert_eq!(refused(&mut socket, &hello).await["body"]["code"], "PROTO_ERR_TOO_LARGE");
}

async fn nobody_can_speak_for_another(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let mut socket = enforcer(&pair).await;
    let refused = socket.ask(&other.submission(&pair.id("forged"))).await;
    assert_eq!(refused["body"]["code"], "PROTO_ERR_FORBIDDEN");
    assert_eq!(refused["requestId"], pair.id("forged"));
    let mut both = pair.submission(&pair.id("both"));
    both["sender"]["approverId"] = pair.approver_id.clone().into();
    assert_eq!(socket.ask(&both).await["body"]["code"], "PROTO_ERR_FORBIDDEN");
    let broken = json!({ "msgType": "artifact.submit", "requestId": pair.id("broken") });
    let refused = socket.ask(&broken).await;
    assert_eq!(
        (&refused["body"]["code"], &refused["requestId"]),
        (&json!("PROTO_ERR_VALIDATION"), &broken["requestId"])
    );
}

async fn an_enforcers_socket_can_not_decide(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let id = pair.id("itself");
    socket.ask(&pair.submission(&id)).await;
    let refused = socket.ask(&approval(&id, &pair.approver_id)).await;
    assert_eq!(refused["body"]["code"], "PROTO_ERR_FORBIDDEN");
    assert_eq!(pair.state(&id).await, "pendingApproval");
}

async fn hello_fills_the_presence_record_and_the_channel_makes_it_online(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let hello = json!({
        "msgType": "hello", "workspaceName": "widgets", "enforcerLabel": "Robot",
        "capabilities": { "push": true, "poll": false, "unknown": 7, "org.example.views": { "diff": [1, null] } },
    });
    socket.send(&hello).await;
    let path = format!("/v1/presence/enforcers/{}", pair.enforcer_id);
    let record = loop {
        let answer = pair.approver.get(&path).await;
        if answer.status == 200 && answer.json().get("workspaceName").is_some() {
            break answer.json();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&record["status"], &record["transport"]), (&json!("online"), &json!("websocket")));
    assert_eq!((&record["workspaceName"], &record["enforcerLabel"]), (&json!("widgets"), &json!("Robot")));
    let kept = json!({ "push": true, "poll": false, "org.example.views": { "diff": [1, null] } });
    assert_eq!(record["capabilities"], kept);
    socket.expect_nothing().await;
}

async fn capabilities_of_more_than_a_kilobyte_are_413(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    // {"org.example.text":"…"} is 23 bytes and the text.
    let hello = |length: usize, ignored: usize| {
        let capabilities = json!({ "org.example.text": "x".repeat(length), "ignored": "x".repeat(ignored) });
        json!({ "msgType": "hello", "capabilities": capabilities })
    };
    let refused = socket.ask(&hello(1_002, 0)).await;
    assert_eq!(refused["body"]["code"], "PROTO_ERR_TOO_LARGE");
    assert_eq!(refused["body"]["details"], json!({ "member": "capabilities", "limit": 1_024 }));
    socket.send(&hello(1_001, 5_000)).await;
    socket.expect_nothing().await;
}

async fn a_prompt_reaches_the_enforcer_and_its_ack_comes_back(world: Arc<World>) {
    let pair = world.pair().await;
    pair_up(&pair, 61).await;
    let (mut enforcing, mut approving) = (enforcer(&pair).await, approver(&pair).await);
    let id = pair.id("prompt");
    let text = prompt(&id, "please continue");
    approving.send(&envelope("prompt.send", &id, json!({}), text.clone())).await;
    let queued = own(&mut approving, &pair).await;
    assert_eq!((&queued["msgType"], &queued["body"]["status"]), (&json!("prompt.ack"), &json!("queued")));
    let arrived = enforcing.message().await;
    assert_eq!((&arrived["msgType"], &arrived["body"]), (&json!("prompt.send"), &text));
    assert_eq!(arrived["sender"]["approverId"], *pair.approver_id);
    let said = prompt_ack(&text, "delivered");
    let answer = enforcing.ask(&envelope("prompt.ack", &id, json!({}), said.clone())).await;
    assert_eq!(answer["msgType"], "ack.accepted");
    let received = own(&mut approving, &pair).await;
    assert_eq!((&received["msgType"], &received["body"]), (&json!("prompt.ack"), &said));
    drop(enforcing);
    enforcer(&pair).await.expect_nothing().await;
}

async fn session_events_reach_the_paired_approver_live_and_on_reconnect(world: Arc<World>) {
    let pair = world.pair().await;
    pair_up(&pair, 62).await;
    let (mut enforcing, mut approving) = (enforcer(&pair).await, approver(&pair).await);
    let id = pair.id("session");
    let start = json!({ "sessionId": id, "eventType": "session.start", "createdAt": "2026-11-15T12:00:00Z", "agentHost": "codex" });
    let answer = enforcing.ask(&envelope("session.start", &id, json!({}), start.clone())).await;
    assert_eq!((&answer["msgType"], &answer["body"]["requestId"]), (&json!("ack.accepted"), &json!(id)));
    let received = own(&mut approving, &pair).await;
    assert_eq!((&received["msgType"], &received["body"]), (&json!("session.start"), &start));
    drop(approving);
    let plan = snapshot(&id, "s", "the plan");
    pair.enforcer.post("/v1/session/event", plan.to_string()).await.expect(202);
    let mut approving = approver(&pair).await;
    assert_eq!(own(&mut approving, &pair).await["body"], start, "unacknowledged, it comes again");
    let again = own(&mut approving, &pair).await;
    assert_eq!((&again["msgType"], &again["body"]), (&json!("session.snapshot"), &plan));
    approving.send(&envelope("ack.submit", &id, json!({}), json!({}))).await;
    assert_eq!(own(&mut approving, &pair).await["msgType"], "ack.accepted");
    drop(approving);
    approver(&pair).await.expect_nothing_of(&pair.id("")).await;
}

async fn what_is_not_acknowledged_is_redelivered_after_ten_seconds(world: Arc<World>) {
    let pair = world.pair().await;
    let mut socket = enforcer(&pair).await;
    let id = pair.id("again");
    pair.submit(&id).await.expect(202);
    let started = tokio::time::Instant::now();
    pair.approve(&id).await.expect(200);
    let first = socket.message().await;
    let again = tokio::time::timeout(Duration::from_secs(45), socket.next()).await.unwrap().unwrap();
    assert_eq!(again, first);
    assert!((9..40).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    socket.ask(&ack(&first, json!({}))).await;
    assert_eq!(pair.state(&id).await, "delivered");
}

async fn a_decision_goes_to_the_newest_channel_and_to_the_next_when_it_dies(world: Arc<World>) {
    let pair = world.pair().await;
    for round in 0..5 {
        let (mut oldest, mut middle, mut newest) =
            (enforcer(&pair).await, enforcer(&pair).await, enforcer(&pair).await);
        let id = pair.id(&format!("route-{round}"));
        pair.submit(&id).await.expect(202);
        pair.approve(&id).await.expect(200);
        assert_eq!(newest.message().await["requestId"], *id);
        middle.expect_nothing().await;
        drop(newest);
        let received = middle.message().await;
        assert_eq!(received["requestId"], *id, "the newest died before it acknowledged");
        middle.ask(&ack(&received, json!({}))).await;
        drop(middle);
        oldest.expect_nothing().await;
    }
}

async fn a_bare_refresh_request_of_an_approver_is_answered_in_kind(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("bare-refresh");
    pair.submit(&id).await.expect(202);
    let mut approving = approver(&pair).await;
    let bare = json!({ "msgType": "refresh.request", "requestId": id, "reason": "stale" });
    approving.send(&bare).await;
    let answer = loop {
        let message = approving.message().await;
        if message["msgType"] == "refresh.request" {
            break message;
        }
    };
    assert_eq!((&answer["requestId"], &answer["reason"]), (&json!(id), &json!("stale")));
    assert!(answer.get("body").is_none() && answer["msgId"].is_string(), "bare, as it was asked: {answer}");
    let unknown = json!({ "msgType": "refresh.request", "requestId": "unknown" });
    approving.send(&unknown).await;
    let refused = loop {
        let message = approving.message().await;
        if message["msgType"] == "error" {
            break message;
        }
    };
    assert_eq!(refused["body"]["code"], "PROTO_ERR_NOT_FOUND");
}
