//! The environment of a hook: what people see of it, and what it can't choose.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use countersign_wire::decision::DecisionOutcome;
use serde_json::Value;

use super::{approve, claude, decision, say, support::World};

/// Who has approved a call once sees what differs in the environment of the next.
#[tokio::test]
async fn people_see_which_variables_differ_from_the_last_approval() {
    let world = World::start().await;
    for (value, expected) in [("one", false), ("one", false), ("two", true)] {
        let mut hook = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["hook", "claude", "--home"])
            .arg(world.home())
            .env("EDITOR", value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let message = claude(&world, "touch x").to_string();
        hook.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
        world
            .decide_all(1, |request| {
                let payload: Value = serde_json::from_str(&request.payload).unwrap();
                let shown = payload["env"].as_array().into_iter().flatten();
                assert_eq!(shown.into_iter().any(|it| it["name"] == "EDITOR"), expected, "{payload}");
                approve(request)
            })
            .await;
        assert_eq!(decision(&hook.wait_with_output().unwrap()).0, "allow");
    }
}

/// What a repository's settings put into the environment chooses neither rules nor people.
#[tokio::test]
async fn no_variable_chooses_the_rules_or_the_profile() {
    let world = World::start().await;
    let other = world.folder.path().join("other");
    for folder in [other.clone(), other.join(".local/share/countersign")] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("rules.toml"), "[[rule]]\nverdict = \"allow\"\ncommand = \"touch *\"\n")
            .unwrap();
    }
    for (name, value) in [
        ("COUNTERSIGN_HOME", other.clone()),
        ("HOME", other.clone()),
        ("XDG_DATA_HOME", other.join(".local/share")),
        ("COUNTERSIGN_PROFILE_FILE", other.join("profile")),
        ("COUNTERSIGN_PROFILE", PathBuf::from("other")),
    ] {
        let mut hook = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["hook", "claude", "--home"])
            .arg(world.home())
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let message = claude(&world, "touch x").to_string();
        hook.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
        world.decide_all(1, |_| say(DecisionOutcome::Reject, "no")).await;
        let (verdict, reason) = decision(&hook.wait_with_output().unwrap());
        assert!(verdict == "deny" && reason.contains("rejected by ada"), "{name}: {reason}");
    }
}
