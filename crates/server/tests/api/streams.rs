//! `/v1/sse`: what is pushed over server-sent events.

use std::sync::Arc;

use hyper::Method;
use serde_json::json;

use crate::{
    case::cases,
    support::{messages::envelope, sse::Stream},
    world::{Pair, World},
};

cases! {
    an_approver_is_sent_requests_as_they_come,
    what_was_there_before_is_sent_first_and_in_order,
    a_last_event_id_brings_only_what_came_later,
    a_last_event_id_that_is_not_ours_brings_everything,
    an_acknowledged_request_is_not_sent_again_and_stays_in_the_inbox,
    a_request_to_nobody_is_sent_to_every_approver,
    an_enforcer_is_sent_decisions_until_it_acknowledges_them,
    streams_carry_only_their_own_kinds,
    a_stream_is_for_whom_the_credential_names,
    line_breaks_in_a_body_do_not_break_an_event,
}

fn approver_path(pair: &Pair) -> String {
    format!("/v1/sse/approvers/{}", pair.approver_id)
}

fn enforcer_path(pair: &Pair) -> String {
    format!("/v1/sse/enforcers/{}", pair.enforcer_id)
}

/// The next event about one of this pair's own requests: the shared ones of other cases are in every stream.
async fn own(stream: &mut Stream, pair: &Pair) -> crate::support::sse::Event {
    loop {
        let event = stream.event().await;
        if event.envelope()["requestId"].as_str().unwrap().ends_with(&pair.id("")) {
            return event;
        }
    }
}

async fn an_approver_is_sent_requests_as_they_come(world: Arc<World>) {
    let pair = world.pair().await;
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    assert_eq!(stream.status, 200);
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-store",
        "x-accel-buffering: no",
        "x-request-id: ",
    ] {
        assert!(stream.head.contains(header), "{header} in {}", stream.head);
    }
    let id = pair.id("live");
    pair.submit(&id).await.expect(202);
    let event = own(&mut stream, &pair).await;
    assert_eq!(event.name, "approval.request");
    assert!(!event.id.is_empty());
    assert_eq!(stream.retries, [1_000]);
    let inbox = pair.approver.get(&pair.inbox()).await.expect(200).body();
    let item =
        inbox["items"].as_array().unwrap().iter().find(|item| item["requestId"] == *id).unwrap().clone();
    assert_eq!(event.envelope(), item, "as in the inbox, msgId included");
}

async fn what_was_there_before_is_sent_first_and_in_order(world: Arc<World>) {
    let pair = world.pair().await;
    let sent: Vec<String> = (0..5).map(|number| pair.id(&format!("before-{number}"))).collect();
    for id in &sent {
        pair.submit(id).await.expect(202);
    }
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    for id in &sent {
        assert_eq!(own(&mut stream, &pair).await.envelope()["requestId"], *id);
    }
}

async fn a_last_event_id_brings_only_what_came_later(world: Arc<World>) {
    let pair = world.pair().await;
    for name in ["one", "two", "three"] {
        pair.submit(&pair.id(name)).await.expect(202);
    }
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    own(&mut stream, &pair).await;
    let second = own(&mut stream, &pair).await;
    drop(stream);
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), Some(&second.id)).await;
    assert_eq!(own(&mut stream, &pair).await.envelope()["requestId"], *pair.id("three"));
}

async fn a_last_event_id_that_is_not_ours_brings_everything(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let (id, theirs) = (pair.id("all"), other.id("theirs"));
    pair.submit(&id).await.expect(202);
    for number in 0..3 {
        other.submit(&other.id(&format!("many-{number}"))).await.expect(202);
    }
    other.submit(&theirs).await.expect(202);
    let mut stream = Stream::open(&other.approver, &approver_path(&other), None).await;
    let mut last = own(&mut stream, &other).await;
    while last.envelope()["requestId"] != *theirs {
        last = own(&mut stream, &other).await;
    }
    for foreign in ["made-up", "99999999-99999999.x", last.id.as_str()] {
        let mut stream = Stream::open(&pair.approver, &approver_path(&pair), Some(foreign)).await;
        assert_eq!(own(&mut stream, &pair).await.envelope()["requestId"], *id, "{foreign}");
    }
}

async fn an_acknowledged_request_is_not_sent_again_and_stays_in_the_inbox(world: Arc<World>) {
    let pair = world.pair().await;
    let (one, two) = (pair.id("one"), pair.id("two"));
    pair.submit(&one).await.expect(202);
    pair.submit(&two).await.expect(202);
    let ack = envelope("ack.submit", &one, json!({ "approverId": pair.approver_id }), json!({}));
    pair.approver.post("/v1/acks", ack.to_string()).await.expect(200);
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    assert_eq!(own(&mut stream, &pair).await.envelope()["requestId"], *two);
    let inbox = pair.approver.get(&pair.inbox()).await.expect(200);
    assert!(String::from_utf8_lossy(&inbox.bytes).contains(&one));
}

