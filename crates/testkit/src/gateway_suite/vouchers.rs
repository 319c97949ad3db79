//! Vouchers: who is accepted by one, until when, and that nothing that was removed comes back by one.

use std::time::Duration;

use countersign_core::{
    Error,
    model::{
        pairs::{Pair, PairId},
        viewer::Viewer,
    },
    store::Kind,
    use_cases::{pairs::PairFilter, vouchers::AcceptedVoucher},
};
use countersign_wire::{
    fingerprint::Fingerprint,
    keys::{KeyBundle, PublicKey, SigningKey},
    statement::{Claim, Issue, Statement},
    timestamp::Timestamp,
};

use super::{
    pairing_fixtures::{bundle, pair},
    world::{World, approver, decide, decision, minutes, request, robot, status_of},
};
use crate::store_suite::{StoreHarness, cases, start};

cases! {
    a_vouched_device_decides_until_its_voucher_ends,
    what_has_ended_is_swept_with_its_key_and_the_pair_of_both_sides,
    a_teammate_s_first_device_is_accepted_and_no_second_one,
    only_a_paired_device_of_that_enforcer_vouches,
    a_removed_pair_does_not_come_back_by_its_voucher,
    a_longer_voucher_and_a_pairing_take_the_place_of_a_shorter_one,
    a_recovery_code_decides_nothing_and_brings_one_device,
    a_recovered_device_vouches_also_when_the_lost_one_is_removed,
    vouchers_and_recovery_codes_are_limited,
    of_two_devices_with_one_code_one_is_accepted,
}

const DAY: u64 = 24 * 60;

fn keys(seed: u8) -> (SigningKey, KeyBundle) {
    let PublicKey::Bundle(bundle) = bundle(seed) else { unreachable!("a bundle") };
    (SigningKey::from_seed(&[seed; 32]), *bundle)
}

pub(super) fn vouch(who: &str, seed: u8, until: Timestamp) -> Claim {
    Claim::vouch(who, &keys(seed).1, "phone", until, false)
}

pub(super) fn recovery(who: &str, seed: u8, until: Timestamp) -> Claim {
    Claim::vouch(who, &keys(seed).1, "", until, true)
}

/// Signed at the start, for `robot`.
pub(super) fn said(by: &str, seed: u8, claim: Claim) -> Statement {
    said_under(by, seed, claim, "s-1")
}

fn said_under(by: &str, seed: u8, claim: Claim, id: &str) -> Statement {
    let (key, bundle) = keys(seed);
    let issue = Issue { enforcer_id: "robot", id, by, at: start() };
    Statement::sign(&key, Fingerprint::of(&bundle), issue, claim).unwrap()
}

async fn present(world: &World, statement: &Statement) -> Result<AcceptedVoucher, Error> {
    world.gateway.present_voucher(&world.tenant, statement).await
}

async fn status(world: &World, statement: &Statement) -> u16 {
    status_of(&present(world, statement).await, 200)
}

async fn list(world: &World, who: &str) -> Vec<(PairId, Pair)> {
    let filter = PairFilter { enforcer: Some(robot()), approver: Some(approver(who)) };
    world.gateway.pairs(&world.tenant, &filter, None, 200).await.unwrap().pairs
}

/// Decides a request of its own, signed with the key of this seed.
async fn decides(world: &World, who: &str, id: &str, seed: u8) -> u16 {
    let now = world.gateway.store().now().await.unwrap();
    let mut request = request(id).to(who);
    request.expires_at = now.plus(Duration::from_mins(10));
    world.submit(&request).await.unwrap();
    let decision = decision(&request.id, id, "n", Some(&SigningKey::from_seed(&[seed; 32])));
    let decided = decide(&world.gateway, &world.tenant, &approver(who), &request.id, &decision).await;
    status_of(&decided, 200)
}

async fn a_vouched_device_decides_until_its_voucher_ends(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let voucher = said("ada", 2, vouch("ada", 3, minutes(100)));
    assert_eq!(decides(&world, "ada", "before", 3).await, 403);
    let accepted = present(&world, &voucher).await.unwrap();
    assert_eq!((accepted.until, accepted.enforcer.as_str()), (minutes(100), "robot"));
    assert_eq!(present(&world, &voucher).await.unwrap(), accepted, "the same again");
    let listed = list(&world, "ada").await;
    let (_, added) = listed.iter().find(|(id, _)| Some(id.device) == accepted.device).unwrap();
    let by = added.vouched.clone().unwrap();
    assert_eq!((by.by.as_str(), by.until, by.recovered), ("ada", minutes(100), false));
    assert_eq!(added.enforcer_label, Some("Robot".parse().unwrap()));
    assert_eq!(decides(&world, "ada", "during", 3).await, 200);
    world.at_minute(99).await;
    assert_eq!(decides(&world, "ada", "at last", 3).await, 200);
    world.at_minute(100).await;
    assert_eq!(decides(&world, "ada", "after", 3).await, 403, "also before it is swept");
    assert_eq!(decides(&world, "ada", "paired", 2).await, 200);
    assert_eq!(status(&world, &voucher).await, 403, "it has ended");
}

