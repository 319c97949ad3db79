//! Pairs: who lists and removes them, and what ends with one.

use countersign_core::{
    Error,
    model::{
        pairing::{PairedApprover, PairedEnforcer},
        pairs::{Pair, PairId},
        viewer::Viewer,
    },
    store::{Change, Key, Kind, Put},
    use_cases::pairs::PairFilter,
};
use countersign_wire::{
    RawObject,
    id::{ApproverId, EnforcerId, RequestId, RoutingToken},
    keys::SigningKey,
    pairing::{CompleteRequest, CompleteResponse, InitiateRequest},
    parse,
};

use super::{
    pairing_fixtures::{bundle, codes, complete, initiate, pair},
    world::{World, approver, decide, decision, request, robot, status_of},
};
use crate::{
    recording_store::RecordingStore,
    store_suite::{StoreHarness, cases},
};

cases! {
    each_party_lists_its_pairs_with_what_is_known_of_them,
    pages_have_every_pair_once_while_others_are_removed,
    another_s_pair_and_an_unknown_one_are_the_same_404,
    a_removed_pair_ends_its_tokens_and_its_key_in_one_commit,
    a_key_stays_while_another_pair_has_brought_it,
    a_removed_device_leaves_the_others_of_its_approver,
    an_approver_whose_last_key_was_removed_decides_nothing_any_more,
    removing_makes_room_for_new_keys,
    a_request_that_was_sent_before_stays_in_the_inbox,
    of_two_removals_one_succeeds,
    a_pair_from_before_pairs_were_recorded_is_listed_and_removed,
}

fn of_robot() -> PairFilter {
    PairFilter { enforcer: Some(robot()), approver: None }
}

fn of_approver(name: &str) -> PairFilter {
    PairFilter { enforcer: None, approver: Some(approver(name)) }
}

async fn list(world: &World, filter: &PairFilter) -> Vec<(PairId, Pair)> {
    let page = world.gateway.pairs(&world.tenant, filter, None, 200).await.unwrap();
    assert_eq!(page.next, None);
    page.pairs
}

async fn remove(world: &World, id: &PairId) -> Result<(), Error> {
    world.gateway.remove_pair(&world.tenant, Viewer::Operator, id).await.map(drop)
}

/// The pair of an approver's device with `robot`.
async fn pair_of(world: &World, who: &str, seed: u8) -> PairId {
    let key = SigningKey::from_seed(&[seed; 32]).verifying_key();
    let mut pairs = list(world, &PairFilter { approver: Some(approver(who)), ..of_robot() }).await;
    pairs.retain(|(_, pair)| pair.signing_key == Some(key));
    pairs.pop().unwrap().0
}

async fn pair_with(world: &World, enforcer: &str, who: &str, seed: u8) -> CompleteResponse {
    let request = InitiateRequest {
        enforcer_id: enforcer.parse().unwrap(),
        enforcer_label: None,
        workspace_name: None,
        public_key: bundle(1),
    };
    let begun = world.gateway.initiate_pairing(&world.tenant, request, &codes()).await.unwrap();
    let request = CompleteRequest {
        nonce: begun.nonce,
        approver_id: approver(who),
        public_key: bundle(seed),
        device_label: None,
        lock: None,
    };
    world.gateway.complete_pairing(&world.tenant, &request).await.unwrap()
}

