//! Pairing: who may use a code and how often, which keys make a pair, and who sees the result.

use countersign_core::{model::viewer::Viewer, store::Kind};
use countersign_wire::{
    keys::{KeyBundle, PublicKey},
    pairing::{CompleteRequest, PairingCode, Progress},
};
use tokio::task::JoinSet;

use super::{
    pairing_fixtures::{bundle, codes, complete, initiate, pair},
    world::{World, approver, request, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    a_code_completes_to_a_pair,
    a_code_is_bound_to_the_first_who_resolves_it,
    a_code_is_good_for_ten_minutes_and_once,
    a_code_is_not_in_the_store,
    the_sixth_guess_at_a_code_must_wait_even_if_it_is_right,
    guesses_at_a_code_that_come_at_once_are_no_more_than_five,
    one_key_on_both_sides_is_no_pair_whatever_proof_comes_with_it,
    an_approver_registers_no_more_keys_than_it_has_devices,
    a_pairing_is_seen_by_its_two_parties_only,
    two_completions_of_one_pairing_make_one_pair,
}

async fn a_code_completes_to_a_pair(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let status = async || {
        world
            .gateway
            .pairing_status(&world.tenant, Viewer::Enforcer(&robot()), &begun.nonce)
            .await
            .unwrap()
            .progress
    };
    assert_eq!(status().await, Progress::Pending);
    let resolved = world
        .gateway
        .resolve_pairing(&world.tenant, "phone", Some(&approver("ada")), begun.code, &codes())
        .await
        .unwrap();
    assert_eq!((&resolved.nonce, &resolved.public_key), (&begun.nonce, &bundle(1)));
    assert_eq!(status().await, Progress::Resolved);
    let completed = complete(&world, &begun, "ada", 2).await.unwrap();
    assert_eq!(completed.enforcer_label, Some("Robot".parse().unwrap()));
    assert!(
        matches!(status().await, Progress::Completed { routing_token, device_label, lock, .. } if device_label.as_ref().is_some_and(|label| label.as_str() == "Ada's phone") && lock.as_ref().is_some_and(|lock| lock.to_string() == "v9.unread") && routing_token == completed.routing_token)
    );
    assert_eq!(world.gateway.paired_enforcers(&world.tenant, &approver("ada")).await.unwrap(), [robot()]);
}

async fn a_code_is_bound_to_the_first_who_resolves_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let resolve = async |who| {
        world
            .gateway
            .resolve_pairing(&world.tenant, "phone", Some(&approver(who)), begun.code, &codes())
            .await
    };
    resolve("ada").await.unwrap();
    resolve("ada").await.unwrap();
    assert_eq!(status_of(&resolve("eve").await, 200), 404);
    assert_eq!(status_of(&complete(&world, &begun, "eve", 3).await, 200), 404);
    complete(&world, &begun, "ada", 2).await.unwrap();
    assert_eq!(status_of(&complete(&world, &begun, "ada", 2).await, 200), 409);
}

async fn a_code_is_good_for_ten_minutes_and_once(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ada = approver("ada");
    let used = initiate(&world).await;
    complete(&world, &used, "ada", 2).await.unwrap();
    let resolved =
        world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), used.code, &codes()).await;
    assert_eq!(status_of(&resolved, 200), 404);
    let late = initiate(&world).await;
    world.at_minute(10).await;
    let resolved =
        world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), late.code, &codes()).await;
    assert_eq!(status_of(&resolved, 200), 404);
    assert_eq!(status_of(&complete(&world, &late, "ada", 2).await, 200), 404);
    let status = world.gateway.pairing_status(&world.tenant, Viewer::Enforcer(&robot()), &late.nonce).await;
    assert_eq!(status.unwrap().progress, Progress::Expired);
}

async fn a_code_is_not_in_the_store(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let code = initiate(&world).await.code;
    let (shown, letters) = (code.to_string(), String::from_utf8(code.letters().to_vec()).unwrap());
    for kind in [Kind::Pairing, Kind::PairingCode] {
        let records = world.gateway.store().scan(&world.tenant, kind, None, 10).await.unwrap();
        assert_eq!(records.len(), 1);
        let kept = format!("{}{}", records[0].key.id, String::from_utf8_lossy(&records[0].content));
        assert!(!kept.contains(&shown) && !kept.contains(&letters), "{kind:?} gives the code away");
    }
}