async fn what_has_ended_is_swept_with_its_key_and_the_pair_of_both_sides(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    assert_eq!(status(&world, &said("ada", 2, vouch("bob", 3, minutes(100)))).await, 200);
    let paired = async || world.gateway.paired_enforcers(&world.tenant, &approver("bob")).await.unwrap();
    world.gateway.sweep().await.unwrap();
    assert_eq!((list(&world, "bob").await.len(), paired().await), (1, vec![robot()]));
    world.at_minute(100).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!((list(&world, "bob").await.len(), paired().await), (0, vec![]));
    assert_eq!(list(&world, "ada").await.len(), 1);
    assert_eq!(decides(&world, "bob", "after", 3).await, 403, "who had a key stays strict");
    let records = world.gateway.store().scan(&world.tenant, Kind::Pairs, None, 10).await.unwrap();
    assert_eq!(records.len(), 1, "nothing of it is left");
}

async fn a_teammate_s_first_device_is_accepted_and_no_second_one(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    assert_eq!(status(&world, &said("ada", 2, vouch("bob", 3, minutes(100)))).await, 200);
    assert_eq!(decides(&world, "bob", "bobs", 3).await, 200);
    let second = said("ada", 2, vouch("bob", 4, minutes(100)));
    assert_eq!(status(&world, &second).await, 403, "a second one");
    let lost = list(&world, "bob").await.pop().unwrap().0;
    world.gateway.remove_pair(&world.tenant, Viewer::Operator, &lost).await.unwrap();
    assert_eq!(status(&world, &second).await, 200, "in place of the lost one");
    pair(&world, "cy", 5).await;
    assert_eq!(status(&world, &said("ada", 2, vouch("cy", 6, minutes(100)))).await, 403, "cy is paired");
    assert_eq!(status(&world, &said("ada", 2, recovery("dan", 6, minutes(100)))).await, 403, "no code");
}

async fn only_a_paired_device_of_that_enforcer_vouches(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    pair(&world, "ada", 2).await;
    let good = said("ada", 2, vouch("ada", 3, minutes(100)));
    assert_eq!(status(&world, &good).await, 200);
    let elsewhere = {
        let (key, bundle) = keys(2);
        let issue = Issue { enforcer_id: "crane", id: "s", by: "ada", at: start() };
        Statement::sign(&key, Fingerprint::of(&bundle), issue, vouch("ada", 4, minutes(100))).unwrap()
    };
    let swapped = {
        let text = serde_json::to_string(&good).unwrap();
        let other = text.replace(&keys(3).1.to_string(), &keys(4).1.to_string());
        assert_ne!(text, other);
        serde_json::from_str(&other).unwrap()
    };
    for (why, statement) in [
        ("a vouched device", said("ada", 3, vouch("ada", 4, minutes(100)))),
        ("an unknown device", said("ada", 9, vouch("ada", 4, minutes(100)))),
        ("another's name", said("bob", 2, vouch("ada", 4, minutes(100)))),
        ("another enforcer", elsewhere),
        ("other keys", swapped),
        ("for too long", said("ada", 2, vouch("ada", 4, minutes(366 * DAY)))),
    ] {
        assert_eq!(status(&world, &statement).await, 403, "{why}");
    }
    let revocation = said("ada", 2, Claim::revoke(Fingerprint::of(&keys(3).1)));
    assert_eq!(status(&world, &revocation).await, 400, "no voucher");
    assert_eq!(list(&world, "ada").await.len(), 2);
    world.tenant = "other".parse().unwrap();
    assert_eq!(status(&world, &good).await, 403, "another tenant");
}

async fn a_removed_pair_does_not_come_back_by_its_voucher(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let voucher = said("ada", 2, vouch("bob", 3, minutes(100)));
    present(&world, &voucher).await.unwrap();
    let id = list(&world, "bob").await.pop().unwrap().0;
    world.gateway.remove_pair(&world.tenant, Viewer::Approver(&approver("bob")), &id).await.unwrap();
    assert_eq!(list(&world, "bob").await.len(), 0);
    assert_eq!(status(&world, &voucher).await, 403);
    assert_eq!(decides(&world, "bob", "later", 3).await, 403);
    let new = said_under("ada", 2, vouch("bob", 3, minutes(100)), "s-2");
    assert_eq!(status(&world, &new).await, 200, "a new one");
}

