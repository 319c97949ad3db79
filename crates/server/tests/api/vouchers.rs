//! `POST /platform/v1/pairs`.

use std::{sync::Arc, time::Duration};

use countersign_wire::{
    fingerprint::Fingerprint,
    keys::KeyBundle,
    statement::{Claim, Issue, Statement},
    timestamp::Timestamp,
};
use serde_json::{Value, json};

use crate::{
    case::cases,
    pairing::pair_up,
    support::{
        client::Client,
        messages::{bundle, decision_about, envelope, hash, now},
    },
    world::{Pair, World},
};

cases! {
    a_voucher_adds_a_device_that_decides,
    a_teammate_presents_a_voucher_and_gets_requests,
    a_recovery_code_replaces_a_lost_device,
    every_voucher_that_does_not_verify_is_the_same_403,
    a_malformed_voucher_is_400_and_another_s_403,
}

const PATH: &str = "/platform/v1/pairs";

fn keys(seed: u8) -> KeyBundle {
    bundle(seed).0.parse().unwrap()
}

/// A day from now, by the clock of this machine, which is the store's.
fn tomorrow() -> Timestamp {
    now().plus(Duration::from_hours(24))
}

fn vouch(who: &str, seed: u8) -> Claim {
    Claim::vouch(who, &keys(seed), "phone", tomorrow(), false)
}

/// Signed by a device of this approver.
fn said(enforcer_id: &str, by: &str, seed: u8, claim: Claim) -> Statement {
    let issue = Issue { enforcer_id, id: "s", by, at: now() };
    Statement::sign(&bundle(seed).1, Fingerprint::of(&keys(seed)), issue, claim).unwrap()
}

fn body(statement: &Statement) -> String {
    json!({ "voucher": statement }).to_string()
}

async fn decide(pair: &Pair, who: &Client, approver_id: &str, id: &str, seed: u8) -> (u16, String) {
    let mut submission = pair.submission(id);
    submission["recipient"] = json!({ "approverId": approver_id });
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    let decision = decision_about(id, &hash(id), "approve", Some(&bundle(seed).1));
    let body = envelope("decision.submit", id, json!({ "approverId": approver_id }), decision);
    who.post("/v1/decisions", body.to_string()).await.outcome()
}

const REFUSED: (u16, &str) = (403, "PROTO_ERR_SIGNATURE_INVALID");

async fn a_voucher_adds_a_device_that_decides(world: Arc<World>) {
    let pair = world.pair().await;
    pair_up(&pair, 1).await;
    let voucher = said(&pair.enforcer_id, &pair.approver_id, 1, vouch(&pair.approver_id, 2));
    let refused = decide(&pair, &pair.approver, &pair.approver_id, &pair.id("before"), 2).await;
    assert_eq!((refused.0, refused.1.as_str()), REFUSED);
    let answer = pair.approver.post(PATH, body(&voucher)).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let accepted = answer.json();
    assert_eq!(accepted["enforcerId"], *pair.enforcer_id);
    assert_eq!(accepted["approverId"], *pair.approver_id);
    assert_eq!(pair.approver.post(PATH, body(&voucher)).await.expect(200).json(), accepted, "again");
    let listed = pair.enforcer.get(PATH).await.expect(200).json();
    let mut listed = listed["pairs"].as_array().unwrap().iter();
    let listed = listed.find(|listed| listed["pairId"] == accepted["pairId"]).unwrap();
    assert_eq!(listed["vouchedBy"], *pair.approver_id);
    assert_eq!(listed["vouchedUntil"], accepted["vouchedUntil"]);
    assert_eq!(listed["signingKey"], bundle(2).1.verifying_key().to_string());
    assert_eq!(decide(&pair, &pair.approver, &pair.approver_id, &pair.id("after"), 2).await.0, 200);
    let path = format!("{PATH}/{}", accepted["pairId"].as_str().unwrap());
    pair.enforcer.delete(&path).await.expect(200);
    pair.approver.post(PATH, body(&voucher)).await.refuse(REFUSED.0, REFUSED.1);
    let refused = decide(&pair, &pair.approver, &pair.approver_id, &pair.id("removed"), 2).await;
    assert_eq!((refused.0, refused.1.as_str()), REFUSED);
}

async fn a_teammate_presents_a_voucher_and_gets_requests(world: Arc<World>) {
    let pair = world.pair().await;
    pair_up(&pair, 1).await;
    let bob_id = format!("bob-{}", pair.number);
    let bob = pair.approver.with_key(&world.key("approver", &bob_id).await);
    let voucher = said(&pair.enforcer_id, &pair.approver_id, 1, vouch(&bob_id, 3));
    bob.post(PATH, body(&voucher)).await.expect(200);
    let id = pair.id("for-all");
    let mut submission = pair.submission(&id);
    submission.as_object_mut().unwrap().remove("recipient");
    pair.enforcer.post("/v1/artifacts", submission.to_string()).await.expect(202);
    let progress =
        pair.enforcer.get(&format!("/platform/v1/exchanges/{id}/progress")).await.expect(200).json();
    let mut addressed = progress["approvers"].as_array().unwrap().iter();
    assert!(addressed.any(|approver| approver["approverId"] == *bob_id));
    bob.get(&format!("/v1/exchanges/{id}")).await.expect(200);
    assert_eq!(decide(&pair, &bob, &bob_id, &pair.id("bobs"), 3).await.0, 200);
}