async fn the_sixth_guess_at_a_code_must_wait_even_if_it_is_right(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ada = approver("ada");
    let begun = initiate(&world).await;
    let resolve = async |gateway: &countersign_core::Gateway, principal: &str, code| {
        gateway.resolve_pairing(&world.tenant, principal, Some(&ada), code, &codes()).await
    };
    for _ in 0..5 {
        let wrong = "BBBB-BBBB".parse().unwrap();
        assert_eq!(status_of(&resolve(&world.gateway, "phone", wrong).await, 200), 404);
    }
    assert_eq!(status_of(&resolve(&world.gateway, "phone", begun.code).await, 200), 429);
    let elsewhere = world.second_gateway().await;
    assert_eq!(
        status_of(&resolve(&elsewhere, "phone", begun.code).await, 200),
        429,
        "the limit applies on every node"
    );
    assert_eq!(
        status_of(&resolve(&world.gateway, "laptop", begun.code).await, 200),
        200,
        "another credential is not limited"
    );
    world.at_minute(10).await;
    let next = initiate(&world).await;
    assert_eq!(status_of(&resolve(&world.gateway, "phone", next.code).await, 200), 200);
}

async fn guesses_at_a_code_that_come_at_once_are_no_more_than_five(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let guesses = (0..40_u8).map(|number| {
        let code = PairingCode::draw(|| number);
        let (gateway, tenant) = (world.gateway.clone(), world.tenant.clone());
        async move {
            let ada = approver("ada");
            status_of(&gateway.resolve_pairing(&tenant, "phone", Some(&ada), code, &codes()).await, 200)
        }
    });
    let statuses = guesses.collect::<JoinSet<u16>>().join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 5, "{statuses:?}");
    assert!(statuses.iter().all(|status| [404, 429].contains(status)), "{statuses:?}");
}

async fn one_key_on_both_sides_is_no_pair_whatever_proof_comes_with_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let PublicKey::Bundle(own) = bundle(1) else { unreachable!() };
    let PublicKey::Bundle(other) = bundle(2) else { unreachable!() };
    for stolen in [
        (*own).clone(),
        KeyBundle { proof: Some([7; 32]), ..(*own).clone() },
        KeyBundle { agreement: other.agreement, ..(*own).clone() },
        KeyBundle { signing: other.signing, ..(*own).clone() },
    ] {
        let request = CompleteRequest {
            nonce: begun.nonce.clone(),
            approver_id: approver("ada"),
            public_key: PublicKey::Bundle(Box::new(stolen)),
            device_label: None,
            lock: None,
        };
        let refused = world.gateway.complete_pairing(&world.tenant, &request).await;
        assert_eq!(status_of(&refused, 200), 400);
    }
}

async fn an_approver_registers_no_more_keys_than_it_has_devices(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for seed in 2..18 {
        pair(&world, "ada", seed).await;
    }
    let begun = initiate(&world).await;
    assert_eq!(status_of(&complete(&world, &begun, "ada", 18).await, 200), 400);
    complete(&world, &begun, "ada", 17).await.unwrap();
}

async fn a_pairing_is_seen_by_its_two_parties_only(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    complete(&world, &begun, "ada", 2).await.unwrap();
    let (ada, eve, stranger) = (approver("ada"), approver("eve"), "stranger".parse().unwrap());
    for (viewer, expected) in
        [(Viewer::Approver(&ada), 200), (Viewer::Approver(&eve), 404), (Viewer::Enforcer(&stranger), 404)]
    {
        let status = world.gateway.pairing_status(&world.tenant, viewer, &begun.nonce).await;
        assert_eq!(status_of(&status, 200), expected, "{viewer:?}");
    }
}

async fn two_completions_of_one_pairing_make_one_pair(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let (one, two) = tokio::join!(complete(&world, &begun, "ada", 2), complete(&world, &begun, "bob", 3));
    let mut statuses = [status_of(&one, 200), status_of(&two, 200)];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    world.submit(&request("r")).await.unwrap();
    assert_eq!(world.inbox("ada").await.len() + world.inbox("bob").await.len(), 1);
}
