//! Races through two handles: exactly one succeeds, and the other gets a response that fits.
//!
//! `RACE_ROUNDS` sets the rounds of each race; 200 by default.

use countersign_core::{
    Error, Gateway,
    model::credential::Role,
    use_cases::{join::JoinOutcome, rotate::DEFAULT_OVERLAP, submit::Submitted},
};
use countersign_wire::{
    api_key::ApiKey,
    exchange::ExchangeState,
    id::{RequestId, TenantId},
    keys::PublicKey,
    pairing::{CompleteRequest, InitiateRequest},
};

use super::{
    invitations::{invite, mac_key, nonce},
    world::{Request, World, approver, decide, decision, minutes, request, robot, status_of, submit},
};
use crate::store_suite::{StoreHarness, cases};

cases! {
    two_decisions_race,
    a_decision_and_a_withdrawal_race,
    a_decision_and_expiry_race,
    two_equal_submissions_race,
    two_different_submissions_race,
    two_completions_race,
    two_who_join_race,
    two_equal_joins_race,
    two_rotations_race,
}

fn rounds() -> usize {
    std::env::var("RACE_ROUNDS").ok().map_or(200, |rounds| rounds.parse().expect("RACE_ROUNDS is a number"))
}

/// Spawns both, so that they can run on different workers.
async fn race<A: Send + 'static, B: Send + 'static>(
    one: impl Future<Output = A> + Send + 'static,
    two: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    let (one, two) = (tokio::spawn(one), tokio::spawn(two));
    (one.await.unwrap(), two.await.unwrap())
}

async fn decide_as(
    gateway: Gateway,
    tenant: TenantId,
    who: &'static str,
    id: RequestId,
) -> Result<Submitted, Error> {
    let decision = decision(&id, id.as_str(), who, None);
    decide(&gateway, &tenant, &approver(who), &id, &decision).await
}

async fn two_decisions_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    for round in 0..rounds() {
        let name = format!("r{round}");
        let id: RequestId = name.parse().unwrap();
        world.submit(&request(&name)).await.unwrap();
        let (ada, bob) = race(
            decide_as(world.gateway.clone(), world.tenant.clone(), "ada", id.clone()),
            decide_as(second.clone(), world.tenant.clone(), "bob", id),
        )
        .await;
        let winner = match (status_of(&ada, 200), status_of(&bob, 200)) {
            (200, 409) => "ada",
            (409, 200) => "bob",
            other => panic!("round {round}: {other:?}"),
        };
        let stored = world.status(&name).await.unwrap().decision.unwrap();
        assert!(
            String::from_utf8_lossy(&stored).contains(&format!(r#""nonce":"{winner}""#)),
            "round {round}"
        );
    }
}

async fn a_decision_and_a_withdrawal_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    for round in 0..rounds() {
        let name = format!("r{round}");
        let id: RequestId = name.parse().unwrap();
        world.submit(&request(&name)).await.unwrap();
        let (second, tenant, other_id) = (second.clone(), world.tenant.clone(), id.clone());
        let (decided, withdrawn) =
            race(decide_as(world.gateway.clone(), world.tenant.clone(), "ada", id), async move {
                second.withdraw(&tenant, &robot(), &other_id).await
            })
            .await;
        let state = world.status(&name).await.unwrap().state;
        match (status_of(&decided, 200), status_of(&withdrawn, 200)) {
            (200, 409) => assert_eq!(state, ExchangeState::Decided, "round {round}"),
            (404, 200) => assert_eq!(state, ExchangeState::Withdrawn, "round {round}"),
            other => panic!("round {round}: {other:?}"),
        }
    }
}

async fn a_decision_and_expiry_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    for round in 0..rounds() {
        let name = format!("r{round}");
        world.at_minute(0).await;
        world.submit(&request(&name)).await.unwrap();
        let decide = decide_as(world.gateway.clone(), world.tenant.clone(), "ada", name.parse().unwrap());
        let decide = tokio::spawn(decide);
        world.harness.set_now(minutes(10)).await;
        second.sweep().await.unwrap();
        let decided = decide.await.unwrap();
        let state = world.status(&name).await.unwrap().state;
        match status_of(&decided, 200) {
            200 => assert_eq!(state, ExchangeState::Decided, "round {round}"),
            409 => assert_eq!(state, ExchangeState::Expired, "round {round}"),
            other => panic!("round {round}: {other}"),
        }
    }
}

