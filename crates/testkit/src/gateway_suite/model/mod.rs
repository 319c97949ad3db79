//! Random commands run against the gateway and against a small model: both must agree on every response, every
//! state and every list.
//!
//! `MODEL_STEPS` sets how many commands to run; each store has its own default.

mod ops;
mod reference;

use std::{collections::BTreeSet, time::Duration};

use countersign_core::{
    model::{pairing::CodeKey, viewer::Viewer},
    use_cases::{acknowledge::Acknowledger, inbox::List, wait::WaitOutcome},
};
use countersign_wire::{
    ack::MessageAck,
    exchange::ExchangeState,
    id::RequestId,
    keys::{AgreementKey, KeyBundle, PublicKey, SigningKey},
    pairing::{CompleteRequest, InitiateRequest},
    refresh::RefreshBody,
};
use parking_lot::Mutex;
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use self::{
    ops::{APPROVERS, ENFORCERS, Op, decision_text, op},
    reference::{COLUMNS, Model, ROWS, row},
};
use super::world::{Request, World, approver, decide, status_of};
use crate::store_suite::{StoreHarness, cases, start};

cases! {
    random_commands_get_the_responses_of_the_model,
}

/// How many commands a sequence has; each sequence runs in its own tenant.
const SEQUENCE: usize = 200;

/// Runs a command on the gateway; returns the HTTP status of the result.
async fn perform(world: &World, op: &Op) -> u16 {
    let (gateway, tenant) = (&world.gateway, &world.tenant);
    let id = |id: &usize| format!("r{id}").parse::<RequestId>().unwrap();
    let enforcer = |index: &usize| ENFORCERS[*index].parse().unwrap();
    let by = |index: &usize| approver(APPROVERS[*index]);
    match op {
        Op::Submit { id: index, enforcer: who, about, minutes: life, to } => {
            let now = gateway.store().now().await.unwrap();
            let request = Request {
                id: id(index),
                enforcer: enforcer(who),
                about: format!("about {about}"),
                to: APPROVERS.get(*to).map(|name| approver(name)),
                expires_at: now.plus(Duration::from_mins(*life)),
                turns: Vec::new(),
            };
            status_of(&world.submit(&request).await, 202)
        }
        Op::Decide { id: index, by: who, .. } => {
            let text = decision_text(op).unwrap();
            status_of(&decide(gateway, tenant, &by(who), &id(index), &text).await, 200)
        }
        Op::Withdraw { id: index, enforcer: who } => {
            status_of(&gateway.withdraw(tenant, &enforcer(who), &id(index)).await, 200)
        }
        Op::Cancel { id: index } => status_of(&gateway.cancel(tenant, &id(index)).await, 200),
        Op::Acknowledge { id: index, enforcer: who } => {
            let who = enforcer(who);
            let by = Acknowledger::Enforcer(&who);
            status_of(&gateway.acknowledge(tenant, by, &id(index), &MessageAck::default()).await, 200)
        }
        Op::Wait { id: index, enforcer: who } => {
            match gateway.wait(tenant, Viewer::Enforcer(&enforcer(who)), &id(index), Duration::ZERO).await {
                Ok(WaitOutcome::Decided { .. }) => 200,
                Ok(WaitOutcome::NotDecided { .. }) => 204,
                Err(error) => error.failure().status(),
            }
        }
        Op::Refresh { id: index, by: who } => {
            status_of(&gateway.refresh(tenant, &by(who), &id(index), &RefreshBody::default()).await, 202)
        }
        Op::Status { id: index, by: who } => {
            let who = by(who);
            status_of(&gateway.status(tenant, Viewer::Approver(&who), &id(index)).await, 200)
        }
        Op::Hide { id: index, by: who } => status_of(&gateway.hide(tenant, &by(who), &id(index)).await, 200),
        Op::Pass { minutes } => {
            let now = gateway.store().now().await.unwrap();
            world.harness.set_now(now.plus(Duration::from_mins(*minutes))).await;
            200
        }
        Op::Sweep => status_of(&gateway.sweep().await, 200),
    }
}