async fn submit_with(world: &World, id: &str, token: &RoutingToken) -> u16 {
    let request = request(id);
    let body = request.body();
    let trace = format!(r#"{{"routingToken":"{token}"}}"#);
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
}

/// Decides a request of its own, signed with the key of this seed.
async fn decides(world: &World, who: &str, id: &str, seed: u8) -> u16 {
    world.submit(&request(id).to(who)).await.unwrap();
    decide_with(world, who, id, seed).await
}

async fn decide_with(world: &World, who: &str, id: &str, seed: u8) -> u16 {
    let id: RequestId = id.parse().unwrap();
    let decision = decision(&id, id.as_str(), "n", Some(&SigningKey::from_seed(&[seed; 32])));
    status_of(&decide(&world.gateway, &world.tenant, &approver(who), &id, &decision).await, 200)
}

async fn each_party_lists_its_pairs_with_what_is_known_of_them(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.at_minute(1).await;
    pair(&world, "ada", 2).await;
    world.at_minute(2).await;
    pair_with(&world, "crane", "ada", 2).await;
    pair(&world, "bob", 3).await;
    let begun = initiate(&world).await;
    let opaque = CompleteRequest {
        nonce: begun.nonce,
        approver_id: approver("cy"),
        public_key: "my own format".parse().unwrap(),
        device_label: None,
        lock: None,
    };
    world.gateway.complete_pairing(&world.tenant, &opaque).await.unwrap();
    let names = async |filter: PairFilter| -> Vec<String> {
        let pairs = list(&world, &filter).await;
        pairs.iter().map(|(id, _)| format!("{} {}", id.enforcer, id.approver)).collect()
    };
    assert_eq!(names(of_robot()).await, ["robot ada", "robot bob", "robot cy"]);
    assert_eq!(names(of_approver("ada")).await, ["crane ada", "robot ada"]);
    assert_eq!(names(of_approver("eve")).await, [""; 0]);
    assert_eq!(names(PairFilter::default()).await, ["crane ada", "robot ada", "robot bob", "robot cy"]);
    let both = PairFilter { enforcer: Some(robot()), approver: Some(approver("ada")) };
    let (_, of_ada) = list(&world, &both).await.pop().unwrap();
    assert_eq!(of_ada.created_at, Some(super::world::minutes(1)));
    assert_eq!(of_ada.enforcer_label, Some("Robot".parse().unwrap()));
    assert_eq!(of_ada.signing_key, bundle(2).signing_key());
    let (_, of_cy) = list(&world, &of_approver("cy")).await.pop().unwrap();
    assert_eq!(of_cy.signing_key, None, "it registered none");
    world.at_minute(5).await;
    pair(&world, "ada", 2).await;
    let (_, again) = list(&world, &both).await.pop().unwrap();
    assert_eq!(
        (again.created_at, again.routing_tokens.len()),
        (of_ada.created_at, 2),
        "one device, one pair"
    );
}

async fn pages_have_every_pair_once_while_others_are_removed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for number in 0..6 {
        let enforcer = format!("robot-{number}");
        for seed in 2..4 {
            pair_with(&world, &enforcer, "ada", seed).await;
        }
        pair_with(&world, &enforcer, "bob", 4).await;
    }
    let (all, of_ada) = (PairFilter::default(), of_approver("ada"));
    let of_robot = PairFilter { enforcer: Some("robot-3".parse().unwrap()), approver: None };
    for (filter, expected) in [(&all, 18), (&of_ada, 12), (&of_robot, 3)] {
        for limit in [1, 2, 5, 200] {
            let (mut listed, mut after) = (Vec::new(), None);
            loop {
                let page = world.gateway.pairs(&world.tenant, filter, after.as_ref(), limit).await.unwrap();
                assert!(page.pairs.len() <= limit as usize);
                listed.extend(page.pairs.into_iter().map(|(id, _)| id));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert!(listed.is_sorted() && listed.len() == expected, "{filter:?} {limit}: {listed:?}");
        }
    }
    let first = world.gateway.pairs(&world.tenant, &all, None, 4).await.unwrap();
    for (id, _) in &first.pairs {
        remove(&world, id).await.unwrap();
    }
    let rest = world.gateway.pairs(&world.tenant, &all, first.next.as_ref(), 200).await.unwrap();
    assert_eq!((rest.pairs.len(), rest.next), (14, None));
    assert_eq!(list(&world, &all).await, rest.pairs);
}

async fn another_s_pair_and_an_unknown_one_are_the_same_404(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let known = pair_of(&world, "ada", 2).await;
    let (crane, eve): (EnforcerId, ApproverId) = ("crane".parse().unwrap(), approver("eve"));
    let unknown = PairId { approver: eve.clone(), ..known.clone() };
    let other_device =
        PairId { device: countersign_wire::hash::Sha256Hex::digest(b"other"), ..known.clone() };
    let robot = robot();
    let statuses = async |viewer: Viewer<'_>, id: &PairId| {
        status_of(&world.gateway.remove_pair(&world.tenant, viewer, id).await, 200)
    };
    assert_eq!(statuses(Viewer::Enforcer(&crane), &known).await, 404);
    assert_eq!(statuses(Viewer::Approver(&eve), &known).await, 404);
    assert_eq!(statuses(Viewer::Enforcer(&robot), &unknown).await, 404);
    assert_eq!(statuses(Viewer::Enforcer(&robot), &other_device).await, 404);
    let other: countersign_wire::id::TenantId = "other".parse().unwrap();
    let foreign = world.gateway.remove_pair(&other, Viewer::Operator, &known).await;
    assert_eq!(status_of(&foreign, 200), 404);
    for (viewer, seed) in [
        (Viewer::Enforcer(&robot), 2),
        (Viewer::Approver(&approver("ada")), 2),
        (Viewer::AnyEnforcer, 2),
        (Viewer::AnyApprover, 2),
        (Viewer::Operator, 2),
    ] {
        assert_eq!(statuses(viewer, &known).await, 200, "{viewer:?}");
        assert_eq!(statuses(viewer, &known).await, 404, "{viewer:?}: it is gone");
        pair(&world, "ada", seed).await;
    }
}