async fn a_longer_voucher_and_a_pairing_take_the_place_of_a_shorter_one(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    for (id, until) in [("s-1", 100), ("s-2", 300), ("s-3", 200)] {
        let voucher = said_under("ada", 2, vouch("ada", 3, minutes(until)), id);
        assert_eq!(status(&world, &voucher).await, 200);
    }
    world.at_minute(299).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(decides(&world, "ada", "longest", 3).await, 200);
    pair(&world, "ada", 3).await;
    world.at_minute(301).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(decides(&world, "ada", "paired", 3).await, 200);
    let again = said_under("ada", 2, vouch("ada", 3, minutes(400)), "s-4");
    assert_eq!(status(&world, &again).await, 200);
    world.at_minute(401).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(decides(&world, "ada", "still paired", 3).await, 200, "a voucher does not shorten a pairing");
    assert_eq!(list(&world, "ada").await.len(), 2);
}

async fn a_recovery_code_decides_nothing_and_brings_one_device(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let code = said("ada", 2, recovery("ada", 9, minutes(100 * DAY)));
    let accepted = present(&world, &code).await.unwrap();
    assert_eq!(accepted.device, None);
    assert_eq!(present(&world, &code).await.unwrap(), accepted);
    assert_eq!(list(&world, "ada").await.len(), 1, "a code is no pair");
    assert_eq!(decides(&world, "ada", "by the code", 9).await, 403);
    for (why, statement) in [
        ("as a device", said("ada", 2, vouch("ada", 9, minutes(100)))),
        ("a device as a code", said("ada", 2, recovery("ada", 2, minutes(100)))),
        ("for another code", said("ada", 9, recovery("ada", 4, minutes(100)))),
        ("for a teammate", said("ada", 9, vouch("bob", 4, minutes(100)))),
    ] {
        assert_eq!(status(&world, &statement).await, 403, "{why}");
    }
    let new = said("ada", 9, vouch("ada", 5, minutes(100)));
    assert_eq!((status(&world, &new).await, status(&world, &new).await), (200, 200));
    assert_eq!(decides(&world, "ada", "by the new one", 5).await, 200);
    assert_eq!(status(&world, &said("ada", 9, vouch("ada", 6, minutes(100)))).await, 403, "once");
    let same = said_under("ada", 9, vouch("ada", 5, minutes(200)), "s-2");
    assert_eq!(status(&world, &same).await, 403, "also for the same device");
}

async fn a_recovered_device_vouches_also_when_the_lost_one_is_removed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    present(&world, &said("ada", 2, recovery("ada", 9, minutes(100 * DAY)))).await.unwrap();
    let lost = list(&world, "ada").await.pop().unwrap().0;
    world.gateway.remove_pair(&world.tenant, Viewer::Operator, &lost).await.unwrap();
    assert_eq!(decides(&world, "ada", "lost", 2).await, 403);
    assert_eq!(status(&world, &said("ada", 9, vouch("ada", 5, minutes(100)))).await, 200);
    assert_eq!(decides(&world, "ada", "recovered", 5).await, 200);
    assert_eq!(status(&world, &said("ada", 5, vouch("bob", 6, minutes(100)))).await, 200);
    assert_eq!(status(&world, &said("ada", 5, recovery("ada", 8, minutes(100)))).await, 200, "a new code");
    world.at_minute(100).await;
    let late = said("ada", 5, vouch("cy", 7, minutes(200)));
    assert_eq!(status(&world, &late).await, 403, "its own time is over");
}

async fn vouchers_and_recovery_codes_are_limited(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    for seed in 10..18 {
        assert_eq!(status(&world, &said("ada", 2, recovery("ada", seed, minutes(100)))).await, 200);
    }
    assert_eq!(status(&world, &said("ada", 2, recovery("ada", 18, minutes(100)))).await, 400);
    for number in 8..256 {
        let voucher = said_under("ada", 2, vouch("ada", 3, minutes(100)), &format!("s-{number}"));
        assert_eq!(status(&world, &voucher).await, 200, "{number}");
    }
    let one_more = said_under("ada", 2, vouch("ada", 3, minutes(200)), "one more");
    assert_eq!(status(&world, &one_more).await, 400);
    world.at_minute(100).await;
    assert_eq!(status(&world, &one_more).await, 200, "the others have ended");
}

async fn of_two_devices_with_one_code_one_is_accepted(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    present(&world, &said("ada", 2, recovery("ada", 9, minutes(100)))).await.unwrap();
    let (one, other) =
        (said("ada", 9, vouch("ada", 5, minutes(50))), said("ada", 9, vouch("ada", 6, minutes(50))));
    let (one, other) = tokio::join!(status(&world, &one), status(&world, &other));
    let mut both = [one, other];
    both.sort_unstable();
    assert_eq!(both, [200, 403]);
    assert_eq!(list(&world, "ada").await.len(), 2);
}
