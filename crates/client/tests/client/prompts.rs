//! Prompts through a real gateway: sent, opened, checked, answered.

use std::{sync::Arc, time::Duration};

use crate::support::{
    Store, World,
    listen::{heard, news},
    pair,
};
use countersign_client::{
    approver::Approver,
    channel::{ApproverEvent, ApproverListener, EnforcerEvent, Settings},
    clock::{Clock, SystemClock},
    enforcer::Enforcer,
    pairing::statement::{Claim, Issue},
    profile::Pins,
    prompt::{PromptContent, PromptDraft, PromptError, PromptRefused},
};
use countersign_wire::{
    id::RequestId,
    prompt::{AckStatus, Target},
    timestamp::Timestamp,
};

const CANARY: &str = "canary-5d1e";

fn words() -> PromptDraft {
    PromptDraft {
        target: Target::Composer,
        content: PromptContent::Text(format!("{CANARY}: use the other branch")),
        session_id: None,
        valid_for: Duration::from_mins(5),
    }
}

/// What the approver is told of a prompt.
async fn outcome(listener: &mut ApproverListener<'_>, pins: &Pins) -> (RequestId, AckStatus) {
    heard(listener, pins, |event| match event {
        ApproverEvent::PromptAck { request_id, status, .. } => Some((request_id, status)),
        _ => None,
    })
    .await
}

async fn paired(world: &World) -> (Enforcer, Approver, Pins, Pins) {
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    (robot, ada, robots, adas)
}

async fn prompts_on(store: Store) {
    let world = World::start_on(store).await;
    let (robot, ada, robots, adas) = paired(&world).await;
    let (mut at_robot, mut at_ada) =
        (robot.listen(Vec::new(), Settings::default()), ada.listen(Settings::default()));
    let issue = Issue { enforcer_id: "robot", id: "s1", by: "ada", at: SystemClock.now() };
    let claim = Claim::revoke(robot.keys.fingerprint());
    let statement = ada.keys.sign_statement(issue, claim).unwrap();
    let about_a_device = PromptDraft {
        target: Target::Other,
        content: PromptContent::Statement(Box::new(statement)),
        ..words()
    };
    for (draft, status) in [(words(), AckStatus::Delivered), (about_a_device, AckStatus::Rejected)] {
        let sent = ada.prompt(&robot.id, &draft, &adas).await.unwrap();
        let EnforcerEvent::Prompt(prompt) = news(&mut at_robot, &robots).await else { panic!("no prompt") };
        assert_eq!((&prompt.request_id, &prompt.content), (&sent.request_id, &draft.content));
        assert_eq!((prompt.approver.as_str(), prompt.device), ("ada", ada.keys.fingerprint()));
        if let PromptContent::Statement(statement) = &prompt.content {
            // Who opens it verifies it, like any statement.
            let signer = robots.get(prompt.device).unwrap();
            assert!(signer.verify_statement(statement, "robot", SystemClock.now()).is_ok());
        }
        robot.answer_prompt(&prompt, status).await.unwrap();
        assert_eq!(outcome(&mut at_ada, &adas).await, (sent.request_id.clone(), status));
        // It can be sent again without being said again, and has the same answer.
        assert_eq!(ada.send_prompt(&sent).await, Ok(AckStatus::Queued));
    }
    if store == Store::Sqlite {
        for file in std::fs::read_dir(world.data.path().join("data")).unwrap() {
            let content = std::fs::read(file.unwrap().path()).unwrap_or_default();
            assert!(!content.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()), "it is sealed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_statements_reach_the_enforcer_and_its_answer_the_approver_on_sqlite() {
    prompts_on(Store::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_statements_reach_the_enforcer_and_its_answer_the_approver_on_postgres() {
    prompts_on(Store::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_of_a_revoked_device_is_rejected_and_its_sender_is_told() {
    let world = World::start().await;
    let (robot, ada, mut robots, adas) = paired(&world).await;
    robots.revoke(ada.keys.fingerprint(), SystemClock.now()).unwrap();
    let (mut at_robot, mut at_ada) =
        (robot.listen(Vec::new(), Settings::default()), ada.listen(Settings::default()));
    let sent = ada.prompt(&robot.id, &words(), &adas).await.unwrap();
    match news(&mut at_robot, &robots).await {
        EnforcerEvent::PromptRefused { request_id, error: PromptRefused::UnknownSender } => {
            assert_eq!(request_id, sent.request_id);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome(&mut at_ada, &adas).await, (sent.request_id, AckStatus::Rejected));
    // Who has pinned nobody has nobody to say something to.
    let unpaired = ada.prompt(&"other".parse().unwrap(), &words(), &adas).await;
    assert!(matches!(unpaired, Err(PromptError::NotPaired(_))), "{unpaired:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_was_taken_is_not_taken_again_after_a_restart() {
    let world = World::start().await;
    let (robot, ada, robots, adas) = paired(&world).await;
    let mut at_ada = ada.listen(Settings::default());
    let sent = ada.prompt(&robot.id, &words(), &adas).await.unwrap();
    let mut at_robot = robot.listen(Vec::new(), Settings::default());
    assert!(matches!(news(&mut at_robot, &robots).await, EnforcerEvent::Prompt(_)));
    // The process ends before it has answered, so nobody knows what became of it.
    drop(at_robot);
    let mut again = robot.listen(Vec::new(), Settings::default());
    match news(&mut again, &robots).await {
        EnforcerEvent::PromptRefused { request_id, error: PromptRefused::Replayed } => {
            assert_eq!(request_id, sent.request_id);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome(&mut at_ada, &adas).await, (sent.request_id, AckStatus::Error));
}

/// A clock that is ten minutes ahead.
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(Duration::from_mins(10))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_was_held_back_for_too_long_is_expired() {
    let world = World::start().await;
    let (robot, ada, robots, adas) = paired(&world).await;
    let robot = Enforcer { clock: Arc::new(Later), ..robot };
    let (mut at_robot, mut at_ada) =
        (robot.listen(Vec::new(), Settings::default()), ada.listen(Settings::default()));
    let sent = ada.prompt(&robot.id, &words(), &adas).await.unwrap();
    let refused = news(&mut at_robot, &robots).await;
    assert!(
        matches!(refused, EnforcerEvent::PromptRefused { error: PromptRefused::Expired, .. }),
        "{refused:?}"
    );
    assert_eq!(outcome(&mut at_ada, &adas).await, (sent.request_id, AckStatus::Expired));
}