async fn a_removed_pair_ends_its_tokens_and_its_key_in_one_commit(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = RecordingStore::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    let first = pair(&world, "ada", 2).await.routing_token;
    let second = pair(&world, "ada", 2).await.routing_token;
    let bobs = pair(&world, "bob", 3).await.routing_token;
    assert_eq!(submit_with(&world, "before", &first).await, 202);
    assert_eq!(submit_with(&world, "before-too", &second).await, 202);
    let id = pair_of(&world, "ada", 2).await;
    recording.take_committed();
    world.gateway.remove_pair(&world.tenant, Viewer::Enforcer(&robot()), &id).await.unwrap();
    let committed = recording.take_committed();
    assert_eq!(committed.len(), 1, "all of it or nothing");
    assert_eq!(committed[0].guards.len(), 3, "{:?}", committed[0].guards);
    let audit = String::from_utf8(committed[0].audit[0].event.to_vec()).unwrap();
    let key = bundle(2).signing_key().unwrap();
    for word in ["pair.removed", r#""actor":{"enforcer":"robot"}"#, "ada", &key.to_string()] {
        assert!(audit.contains(word), "{word} is not in {audit}");
    }
    for token in [&first, &second] {
        assert_eq!(submit_with(&world, "after", token).await, 422, "PROTO_ERR_NO_RECIPIENT");
    }
    assert_eq!(submit_with(&world, "to-bob", &bobs).await, 202);
    assert_eq!(decides(&world, "ada", "signed", 2).await, 403);
    let enforcers = world.gateway.paired_enforcers(&world.tenant, &approver("ada")).await.unwrap();
    assert_eq!(enforcers, []);
    world.submit(&request("to-all")).await.unwrap();
    assert!(world.inbox("bob").await.contains(&"to-all".to_owned()));
    assert!(!world.inbox("ada").await.contains(&"to-all".to_owned()), "not one of its approvers any more");
}

async fn a_key_stays_while_another_pair_has_brought_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    pair_with(&world, "crane", "ada", 2).await;
    remove(&world, &pair_of(&world, "ada", 2).await).await.unwrap();
    assert_eq!(decides(&world, "ada", "r", 2).await, 200, "the pair with the crane brought it too");
    let (left, _) = list(&world, &of_approver("ada")).await.pop().unwrap();
    remove(&world, &left).await.unwrap();
    assert_eq!(decides(&world, "ada", "s", 2).await, 403);
}

async fn a_removed_device_leaves_the_others_of_its_approver(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let lost = pair(&world, "ada", 2).await.routing_token;
    let kept = pair(&world, "ada", 3).await.routing_token;
    remove(&world, &pair_of(&world, "ada", 2).await).await.unwrap();
    assert_eq!(submit_with(&world, "lost", &lost).await, 422);
    assert_eq!(submit_with(&world, "kept", &kept).await, 202);
    assert_eq!(decides(&world, "ada", "by-lost", 2).await, 403);
    assert_eq!(decides(&world, "ada", "by-kept", 3).await, 200);
    let enforcers = world.gateway.paired_enforcers(&world.tenant, &approver("ada")).await.unwrap();
    assert_eq!(enforcers, [robot()], "still paired, with the other device");
}

