//! What approvers hear of requests that have ended elsewhere.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    case::cases,
    sockets::{ack, approver, own},
    support::{
        messages::{approval, submission},
        ws::Socket,
    },
    world::World,
};

cases! {
    a_request_that_is_answered_on_one_device_leaves_the_others_that_ask_for_it,
}

async fn a_request_that_is_answered_on_one_device_leaves_the_others_that_ask_for_it(world: Arc<World>) {
    let (pair, stranger) = (world.pair().await, world.pair().await);
    let id = pair.id("answered");
    pair.enforcer
        .post("/v1/artifacts", submission(&id, &pair.enforcer_id, &pair.approver_id).to_string())
        .await
        .expect(202);
    let hello = |wants: Value| json!({ "msgType": "hello", "capabilities": { "push": true, "org.countersign.status": wants } });
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let mut socket = approver(&pair).await;
        let request = own(&mut socket, &pair).await;
        sockets.push((socket, request));
    }
    for ((socket, request), wants) in
        sockets.iter_mut().zip([json!(true), json!(true), json!(false), json!("true")])
    {
        socket.send(&hello(wants)).await;
        // Whatever is answered after it shows that it was read.
        socket.send(&ack(request, json!({ "approverId": pair.approver_id }))).await;
        while own(socket, &pair).await["msgType"] != "ack.accepted" {}
    }
    let mut sockets: Vec<Socket> = sockets.into_iter().map(|(socket, _)| socket).collect();
    let mut elsewhere = approver(&stranger).await;
    elsewhere.send(&hello(json!(true))).await;
    pair.approver.post("/v1/decisions", approval(&id, &pair.approver_id).to_string()).await.expect(200);
    for socket in &mut sockets[..2] {
        let status = own(socket, &pair).await;
        assert_eq!(
            (&status["msgType"], &status["body"]["state"]),
            (&json!("exchange.status"), &json!("decided"))
        );
        assert_eq!(status["requestId"], id.as_str());
    }
    for socket in sockets[2..].iter_mut().chain([&mut elsewhere]) {
        socket.expect_nothing_of(&pair.id("")).await;
    }
}
