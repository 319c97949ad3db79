//! Relay mode: the person at the desk, the host's own prompt, and the phone.

use super::*;

/// The verdict of a worker whose host is attended, which a test has no terminal for.
pub(super) fn relayed(world: &World, host: &str, message: &Value) -> Child {
    hook(world, &[host, "--mode", "relay", "--worker", "--attended", "--host-timeout", "20"], message)
}

pub(super) fn verdict(child: Child) -> Value {
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

pub(super) fn set_presence(world: &World, presence: &str) {
    let set = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .arg(presence)
        .env("COUNTERSIGN_HOME", world.home())
        .output();
    assert!(set.unwrap().status.success());
}

#[tokio::test]
async fn at_the_desk_the_hosts_own_prompt_comes_first_and_away_the_phone() {
    let world = World::start().await;
    for host in ["codex", "copilot"] {
        assert_eq!(verdict(relayed(&world, host, &asks(&world, host)))["verdict"], "noOpinion", "{host}");
    }
    set_presence(&world, "away");
    for host in ["claude", "codex", "copilot"] {
        let child = relayed(&world, host, &asks(&world, host));
        world.decide_all(1, approve).await;
        assert_eq!(verdict(child)["verdict"], "allow", "{host}");
    }
    // Every call is only checked for what is denied.
    assert_eq!(verdict(relayed(&world, "claude", &claude(&world, "touch x")))["verdict"], "noOpinion");
    set_presence(&world, "here");
    assert_eq!(verdict(relayed(&world, "codex", &asks(&world, "codex")))["verdict"], "noOpinion");
}

#[tokio::test]
async fn an_answer_at_the_desk_takes_the_request_back_from_the_phone() {
    let world = World::start().await;
    set_presence(&world, "away");
    let child = relayed(&world, "claude", &asks(&world, "claude"));
    world.waiting(1).await;
    let mut used = claude(&world, "touch other");
    used["hook_event_name"] = "PostToolUse".into();
    assert!(hook(&world, &["claude"], &used).wait_with_output().unwrap().status.success());
    sleep(Duration::from_millis(600)).await;
    world.waiting(1).await;
    used["tool_input"]["command"] = "touch x".into();
    assert!(hook(&world, &["claude"], &used).wait_with_output().unwrap().status.success());
    assert_eq!(verdict(child)["verdict"], "noOpinion");
    nobody_is_asked(&world).await;
}

#[tokio::test]
async fn without_anybody_at_the_desk_a_relay_is_a_gate() {
    let mut world = World::start().await;
    let relay = ["claude", "--mode", "relay"];
    let child = hook(&world, &relay, &claude(&world, "touch x"));
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "no")).await;
    assert_eq!(decision(&child.wait_with_output().unwrap()).0, "deny");
    world.gateway.kill().unwrap();
    world.gateway.wait().unwrap();
    // With somebody there it goes back to them, with the cause.
    let found = verdict(relayed(&world, "codex", &asks(&world, "codex")));
    assert_eq!(found["verdict"], "noOpinion");
    set_presence(&world, "away");
    let found = verdict(relayed(&world, "codex", &asks(&world, "codex")));
    assert!(
        found["verdict"] == "noOpinion" && found["cause"].as_str().unwrap().contains("The gateway at"),
        "{found}"
    );
    let output = hook(&world, &relay, &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_denied(&output, "the gateway at");
}
