//! What a pair changes for later requests: routing to the paired approver, and signature checks.

use countersign_wire::{RawObject, exchange::ExchangeState, id::RequestId, keys::SigningKey, parse};

use super::{
    pairing_fixtures::pair,
    world::{World, approver, decide, decision, request, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    requests_of_a_paired_enforcer_go_to_its_approvers,
    a_routing_token_routes_to_its_approver_and_an_unknown_one_is_rejected,
    a_registered_key_makes_the_gateway_check_signatures,
}

async fn requests_of_a_paired_enforcer_go_to_its_approvers(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    pair(&world, "bob", 3).await;
    world.submit(&request("paired")).await.unwrap();
    world.at_minute(1).await;
    world.submit(&request("other").by("another-robot")).await.unwrap();
    assert_eq!(world.inbox("ada").await, ["paired", "other"]);
    assert_eq!(world.inbox("bob").await, ["paired", "other"]);
    assert_eq!(world.inbox("eve").await, ["other"]);
    world.at_minute(2).await;
    world.submit(&request("addressed").to("eve")).await.unwrap();
    assert_eq!(world.inbox("eve").await, ["other", "addressed"]);
}

async fn a_routing_token_routes_to_its_approver_and_an_unknown_one_is_rejected(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let ada = pair(&world, "ada", 2).await;
    pair(&world, "bob", 3).await;
    let trace = |token: &str| format!(r#"{{"routingToken":"{token}","keep":1}}"#);
    let submit = async |id: &str, trace: String| {
        let request = request(id);
        let body = request.body();
        let submission = countersign_core::use_cases::submit::Submission {
            tenant: world.tenant.clone(),
            enforcer: robot(),
            request_id: request.id.clone(),
            body: parse(body.as_bytes()).unwrap(),
            expires_at: None,
            recipient: None,
            trace: Some(RawObject::parse(trace.as_bytes()).unwrap()),
            idempotency_key: None,
        };
        status_of(&world.gateway.submit(submission).await, 202)
    };
    assert_eq!(submit("r", trace(ada.routing_token.as_str())).await, 202);
    assert_eq!(submit("x", trace("made-up")).await, 422);
    assert_eq!((world.inbox("ada").await.len(), world.inbox("bob").await.len()), (1, 0));
    let items = world.list("ada", countersign_core::use_cases::inbox::List::Active, 50).await;
    assert_eq!(items[0].trace.as_deref(), Some(br#"{"keep":1}"#.as_slice()), "approvers never see the token");
}

async fn a_registered_key_makes_the_gateway_check_signatures(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    world.submit(&request("r").to("ada")).await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let (own, foreign) = (SigningKey::from_seed(&[2; 32]), SigningKey::from_seed(&[9; 32]));
    for key in [None, Some(&foreign)] {
        let bad = decision(&id, "r", "n", key);
        let refused = decide(&world.gateway, &world.tenant, &approver("ada"), &id, &bad).await;
        assert_eq!(status_of(&refused, 200), 403);
        assert_eq!(
            world.status("r").await.unwrap().state,
            ExchangeState::PendingApproval,
            "nothing has changed"
        );
    }
    let good = decision(&id, "r", "n", Some(&own));
    decide(&world.gateway, &world.tenant, &approver("ada"), &id, &good).await.unwrap();
}
