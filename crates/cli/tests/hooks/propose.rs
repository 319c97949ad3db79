//! Commands of the tool where a keeper decides: `exec` runs what was approved, and nothing else.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Output, Stdio},
};

use countersign_agents::{
    call_socket::frames::{PROPOSAL, question_bytes},
    tool::caller::Caller,
};
use countersign_wire::decision::DecisionOutcome;
use serde_json::{Value, json};

use super::{
    approve,
    keeper::{Keeper, said_to},
    nobody_is_asked, say, signal,
    support::World,
};

fn tool(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(arguments).current_dir(world.folder.path()).env("COUNTERSIGN_HOME", world.home());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(super) fn start(world: &World, arguments: &[&str]) -> Child {
    tool(world, arguments).spawn().unwrap()
}

pub(super) fn ended(child: Child) -> (i32, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn script(world: &World, text: &str) {
    let path = world.folder.path().join("run.sh");
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_command_runs_as_it_was_approved_and_reads_no_file_of_ours() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    script(&world, "#!/bin/sh\necho \"$1\" > ran\nexit 3\n");
    let traced = world.folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=openat,open", "-o"]).arg(&traced);
    strace.arg(env!("CARGO_BIN_EXE_countersign")).args(["exec", "--", "./run.sh", "now"]);
    strace.current_dir(world.folder.path()).env("COUNTERSIGN_HOME", world.home());
    let child = strace.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    world.decide_all(1, |_| say(DecisionOutcome::Approve, "go")).await;
    let (code, _, said) = ended(child);
    assert_eq!(
        (code, fs::read_to_string(world.folder.path().join("ran")).unwrap().trim()),
        (3, "now"),
        "{said}"
    );
    for words in ["asked", "✓ approved by ada", "“go”"] {
        assert!(said.contains(words), "{said}");
    }
    let home = world.home().display().to_string();
    let trace = fs::read_to_string(traced).unwrap();
    let opened: Vec<&str> = trace.lines().filter(|line| line.contains(&format!("{home}/"))).collect();
    let is_socket = |line: &&str| line.contains(&format!("{home}/call\""));
    assert!(opened.iter().all(is_socket), "{opened:#?}");
    // Whoever approved is told how it ended.
    let history = ended(start(&world, &["history"])).1;
    assert!(history.contains("run.sh"), "{history}");
}

#[tokio::test]
async fn nothing_runs_that_was_rejected_or_has_changed_or_is_denied_by_a_rule() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    let ran = world.folder.path().join("ran");
    script(&world, "#!/bin/sh\ntouch ran\n");
    let child = start(&world, &["exec", "--", "./run.sh"]);
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "not on a Friday")).await;
    let (code, _, said) = ended(child);
    assert!(code == 81 && said.contains("not on a Friday") && !ran.exists(), "{code} {said}");

    let child = start(&world, &["exec", "--", "./run.sh"]);
    world
        .decide_all(1, |request| {
            script(&world, "#!/bin/sh\ntouch ran evil\n");
            approve(request)
        })
        .await;
    let (code, _, said) = ended(child);
    assert!(code == 84 && said.contains("run.sh") && !ran.exists(), "{code} {said}");

    fs::write(world.home().join("rules.toml"), "[[rule]]\nverdict = \"deny\"\ncommand = \"./run.sh **\"\n")
        .unwrap();
    let (code, _, said) = ended(start(&world, &["exec", "--", "./run.sh"]));
    assert!(code == 81 && said.contains("rule denies") && !ran.exists(), "{code} {said}");
}

#[tokio::test]
async fn whoever_is_gone_takes_the_request_back_and_a_keeper_that_dies_lets_nothing_run() {
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    for (name, code) in [("INT", Some(130)), ("KILL", None)] {
        let child = start(&world, &["exec", "--", "touch", "ran"]);
        world.waiting(1).await;
        signal(i32::try_from(child.id()).unwrap(), name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{output:?}");
        nobody_is_asked(&world).await;
    }
    let child = start(&world, &["exec", "--", "touch", "ran"]);
    world.waiting(1).await;
    drop(keeper);
    let (code, _, said) = ended(child);
    assert!(code == 86 && said.contains("nothing was run"), "{code} {said}");
    assert!(!world.folder.path().join("ran").exists());
}

#[tokio::test]
async fn plans_are_asked_about_and_variables_of_the_rules_are_passed() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    fs::write(world.home().join("rules.toml"), "[exec]\nenv = [\"WORD\"]\n").unwrap();
    let child = start(&world, &["--json", "ask", "--checkpoint", "half of it is done"]);
    world.decide_all(1, |_| say(DecisionOutcome::Approve, "go on")).await;
    let (code, out, said) = ended(child);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {said}"));
    assert_eq!((code, &answer["outcome"], &answer["reason"]), (0, &json!("approved"), &json!("go on")));
    let arguments = ["--json", "exec", "--", "sh", "-c", "echo $WORD"];
    let child = tool(&world, &arguments).env("WORD", "passed").spawn().unwrap();
    world.decide_all(1, approve).await;
    let (code, out, said) = ended(child);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {said}"));
    assert_eq!((code, &answer["stdout"], &answer["exitCode"]), (0, &json!("passed\n"), &json!(0)));
    let (code, _, said) = ended(start(&world, &["ask", "--detach", "--checkpoint", "later"]));
    assert!(code == 2 && said.contains("without --detach"), "{said}");
}

#[tokio::test]
async fn proposals_that_are_not_understood_or_not_ones_own_are_refused() {
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    let command = |user: u32| {
        let run_as = json!({ "uid": user, "gid": 0, "groups": [], "umask": 0 });
        json!({ "argv": ["true"], "env": [], "with": [], "reads": "nothing", "runAs": run_as })
    };
    let proposal = |what: Value| json!({ "what": what, "validFor": 1000, "patience": 0 });
    let own = rustix::process::getuid().as_raw();
    let mut more = proposal(json!({ "run": command(own) }));
    more["isApproved"] = true.into();
    for (proposal, words) in [
        (more, "can't be read"),
        (json!({}), "can't be read"),
        (proposal(json!({ "run": command(own + 1) })), "another account"),
        (proposal(json!({ "decide": command(own) })), "can't be read"),
    ] {
        let caller = Caller { variables: Vec::new(), folder: Some(world.folder.path().to_owned()) };
        let message = proposal.to_string();
        let question =
            question_bytes(PROPOSAL, &json!({ "isLive": false }), &caller, message.as_bytes()).unwrap();
        let said = said_to(&keeper, &question);
        assert!(said.contains(words), "{proposal}: {said}");
    }
    nobody_is_asked(&world).await;
    // Others are served.
    let child = start(&world, &["ask", "--checkpoint", "x"]);
    world.decide_all(1, approve).await;
    assert_eq!(ended(child).0, 0);
}
