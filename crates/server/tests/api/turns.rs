//! `metadata["org.countersign.turns"]`: people who are asked one after the other.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    case::cases,
    support::messages::{approval, soon},
    world::{Pair, World},
};

cases! {
    a_person_knows_nothing_of_a_request_before_their_turn_and_may_decide_it_then,
    turns_that_can_not_be_kept_are_422,
}

/// The turns begin up to 5 s later.
const BEGUN_WITHIN: Duration = Duration::from_secs(15);

fn in_turns(pair: &Pair, id: &str, turns: &Value) -> Value {
    let mut request = pair.submission(id);
    request.as_object_mut().unwrap().remove("recipient");
    request["body"]["metadata"] = json!({ "org.countersign.turns": turns });
    request
}

async fn a_person_knows_nothing_of_a_request_before_their_turn_and_may_decide_it_then(world: Arc<World>) {
    let (pair, later) = (world.pair().await, world.pair().await);
    let id = pair.id("turns");
    let turns =
        json!([{ "approverId": pair.approver_id }, { "approverId": later.approver_id, "at": soon(3_000) }]);
    let request = in_turns(&pair, &id, &turns);
    pair.enforcer.post("/v1/artifacts", request.to_string()).await.expect(202);
    let listed = async |who: &Pair| {
        let inbox = who.approver.get(&who.inbox()).await.expect(200).body();
        let items = inbox["items"].as_array().unwrap().clone();
        items.into_iter().find(|item| item["requestId"] == id)
    };
    assert!(listed(&pair).await.is_some());
    assert!(listed(&later).await.is_none());
    let status = format!("/v1/exchanges/{id}");
    later.approver.get(&status).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let decision = approval(&id, &later.approver_id).to_string();
    later.approver.post("/v1/decisions", decision.clone()).await.refuse(404, "PROTO_ERR_NOT_FOUND");
    let began = Instant::now();
    let shown = loop {
        if let Some(item) = listed(&later).await {
            break item;
        }
        assert!(began.elapsed() < BEGUN_WITHIN, "it is not asked");
        sleep(Duration::from_millis(100)).await;
    };
    assert!(began.elapsed() > Duration::from_secs(1), "not before its time");
    assert_eq!(shown["body"]["metadata"], json!({}), "who else is asked is not told");
    later.approver.post("/v1/decisions", decision).await.expect(200);
    assert_eq!(pair.enforcer.get(&status).await.expect(200).body()["state"], "decided");
    assert!(listed(&pair).await.is_none());
}

async fn turns_that_can_not_be_kept_are_422(world: Arc<World>) {
    let pair = world.pair().await;
    let who = &pair.approver_id;
    for (name, turns) in [
        ("nobody", json!([])),
        ("nobody at once", json!([{ "approverId": who, "at": soon(5_000) }])),
        ("twice", json!([{ "approverId": who }, { "approverId": who, "at": soon(5_000) }])),
        (
            "after its end",
            json!([{ "approverId": who }, { "approverId": "bob", "at": soon(100_000_000_000) }]),
        ),
        ("no list", json!({ "approverId": who })),
        ("a word", json!([{ "approverId": who, "at": "soon" }])),
        ("something more", json!([{ "approverId": who, "after": 5 }])),
    ] {
        let request = in_turns(&pair, &pair.id(name), &turns).to_string();
        pair.enforcer.post("/v1/artifacts", request).await.refuse(422, "PROTO_ERR_STRUCTURE");
    }
    let mut both = in_turns(&pair, &pair.id("both"), &json!([{ "approverId": who }]));
    both["recipient"] = json!({ "approverId": who });
    pair.enforcer.post("/v1/artifacts", both.to_string()).await.refuse(422, "PROTO_ERR_STRUCTURE");
}
