//! Two ends and a gateway between them that lies to both: nothing that it makes up, changes, swaps or repeats is accepted,
//! and nothing that people say is found in what it has.
//!
//! `COUNTERSIGN_EVIL_ROUNDS` says how often it tries what is random; 200 times if it is not set.

mod canaries;
mod decisions;
mod pairing;
mod sealed;
use std::{sync::Arc, time::Duration};

use crate::support::{World, evil::Evil, pair};
use countersign_client::{
    approver::Approver,
    audience::Audience,
    clock::{Clock as _, SystemClock},
    enforcer::Enforcer,
    journal::FileJournal,
    profile::Pins,
    reply::{Choice, Words},
    request::{Draft, Request},
};
use countersign_core::model::credential::Role;
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
};

/// Exchanges of which every one is swapped with every other one.
const EXCHANGES: usize = 20;

/// How often something random is tried.
fn rounds() -> usize {
    std::env::var("COUNTERSIGN_EVIL_ROUNDS").map_or(200, |text| text.parse().unwrap())
}

/// A gateway, the lying one before it, and an enforcer and an approver that know only the lying one.
struct Scene {
    world: World,
    evil: Evil,
    robot: Enforcer,
    ada: Approver,
    /// Whom the enforcer has pinned.
    robots: Pins,
    /// Whom the approver has pinned.
    adas: Pins,
}

impl Scene {
    async fn start() -> Self {
        let world = World::start().await;
        let evil = Evil::start(world.address).await;
        let journal = Arc::new(FileJournal::new(world.data.path().join("journal")));
        let robot = world.enforcer_with("robot", journal).await;
        let http = world.http_at(evil.address, Role::Enforcer(Some(robot.id.clone()))).await;
        let robot = Enforcer { http, ..robot };
        let ada = approver(&world, &evil, "ada").await;
        let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
        Self { world, evil, robot, ada, robots, adas }
    }

    /// Submits a request about something in a repository.
    async fn submit(&self, number: usize) -> Request {
        let draft = Draft {
            artifact_type: ArtifactType::CommandReview,
            payload: format!(r#"{{"argv":["git","push","branch-{number}"]}}"#),
            repo_name: format!("repository-{}", number % 2),
            valid_for: Duration::from_mins(10),
            session: None,
            actions: Vec::new(),
            edits: Vec::new(),
            to: Audience::everybody(),
        };
        let request =
            Request::build(&draft, &self.robot.id, &self.robot.keys, &self.robots, SystemClock.now());
        let request = request.unwrap();
        self.robot.submit(&request).await.unwrap();
        request
    }
}

/// An approver that knows only the lying gateway.
async fn approver(world: &World, evil: &Evil, id: &str) -> Approver {
    let http = world.http_at(evil.address, Role::Approver(Some(id.parse().unwrap()))).await;
    Approver { http, ..world.approver(id).await }
}

fn choice(outcome: DecisionOutcome) -> Choice {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let words = Words { reason: Some("because".to_owned()), ..Words::default() };
    Choice { outcome, scope: Scope::Once, valid_until, words }
}