async fn a_recovery_code_replaces_a_lost_device(world: Arc<World>) {
    let pair = world.pair().await;
    pair_up(&pair, 1).await;
    let code = Claim::vouch(&pair.approver_id, &keys(9), "", tomorrow(), true);
    let code = said(&pair.enforcer_id, &pair.approver_id, 1, code);
    let accepted = pair.approver.post(PATH, body(&code)).await.expect(200).json();
    assert_eq!(accepted["pairId"], Value::Null, "a code is no device");
    let refused = decide(&pair, &pair.approver, &pair.approver_id, &pair.id("code"), 9).await;
    assert_eq!((refused.0, refused.1.as_str()), REFUSED);
    let lost = pair.approver.get(PATH).await.expect(200).json();
    let lost = lost["pairs"][0]["pairId"].as_str().unwrap().to_owned();
    pair.approver.delete(&format!("{PATH}/{lost}")).await.expect(200);
    let new = said(&pair.enforcer_id, &pair.approver_id, 9, vouch(&pair.approver_id, 2));
    pair.approver.post(PATH, body(&new)).await.expect(200);
    assert_eq!(decide(&pair, &pair.approver, &pair.approver_id, &pair.id("new"), 2).await.0, 200);
    let second = said(&pair.enforcer_id, &pair.approver_id, 9, vouch(&pair.approver_id, 3));
    pair.approver.post(PATH, body(&second)).await.refuse(REFUSED.0, REFUSED.1);
}

async fn every_voucher_that_does_not_verify_is_the_same_403(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    pair_up(&pair, 1).await;
    pair_up(&other, 5).await;
    let (robot, ada) = (pair.enforcer_id.as_str(), pair.approver_id.as_str());
    let ended = {
        let until = now().minus(Duration::from_secs(1));
        let issue = Issue { enforcer_id: robot, id: "s", by: ada, at: now().minus(Duration::from_mins(5)) };
        let claim = Claim::vouch(ada, &keys(2), "", until, false);
        Statement::sign(&bundle(1).1, Fingerprint::of(&keys(1)), issue, claim).unwrap()
    };
    let swapped = serde_json::to_string(&said(robot, ada, 1, vouch(ada, 2))).unwrap();
    let swapped = swapped.replace(&bundle(2).0, &bundle(4).0);
    let mut answers = Vec::new();
    for (why, voucher) in [
        ("the signer is not known", said(robot, ada, 9, vouch(ada, 2))),
        ("the enforcer is not known", said("nobody", ada, 1, vouch(ada, 2))),
        ("the enforcer is another's", said(&other.enforcer_id, ada, 1, vouch(ada, 2))),
        ("who vouches is not known", said(robot, "nobody", 1, vouch(ada, 2))),
        ("a third person is paired", said(robot, &other.approver_id, 5, vouch(ada, 2))),
        ("the keys were swapped", serde_json::from_str(&swapped).unwrap()),
        ("it has ended", ended),
    ] {
        let answer = pair.approver.post(PATH, body(&voucher)).await;
        assert_eq!(answer.outcome(), (REFUSED.0, REFUSED.1.to_owned()), "{why}");
        answers.push(answer.bytes);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "nobody learns who is paired with whom");
}

async fn a_malformed_voucher_is_400_and_another_s_403(world: Arc<World>) {
    let (pair, other) = (world.pair().await, world.pair().await);
    pair_up(&pair, 1).await;
    let good = said(&pair.enforcer_id, &pair.approver_id, 1, vouch(&pair.approver_id, 2));
    let revocation = Claim::revoke(Fingerprint::of(&keys(2)));
    let revocation = said(&pair.enforcer_id, &pair.approver_id, 1, revocation);
    let changed = |name: &str, value: Value| {
        let mut body = json!({ "voucher": good });
        body["voucher"][name] = value;
        body.to_string()
    };
    let weak = {
        let mut body = json!({ "voucher": good });
        body["voucher"]["claim"]["bundle"] = json!("v1.x.y");
        body.to_string()
    };
    let more = json!({ "voucher": good, "more": 1 }).to_string();
    for body in
        ["{}".to_owned(), more, changed("v", json!("1")), changed("more", json!(1)), weak, body(&revocation)]
    {
        pair.approver.post(PATH, body).await.refuse(400, "PROTO_ERR_VALIDATION");
    }
    other.approver.post(PATH, body(&good)).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    for who in [&pair.enforcer, &world.operator] {
        who.post(PATH, body(&good)).await.refuse(403, "PROTO_ERR_FORBIDDEN");
    }
    pair.approver.without_key().post(PATH, body(&good)).await.refuse(401, "PROTO_ERR_UNAUTHENTICATED");
    let proto = [("content-type", "application/proto+json")];
    pair.approver.post_with(PATH, body(&good), &proto).await.refuse(415, "PROTO_ERR_MEDIA_TYPE");
    pair.approver.post(PATH, "x".repeat(70_000)).await.refuse(413, "PROTO_ERR_TOO_LARGE");
    pair.approver.post(PATH, body(&good)).await.expect(200);
}