async fn play(world: &World, ops: &[Op], hit: &Mutex<BTreeSet<(&'static str, &'static str)>>) {
    world.harness.set_now(start()).await;
    register_carol(world).await;
    let mut model = Model::default();
    for (step, op) in ops.iter().enumerate() {
        if let Some(row) = row(op, &model) {
            hit.lock().insert((row, model.column(op.id())));
        }
        let expected = model.answer(op);
        assert_eq!(perform(world, op).await, expected, "step {step}: {op:?}");
        if step % 25 == 24 || step + 1 == ops.len() {
            compare_lists(world, &mut model).await;
        }
    }
}

async fn compare_lists(world: &World, model: &mut Model) {
    let names = |ids: Vec<usize>| ids.into_iter().map(|id| format!("r{id}")).collect::<Vec<_>>();
    for (index, name) in APPROVERS.iter().enumerate() {
        assert_eq!(
            world.inbox(name).await,
            names(model.list(index, ExchangeState::PendingApproval)),
            "inbox of {name}"
        );
    }
    // Reading the expired list sweeps.
    model.answer(&Op::Sweep);
    for (index, name) in APPROVERS.iter().enumerate() {
        let mut expired: Vec<String> = world
            .list(name, List::Expired, 3)
            .await
            .into_iter()
            .map(|item| item.request_id.to_string())
            .collect();
        let mut expected = names(model.list(index, ExchangeState::Expired));
        expired.sort();
        expected.sort();
        assert_eq!(expired, expected, "expired list of {name}");
    }
    for (id, exchange) in &model.exchanges {
        let snapshot = world.status(&format!("r{id}")).await.unwrap();
        assert_eq!(snapshot.state, exchange.state_at(model.now()), "r{id}");
        let stored = snapshot.decision.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        assert_eq!(stored, exchange.decision, "decision of r{id}");
    }
}

async fn register_carol(world: &World) {
    let begin = InitiateRequest {
        enforcer_id: "another-robot".parse().unwrap(),
        enforcer_label: None,
        workspace_name: None,
        public_key: PublicKey::Opaque("k".into()),
    };
    let pairing =
        world.gateway.initiate_pairing(&world.tenant, begin, &CodeKey::from([7; 32])).await.unwrap();
    let mut agreement = [0; 32];
    agreement[0] = 9;
    let bundle = KeyBundle {
        signing: SigningKey::from_seed(&[3; 32]).verifying_key(),
        agreement: AgreementKey::from_bytes(agreement).unwrap(),
        proof: None,
    };
    let complete = CompleteRequest {
        nonce: pairing.nonce,
        approver_id: approver("carol"),
        public_key: PublicKey::Bundle(Box::new(bundle)),
        device_label: None,
        lock: None,
    };
    world.gateway.complete_pairing(&world.tenant, &complete).await.unwrap();
}

async fn random_commands_get_the_responses_of_the_model(harness: Box<dyn StoreHarness>) {
    let steps =
        std::env::var("MODEL_STEPS").ok().map_or(harness.model_steps(), |steps| steps.parse().unwrap());
    let sequences = u32::try_from(steps.div_ceil(SEQUENCE)).unwrap();
    let mut world = World::new(harness);
    let handle = tokio::runtime::Handle::current();
    let play_all = move || {
        let config = Config { cases: sequences, failure_persistence: None, ..Config::default() };
        let seed = std::env::var("MODEL_SEED").ok().map_or(1_u8, |seed| seed.parse().unwrap());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let hit = Mutex::new(BTreeSet::new());
        let mut sequence = 0;
        let world = Mutex::new((&mut world, &mut sequence));
        let played = runner.run(&prop::collection::vec(op(), SEQUENCE), |ops| {
            let mut locked = world.lock();
            let (world, sequence) = &mut *locked;
            // A separate tenant for every sequence is equivalent to an empty database.
            **sequence += 1;
            world.tenant = format!("tenant{sequence}").parse().unwrap();
            handle.block_on(play(world, &ops, &hit));
            Ok(())
        });
        if let Err(failure) = played {
            panic!("{failure}");
        }
        hit.into_inner()
    };
    let hit = tokio::task::spawn_blocking(play_all).await.unwrap();
    let missed: Vec<(&str, &str)> = ROWS
        .iter()
        .flat_map(|row| COLUMNS.iter().map(move |column| (*row, *column)))
        .filter(|cell| !hit.contains(cell))
        .collect();
    assert!(missed.is_empty(), "cells of the state table that were never hit: {missed:?}");
}
