//! An approver stops an agent: nothing more is done in its session, whatever rules, grants or hooks there are.

use countersign_client::{
    approver::Approver,
    keys::DeviceKeys,
    profile::{Pin, Profile},
};
use countersign_wire::session::EndReason;

use super::{
    keeper::{Keeper, starts},
    *,
};

fn stop(words: Option<&str>) -> PromptDraft {
    PromptDraft {
        target: Target::Other,
        content: PromptContent::Stop { words: words.map(str::to_owned) },
        session_id: Some("s-1".parse().unwrap()),
        valid_for: Duration::from_mins(5),
    }
}

fn news(world: &World, name: &str) -> Value {
    json!({ "hook_event_name": name, "session_id": "s-1", "cwd": world.folder.path(), "prompt": "please",
        "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

/// A world in which the agent works in a repository, where rules allow `ls`: nobody is asked.
async fn start() -> World {
    let world = World::start().await;
    fs::create_dir(world.folder.path().join(".git")).unwrap();
    fs::write(world.folder.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    world
}

fn run(world: &World, message: &Value) -> Output {
    hook(world, &["claude", "--host-timeout", "30"], message).wait_with_output().unwrap()
}

#[tokio::test]
async fn a_stop_ends_a_question_and_everything_after_it() {
    let world = start().await;
    run(&world, &news(&world, "SessionStart"));
    let child = hook(&world, &["claude"], &claude(&world, "touch x"));
    world.waiting(1).await;
    world.ada.prompt(&"robot".parse().unwrap(), &stop(Some("wrong branch")), &world.adas).await.unwrap();
    let (verdict, reason) = decision(&child.wait_with_output().unwrap());
    assert!(
        verdict == "deny" && reason.contains("ada (key ") && reason.contains("“wrong branch”"),
        "{reason}"
    );
    nobody_is_asked(&world).await;
    // What a rule allows is denied too, by another process, and nobody is asked.
    let (verdict, reason) = decision(&run(&world, &claude(&world, "ls")));
    assert!(verdict == "deny" && reason.contains("stopped this agent"), "{reason}");
    assert!(world.ada.inbox(&world.adas).await.unwrap().is_empty());
    let session = world.ada.session(&"s-1".parse().unwrap()).await.unwrap();
    assert!(session.ended_at.is_some() && session.end_reason == Some(EndReason::PolicyKill), "{session:?}");
    // Another session of the same machine goes on.
    let mut other = claude(&world, "ls");
    other["session_id"] = "s-2".into();
    assert_eq!(decision(&run(&world, &other)).0, "allow");
}

#[tokio::test]
async fn an_agent_that_asks_nobody_is_stopped_after_its_call() {
    let world = start().await;
    assert_eq!(decision(&run(&world, &claude(&world, "ls"))).0, "allow");
    world.ada.prompt(&"robot".parse().unwrap(), &stop(None), &world.adas).await.unwrap();
    run(&world, &news(&world, "PostToolUse"));
    let (verdict, reason) = decision(&run(&world, &claude(&world, "ls")));
    assert!(verdict == "deny" && reason.contains("stopped this agent. Nothing more"), "{reason}");
}

/// The gateway takes it: its key is Ada's. But the keys that seal it were never paired.
#[tokio::test]
async fn whoever_is_not_paired_stops_nobody() {
    let world = start().await;
    let Approver { http, id, clock, .. } = &world.ada;
    let thief = Approver {
        http: http.clone(),
        id: id.clone(),
        keys: DeviceKeys::generate().unwrap(),
        clock: clock.clone(),
    };
    thief.prompt(&"robot".parse().unwrap(), &stop(None), &world.adas).await.unwrap();
    run(&world, &news(&world, "PostToolUse"));
    assert_eq!(decision(&run(&world, &claude(&world, "ls"))).0, "allow");
}

/// Runs a hook that asks a keeper.
fn asks_keeper(world: &World, message: &Value) -> Output {
    starts(world, message, "30").wait_with_output().unwrap()
}

/// The verdict on a call that a rule allows, as soon as it is another one than before, or after this time.
async fn verdict_within(world: &World, limit: Duration) -> (String, String) {
    let until = Instant::now() + limit;
    loop {
        let (verdict, reason) = decision(&asks_keeper(world, &claude(world, "ls")));
        if verdict != "allow" || Instant::now() > until {
            return (verdict, reason);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_keeper_hears_a_stop_while_no_hook_looks() {
    let world = start().await;
    let _keeper = Keeper::start(&world).await;
    asks_keeper(&world, &news(&world, "SessionStart"));
    assert_eq!(decision(&asks_keeper(&world, &claude(&world, "ls"))).0, "allow");
    world.ada.prompt(&"robot".parse().unwrap(), &stop(None), &world.adas).await.unwrap();
    let (verdict, reason) = verdict_within(&world, Duration::from_secs(20)).await;
    assert!(verdict == "deny" && reason.contains("stopped this agent"), "{reason}");
}

#[tokio::test]
async fn a_keeper_does_not_hear_whoever_is_not_paired_any_more() {
    let world = start().await;
    let _keeper = Keeper::start(&world).await;
    asks_keeper(&world, &news(&world, "SessionStart"));
    // It is connected, and has what waited.
    asks_keeper(&world, &news(&world, "Stop"));
    let profile = Profile::open(&world.home().join("profiles/agent")).unwrap();
    let now = world.ada.clock.now();
    profile
        .update_pins(|pins| {
            let known: Vec<_> = pins.iter().map(Pin::fingerprint).collect();
            known.into_iter().try_for_each(|fingerprint| pins.revoke(fingerprint, now))
        })
        .unwrap();
    sleep(Duration::from_secs(2)).await;
    world.ada.prompt(&"robot".parse().unwrap(), &stop(None), &world.adas).await.unwrap();
    assert_eq!(verdict_within(&world, Duration::from_secs(3)).await.0, "allow");
}

#[tokio::test]
async fn a_state_that_was_reported_is_not_reported_again() {
    let world = start().await;
    let updated_at = async || world.ada.session(&"s-1".parse().unwrap()).await.unwrap().updated_at.unwrap();
    run(&world, &news(&world, "SessionStart"));
    run(&world, &news(&world, "UserPromptSubmit"));
    let planning = updated_at().await;
    run(&world, &news(&world, "UserPromptSubmit"));
    assert_eq!(updated_at().await, planning);
    run(&world, &news(&world, "Stop"));
    let idle = updated_at().await;
    assert!(planning < idle);
    // Whoever starts again may be another agent in the same session.
    run(&world, &news(&world, "SessionStart"));
    assert!(idle < updated_at().await);
}
