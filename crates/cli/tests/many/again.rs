//! Requests that expire, and are asked again because an approver wants to answer after all: at a real gateway.

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use countersign_client::{
    clock::{Clock as _, SystemClock},
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::RequestId,
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::support::World;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// How long a request is valid that is answered when it is asked for the second time.
const VALID_FOR: &str = "8s";

pub(super) fn tool(world: &World, home: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .current_dir(world.folder.path())
        .env("COUNTERSIGN_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The end of a command, what it said to people, and what to programs.
pub(super) async fn ended(child: Child) -> (Option<i32>, String, String) {
    let output: Output =
        tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stderr), text(output.stdout))
}

/// The only request in the inbox or on the list of expired ones, as soon as there is one.
async fn only(world: &World, is_expired: bool) -> OpenedRequest {
    let until = Instant::now() + PATIENCE;
    loop {
        let items = match is_expired {
            true => world.ada.expired(&world.adas).await.unwrap(),
            false => world.ada.inbox(&world.adas).await.unwrap(),
        };
        if let Some(item) = items.into_iter().next() {
            return item.opened.unwrap();
        }
        assert!(Instant::now() < until, "no request arrives");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn approve(world: &World, request: &OpenedRequest) {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let (outcome, words) = (DecisionOutcome::Approve, Words::default());
    let choice = Choice { outcome, scope: Scope::Once, valid_until, words };
    world.ada.decide(request, &choice).await.unwrap();
}

/// Asks for an expired request again, and returns what the machine asks then.
async fn wanted(world: &World, old: &RequestId) -> OpenedRequest {
    world.ada.refresh(old, None).await.unwrap();
    let new = only(world, false).await;
    assert_eq!(new.supersedes.as_ref(), Some(old));
    new
}

#[tokio::test]
async fn a_command_that_waits_asks_again_and_runs_after_the_approval() {
    let world = World::start().await;
    let arguments = ["exec", "--valid-for", VALID_FOR, "--ask-again-for", "2m", "--", "touch", "done"];
    let exec = tool(&world, &world.home(), &arguments);
    let old = only(&world, true).await;
    let new = wanted(&world, &old.request_id).await;
    assert_eq!(new.payload, old.payload, "it is the same call");
    assert!(!world.folder.path().join("done").exists());
    approve(&world, &new).await;
    let (code, said, _) = ended(exec).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(world.folder.path().join("done").exists());
    let short = &old.request_id.as_str()[..8];
    assert!(said.contains("expired nobody answered in time"), "{said}");
    assert!(said.contains(&format!("`countersign ask-again {short}`")), "{said}");
    assert!(said.contains("asked   ada, again"), "{said}");
}

#[tokio::test]
async fn a_program_that_waits_ends_with_82_at_once_unless_it_says_otherwise() {
    let world = World::start().await;
    let started = Instant::now();
    let (code, said, _) = ended(tool(&world, &world.home(), &["ask", "--valid-for", "1s", "--", "ls"])).await;
    assert_eq!(code, Some(82), "{said}");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(!said.contains("ask-again"), "{said}");
    let arguments = ["ask", "--valid-for", "1s", "--ask-again-for", "2s", "--", "ls"];
    let (code, said, _) = ended(tool(&world, &world.home(), &arguments)).await;
    assert_eq!(code, Some(82), "nobody wanted it again: {said}");
    let (_, said, listed) = ended(tool(&world, &world.home(), &["wait"])).await;
    assert_eq!(
        (said.trim(), listed.as_str()),
        ("Nothing is waiting for an answer.", ""),
        "nobody waits any more"
    );
}

#[tokio::test]
async fn what_was_detached_is_asked_again_by_whoever_waits_and_the_old_id_leads_to_the_new() {
    let world = World::start().await;
    let home = world.home();
    let (_, _, id) =
        ended(tool(&world, &home, &["ask", "--detach", "--valid-for", VALID_FOR, "--", "ls"])).await;
    let id = id.trim();
    let old = only(&world, true).await;
    assert_eq!(old.request_id.as_str(), id);
    let (code, said, _) = ended(tool(&world, &home, &["wait", id])).await;
    assert_eq!(code, Some(82), "{said}");
    let (_, _, listed) = ended(tool(&world, &home, &["wait"])).await;
    let end = listed.lines().nth(1).unwrap_or_default();
    assert!(end.contains("expired ") && end.ends_with(&id[..8]), "it can be asked again: {listed}");
    let waits = tool(&world, &home, &["wait", id, "--ask-again-for", "2m"]);
    let new = wanted(&world, &old.request_id).await;
    // Somebody else who has the old id waits for the new one too. One of them gets the answer.
    let follows = tool(&world, &home, &["wait", id]);
    sleep(Duration::from_secs(1)).await;
    approve(&world, &new).await;
    let (first, second) = (ended(waits).await, ended(follows).await);
    assert!([first.0, second.0].contains(&Some(0)), "{first:?} {second:?}");
    let new = &new.request_id.as_str()[..8];
    assert!(second.1.contains(&format!("was asked again. Waiting for {new}.")), "{}", second.1);
}

#[tokio::test]
async fn a_machine_that_listens_asks_again_for_what_was_detached_and_for_nothing_else() {
    let world = World::start().await;
    let home = world.home();
    let mut listens = tool(&world, &home, &["listen"]);
    let (_, _, id) =
        ended(tool(&world, &home, &["ask", "--detach", "--valid-for", VALID_FOR, "--", "ls"])).await;
    let (_, _, _) = ended(tool(&world, &home, &["exec", "--valid-for", "1s", "--", "touch", "x"])).await;
    let until = Instant::now() + PATIENCE;
    let expired = loop {
        let expired = world.ada.expired(&world.adas).await.unwrap();
        if expired.len() == 2 {
            break expired;
        }
        assert!(Instant::now() < until);
        sleep(Duration::from_millis(100)).await;
    };
    for item in &expired {
        world.ada.refresh(&item.request_id, None).await.unwrap();
    }
    let new = only(&world, false).await;
    assert_eq!(new.supersedes.as_ref().map(RequestId::as_str), Some(id.trim()));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(world.ada.inbox(&world.adas).await.unwrap().len(), 1, "the other one has nobody who waits");
    // What this machine is called: the label and the name of its profile, and no repository's.
    let presence = world.ada.presence(&"robot".parse().unwrap()).await.unwrap();
    let names =
        [presence.enforcer_label, presence.workspace_name].map(|name| name.unwrap().as_str().to_owned());
    assert_eq!(names, ["robot", "agent"]);
    listens.kill().unwrap();
    listens.wait().unwrap();
    approve(&world, &new).await;
    let (code, said, _) = ended(tool(&world, &home, &["wait", id.trim()])).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test]
async fn an_approver_who_comes_too_late_is_told_so_and_asks_for_it_again() {
    let world = World::start().await;
    let desk = world.folder.path().join("desk");
    let arguments = ["exec", "--valid-for", VALID_FOR, "--ask-again-for", "2m", "--", "touch", "done"];
    let exec = tool(&world, &world.home(), &arguments);
    let old = only(&world, true).await;
    let short = &old.request_id.as_str()[..8];
    let (code, said, _) = ended(tool(&world, &desk, &["reject", short])).await;
    assert_eq!(code, Some(82), "{said}");
    assert!(said.contains("Too late: it expired at"), "{said}");
    assert!(said.contains(&format!("Ask for it again with `countersign ask-again {short}`.")), "{said}");
    let (code, said, listed) = ended(tool(&world, &desk, &["ask-again"])).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(listed.contains("touch done") && listed.trim_end().ends_with(short), "{listed}");
    let (code, said, result) = ended(tool(&world, &desk, &["ask-again", short, "--json"])).await;
    assert_eq!(code, Some(0), "{said}");
    let result: Value = serde_json::from_str(&result).unwrap();
    let new = only(&world, false).await;
    assert_eq!(result["askedAgainAs"], new.request_id.as_str(), "it says what to answer: {result}");
    let (_, _, again) = ended(tool(&world, &desk, &["ask-again", short, "--json"])).await;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), result, "it is not asked twice");
    let (code, said, _) = ended(tool(&world, &desk, &["ask-again", new.request_id.as_str()])).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("This request is still waiting for you."), "{said}");
    let (_, _, shown) = ended(tool(&world, &desk, &["show"])).await;
    assert!(shown.contains("asked again: in place of a request without an answer"), "{shown}");
    let (code, said, _) = ended(tool(&world, &desk, &["reject", new.request_id.as_str()])).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said, _) = ended(exec).await;
    assert_eq!(code, Some(81), "{said}");
}