async fn an_approver_whose_last_key_was_removed_decides_nothing_any_more(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    remove(&world, &pair_of(&world, "ada", 2).await).await.unwrap();
    world.submit(&request("unsigned").to("ada")).await.unwrap();
    assert_eq!(status_of(&world.decide("ada", "unsigned", "n").await, 200), 403);
    assert_eq!(decides(&world, "ada", "signed", 2).await, 403);
    pair(&world, "ada", 3).await;
    assert_eq!(decide_with(&world, "ada", "signed", 3).await, 200, "paired again");
}

async fn removing_makes_room_for_new_keys(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for seed in 2..18 {
        pair(&world, "ada", seed).await;
    }
    let begun = initiate(&world).await;
    assert_eq!(status_of(&complete(&world, &begun, "ada", 18).await, 200), 400, "sixteen, then locked out");
    remove(&world, &pair_of(&world, "ada", 7).await).await.unwrap();
    complete(&world, &begun, "ada", 18).await.unwrap();
    assert_eq!(decides(&world, "ada", "new", 18).await, 200);
    assert_eq!(decides(&world, "ada", "old", 7).await, 403);
}

async fn a_request_that_was_sent_before_stays_in_the_inbox(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    world.submit(&request("r")).await.unwrap();
    remove(&world, &pair_of(&world, "ada", 2).await).await.unwrap();
    assert_eq!(world.inbox("ada").await, ["r"]);
    assert_eq!(decide_with(&world, "ada", "r", 2).await, 403);
    assert_eq!(
        world.status("r").await.unwrap().state,
        countersign_wire::exchange::ExchangeState::PendingApproval
    );
}

async fn of_two_removals_one_succeeds(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    pair_with(&world, "crane", "ada", 2).await;
    let id = pair_of(&world, "ada", 2).await;
    let second = world.second_gateway().await;
    let there = second.remove_pair(&world.tenant, Viewer::AnyApprover, &id);
    let (here, there) = tokio::join!(remove(&world, &id), there);
    let mut statuses = [status_of(&here, 200), status_of(&there, 200)];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
    assert_eq!(decides(&world, "ada", "r", 2).await, 200, "the other pair still counts for its key");
}

async fn a_pair_from_before_pairs_were_recorded_is_listed_and_removed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let key = bundle(2).signing_key().unwrap();
    let put = |kind, id: &str, text: String| Put { key: Key::new(kind, id), content: text.into() };
    let mut change = Change::new(world.tenant.clone());
    change.puts.extend([
        put(Kind::Enforcer, "robot", r#"{"approvers":["ada"]}"#.to_owned()),
        put(
            Kind::Approver,
            "ada",
            format!(r#"{{"enforcers":["robot"],"signing_keys":["{key}"],"had_signing_key":true}}"#),
        ),
        put(Kind::Route, "token", r#"{"approver":"ada"}"#.to_owned()),
    ]);
    world.gateway.store().commit(change).await.unwrap();
    let token: RoutingToken = "token".parse().unwrap();
    assert_eq!(submit_with(&world, "before", &token).await, 202);
    assert_eq!(decides(&world, "ada", "r", 2).await, 200);
    let pairs = list(&world, &PairFilter::default()).await;
    assert_eq!((pairs.len(), pairs[0].1.created_at, pairs[0].1.signing_key), (1, None, None));
    assert_eq!(list(&world, &of_approver("ada")).await, pairs);
    remove(&world, &pairs[0].0).await.unwrap();
    assert_eq!(list(&world, &PairFilter::default()).await, []);
    assert_eq!(submit_with(&world, "after", &token).await, 422);
    assert_eq!(decides(&world, "ada", "s", 2).await, 403);
    assert_eq!(status_of(&remove(&world, &pairs[0].0).await, 200), 404);
    let kept = world.gateway.store().scan(&world.tenant, Kind::Approver, None, 10).await.unwrap();
    let kept: PairedApprover = serde_json::from_slice(&kept[0].content).unwrap();
    assert!(kept.had_signing_key && kept.signing_keys.is_empty());
    let kept = world.gateway.store().scan(&world.tenant, Kind::Enforcer, None, 10).await.unwrap();
    assert_eq!(serde_json::from_slice::<PairedEnforcer>(&kept[0].content).unwrap().approvers, []);
}