async fn submissions(
    harness: Box<dyn StoreHarness>,
    other: impl Fn(&str) -> Request,
    expected: [(u16, bool); 2],
) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    for round in 0..rounds() {
        let name = format!("r{round}");
        let (first, other) = (request(&name), other(&name));
        let (gateway, tenant) = (world.gateway.clone(), world.tenant.clone());
        let (second, second_tenant) = (second.clone(), world.tenant.clone());
        let (one, two) = race(async move { submit(&gateway, &tenant, &first).await }, async move {
            submit(&second, &second_tenant, &other).await
        })
        .await;
        let seen = |outcome: &Result<Submitted, Error>| {
            (status_of(outcome, 202), outcome.as_ref().is_ok_and(|submitted| submitted.replayed))
        };
        let mut outcomes = [seen(&one), seen(&two)];
        outcomes.sort_unstable();
        assert_eq!(outcomes, expected, "round {round}");
    }
    assert_eq!(world.inbox("ada").await.len(), rounds());
}

async fn two_equal_submissions_race(harness: Box<dyn StoreHarness>) {
    submissions(harness, request, [(202, false), (202, true)]).await;
}

async fn two_different_submissions_race(harness: Box<dyn StoreHarness>) {
    submissions(harness, |name| request(name).about("else"), [(202, false), (409, false)]).await;
}

async fn two_completions_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    let codes = countersign_core::model::pairing::CodeKey::from([7; 32]);
    for round in 0..rounds() {
        let key = |name: &str| PublicKey::Opaque(name.into());
        let begin = InitiateRequest {
            enforcer_id: format!("robot{round}").parse().unwrap(),
            enforcer_label: None,
            workspace_name: None,
            public_key: key("enforcer"),
        };
        let pairing = world.gateway.initiate_pairing(&world.tenant, begin, &codes).await.unwrap();
        let complete = |gateway: Gateway, who: &'static str| {
            let (tenant, nonce) = (world.tenant.clone(), pairing.nonce.clone());
            async move {
                // An approver has a thousand pairs at most.
                let request = CompleteRequest {
                    nonce,
                    approver_id: approver(&format!("{who}{}", round / 500)),
                    public_key: key(who),
                    device_label: None,
                    lock: None,
                };
                gateway.complete_pairing(&tenant, &request).await
            }
        };
        let (ada, bob) = race(complete(world.gateway.clone(), "ada"), complete(second.clone(), "bob")).await;
        let mut statuses = [status_of(&ada, 200), status_of(&bob, 200)];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "round {round}");
    }
}

/// Joins with these nonces at once, each round with a new invitation. Returns the keys that were made in each round.
async fn joins(world: &World, nonces: [&'static str; 2]) -> Vec<[Option<ApiKey>; 2]> {
    let second = world.second_gateway().await;
    let mut made = Vec::new();
    for _ in 0..rounds() {
        let invitation = invite(world, 10).await.invitation;
        let join = |gateway: Gateway, with: &'static str| {
            let invitation = invitation.clone();
            async move {
                match gateway.join(&invitation, &nonce(with), &mac_key()).await.unwrap() {
                    JoinOutcome::Joined(key) => Some(key.key),
                    JoinOutcome::Taken => None,
                    JoinOutcome::Invalid => panic!("it is taken, and was valid"),
                }
            }
        };
        let (one, two) = race(join(world.gateway.clone(), nonces[0]), join(second.clone(), nonces[1])).await;
        made.push([one, two]);
    }
    assert_eq!(
        world.gateway.keys(&world.tenant, None, u32::MAX).await.unwrap().items.len(),
        rounds(),
        "one key for each invitation"
    );
    made
}

async fn two_who_join_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for (round, made) in joins(&world, ["a", "b"]).await.iter().enumerate() {
        assert_eq!(made.iter().flatten().count(), 1, "round {round}");
    }
}

async fn two_equal_joins_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for (round, [one, two]) in joins(&world, ["a", "a"]).await.iter().enumerate() {
        assert!(one.is_some() && one == two, "round {round}");
    }
}

async fn two_rotations_race(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let second = world.second_gateway().await;
    for round in 0..rounds() {
        let key = world.gateway.create_key(&world.tenant, Role::Operator, &mac_key()).await.unwrap().key;
        let rotate = |gateway: Gateway, with: &'static str| {
            let key = key.clone();
            async move { gateway.rotate_key(&key, &nonce(with), DEFAULT_OVERLAP, &mac_key()).await }
        };
        let (one, two) = race(rotate(world.gateway.clone(), "a"), rotate(second.clone(), "b")).await;
        let mut statuses = [status_of(&one, 201), status_of(&two, 201)];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409], "round {round}");
    }
    assert_eq!(world.gateway.keys(&world.tenant, None, u32::MAX).await.unwrap().items.len(), rounds() * 2);
}