async fn a_request_to_nobody_is_sent_to_every_approver(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    let mut streams = [
        Stream::open(&pair.approver, &approver_path(&pair), None).await,
        Stream::open(&other.approver, &approver_path(&other), None).await,
    ];
    let id = pair.id("shared");
    let mut submission = pair.submission(&id);
    submission.as_object_mut().unwrap().remove("recipient");
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    for (stream, who) in streams.iter_mut().zip([&pair, &other]) {
        let event = own(stream, &pair).await.envelope();
        assert_eq!(
            (&event["requestId"], &event["recipient"]["approverId"]),
            (&json!(id), &json!(who.approver_id))
        );
    }
}

async fn an_enforcer_is_sent_decisions_until_it_acknowledges_them(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("decided");
    pair.submit(&id).await.expect(202);
    let mut stream = Stream::open(&pair.enforcer, &enforcer_path(&pair), None).await;
    pair.approve(&id).await.expect(200);
    let event = stream.event().await;
    assert_eq!(event.name, "decision.deliver");
    let waited = pair.enforcer.get(&format!("/v1/exchanges/{id}/wait")).await.expect(200).json();
    assert_eq!(event.envelope(), waited, "the same message as a wait gets");
    assert_eq!(pair.state(&id).await, "decided", "being sent is not having been acknowledged");
    drop(stream);
    let mut again = Stream::open(&pair.enforcer, &enforcer_path(&pair), None).await;
    assert_eq!(again.event().await.envelope(), waited);
    let body = json!({ "msgId": waited["msgId"] });
    let ack = envelope("ack.submit", &id, json!({ "enforcerId": pair.enforcer_id }), body);
    pair.enforcer.post("/v1/acks", ack.to_string()).await.expect(200);
    assert_eq!(pair.state(&id).await, "delivered");
    drop(again);
    Stream::open(&pair.enforcer, &enforcer_path(&pair), None).await.expect_nothing().await;
}

async fn streams_carry_only_their_own_kinds(world: Arc<World>) {
    let pair = world.pair().await;
    let (withdrawn, decided) = (pair.id("withdrawn"), pair.id("decided"));
    let mut to_approver = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    let mut to_enforcer = Stream::open(&pair.enforcer, &enforcer_path(&pair), None).await;
    pair.submit(&withdrawn).await.expect(202);
    pair.withdraw(&withdrawn).await.expect(200);
    pair.submit(&decided).await.expect(202);
    let asked = envelope("refresh.request", &decided, json!({ "approverId": pair.approver_id }), json!({}));
    pair.approver.post(&format!("/v1/exchanges/{decided}/refresh"), asked.to_string()).await.expect(202);
    pair.approve(&decided).await.expect(200);
    assert_eq!(to_enforcer.event().await.name, "decision.deliver", "and no refresh.request");
    // The withdrawn request may have been told before it was withdrawn; the withdrawal never is.
    let mut event = own(&mut to_approver, &pair).await;
    if event.envelope()["requestId"] == *withdrawn {
        event = own(&mut to_approver, &pair).await;
    }
    assert_eq!((event.name.as_str(), &event.envelope()["requestId"]), ("approval.request", &json!(decided)));
}

async fn a_stream_is_for_whom_the_credential_names(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    for (path, right, wrong) in [
        (approver_path(&pair), &pair.approver, [&other.approver, &pair.enforcer, &world.operator]),
        (enforcer_path(&pair), &pair.enforcer, [&other.enforcer, &pair.approver, &world.operator]),
    ] {
        for who in wrong {
            who.get(&path).await.refuse(403, "PROTO_ERR_FORBIDDEN");
        }
        right.without_key().get(&path).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
        right
            .get(&path.replace("ada", "%00").replace("robot", "%00"))
            .await
            .refuse(400, "PROTO_ERR_VALIDATION");
        assert_eq!(right.call(Method::HEAD, &path, "", &[]).await.expect(405).header("allow"), "GET");
    }
}

async fn line_breaks_in_a_body_do_not_break_an_event(world: Arc<World>) {
    let pair = world.pair().await;
    let id = pair.id("lines");
    let mut submission = pair.submission(&id);
    let body = submission["body"].take();
    let spaced = body.to_string().replace(',', ",\r\n\n\r\t");
    let text = submission.to_string().replace("\"body\":null", &format!("\"body\":{spaced}"));
    pair.enforcer.post("/v1/artifacts", text).await.expect(202);
    let mut stream = Stream::open(&pair.approver, &approver_path(&pair), None).await;
    assert_eq!(own(&mut stream, &pair).await.envelope()["body"], body);
}
