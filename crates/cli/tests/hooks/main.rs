//! Hooks as a host starts them, with a real gateway: each gets its own verdict, and whatever fails, it is no.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod arrival;
mod desk;
mod edits;
mod environment;
mod fleet;
mod full_disk;
mod keeper;
mod policy;
mod propose;
mod stop;
mod suggest;
#[path = "../support/mod.rs"]
mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use countersign_client::{
    prompt::{PromptContent, PromptDraft},
    reply::Words,
    request::OpenedRequest,
};
use countersign_wire::{decision::DecisionOutcome, prompt::Target};
use serde_json::{Value, json};
use support::World;
use tokio::time::{Instant, sleep};

/// A hook with this input, in the home of the world.
fn hook(world: &World, arguments: &[&str], message: &Value) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("hook").args(arguments).arg("--home").arg(world.home());
    started(world, command, message)
}

/// Starts a hook in the folder of the world, as a host does.
fn started(world: &World, mut command: Command, message: &Value) -> Child {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.current_dir(world.folder.path()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(message.to_string().as_bytes()).unwrap();
    child
}

/// The event of Claude Code before a command.
fn claude(world: &World, command: &str) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": world.folder.path(), "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": "toolu_1",
    })
}

/// The event of a host that would ask its person.
fn asks(world: &World, host: &str) -> Value {
    let mut message = claude(world, "touch x");
    message["hook_event_name"] = "PermissionRequest".into();
    match host {
        "copilot" => json!({
            "hookName": "permissionRequest", "sessionId": "s-1", "cwd": world.folder.path(), "toolName": "bash",
            "toolInput": { "command": "touch x" },
        }),
        _ => message,
    }
}

fn decision(output: &Output) -> (String, String) {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
    let verdict = &value["hookSpecificOutput"];
    let text = |name: &str| verdict[name].as_str().unwrap().to_owned();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

/// Denied in both ways, with this in the reason.
fn assert_denied(output: &Output, reason: &str) {
    let (verdict, said) = decision(output);
    assert_eq!((verdict.as_str(), output.status.code()), ("deny", Some(2)), "{said}");
    assert!(said.to_lowercase().contains(reason), "{said}");
    assert!(String::from_utf8_lossy(&output.stderr).to_lowercase().contains(reason), "{output:?}");
}

fn approve(_: &OpenedRequest) -> (DecisionOutcome, Words) {
    (DecisionOutcome::Approve, Words::default())
}

fn say(outcome: DecisionOutcome, words: &str) -> (DecisionOutcome, Words) {
    (outcome, Words { reason: Some(words.to_owned()), ..Words::default() })
}

/// The worker of a hook.
async fn worker(hook: &Child) -> i32 {
    let path = format!("/proc/{0}/task/{0}/children", hook.id());
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let text = fs::read_to_string(&path).unwrap();
        if let Some(id) = text.split_whitespace().next() {
            return id.parse().unwrap();
        }
        assert!(Instant::now() < until, "there is no worker");
        sleep(Duration::from_millis(10)).await;
    }
}

fn signal(id: i32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
    assert!(sent.success());
}

async fn nobody_is_asked(world: &World) {
    let until = Instant::now() + Duration::from_secs(30);
    while !world.ada.inbox(&world.adas).await.unwrap().is_empty() {
        assert!(Instant::now() < until, "the request was not taken back");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_person_decides_and_their_words_reach_the_agent() {
    let world = World::start().await;
    let child = hook(&world, &["claude"], &claude(&world, "touch x"));
    world.decide_all(1, |_| say(DecisionOutcome::Approve, "but only once")).await;
    let output = child.wait_with_output().unwrap();
    let (verdict, reason) = decision(&output);
    assert!(verdict == "allow" && reason.contains("approved by ada"), "{reason}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("but only once"));
    let child = hook(&world, &["claude"], &claude(&world, "touch x"));
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "not on a Friday")).await;
    let (verdict, reason) = decision(&child.wait_with_output().unwrap());
    assert!(
        verdict == "deny" && reason.contains("rejected by ada") && reason.contains("not on a Friday"),
        "{reason}"
    );
}

#[tokio::test]
async fn forty_at_once_each_get_their_own_verdict() {
    let world = World::start().await;
    let mut children = Vec::new();
    // All of them wait at once. They start in waves: two cores don't start 80 processes in the time that a submission has.
    for wave in 0..2 {
        children.extend(
            (wave * 20..(wave + 1) * 20)
                .map(|number| hook(&world, &["claude"], &claude(&world, &format!("touch file-{number}")))),
        );
        world.waiting(children.len()).await;
    }
    each_gets_its_own_verdict(&world, children).await;
}

/// Every hook asks about a file with its number. Those with an even one are approved, and the others rejected with their number.
async fn each_gets_its_own_verdict(world: &World, children: Vec<Child>) {
    let number = |request: &OpenedRequest| -> usize {
        let digits = request.payload.split("file-").nth(1).unwrap();
        digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    world
        .decide_all(children.len(), |request| match number(request) % 2 {
            0 => say(DecisionOutcome::Approve, "fine"),
            _ => say(DecisionOutcome::Reject, &format!("not number {}", number(request))),
        })
        .await;
    for (number, child) in children.into_iter().enumerate() {
        let (verdict, reason) = decision(&child.wait_with_output().unwrap());
        match number % 2 {
            0 => assert_eq!(verdict, "allow", "{number}: {reason}"),
            _ => assert!(
                verdict == "deny" && reason.contains(&format!("not number {number}”")),
                "{number}: {reason}"
            ),
        }
    }
}

#[tokio::test]
async fn without_a_gateway_it_is_denied_with_the_reason() {
    let mut world = World::start().await;
    world.gateway.kill().unwrap();
    world.gateway.wait().unwrap();
    let output = hook(&world, &["claude"], &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_denied(&output, "the gateway at");
    fs::remove_dir_all(world.home().join("profiles")).unwrap();
    let output = hook(&world, &["claude"], &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_denied(&output, "countersign up");
}

#[tokio::test]
async fn its_deadline_is_before_that_of_the_host() {
    let world = World::start().await;
    let began = Instant::now();
    let child = hook(&world, &["claude", "--host-timeout", "15"], &claude(&world, "touch x"));
    world.waiting(1).await;
    // The request itself says when the hook gives up, also where the machine is too slow to measure it.
    let asked = world.ada.inbox(&world.adas).await.unwrap().pop().unwrap().opened.unwrap();
    let valid_for = asked.expires_at.since(asked.created_at);
    assert!(valid_for < Duration::from_secs(14), "{valid_for:?}");
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_denied(&output, "nobody answered in time");
    nobody_is_asked(&world).await;
}

#[tokio::test]
async fn a_worker_that_dies_or_hangs_is_a_denial() {
    let world = World::start().await;
    for (name, time, reason) in
        [("KILL", "60", "without a verdict"), ("ABRT", "60", "without a verdict"), ("STOP", "10", "in time")]
    {
        let child = hook(&world, &["claude", "--host-timeout", time], &claude(&world, "touch x"));
        world.waiting(1).await;
        let began = Instant::now();
        signal(worker(&child).await, name);
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(30), "{name} {:?}", began.elapsed());
        assert_denied(&output, reason);
        if name != "STOP" {
            // The request is still there, and nobody acts on it any more. It is answered so that the next one is alone.
            world.decide_all(1, approve).await;
        }
    }
}

#[tokio::test]
async fn a_host_that_stops_waiting_takes_the_request_back() {
    let world = World::start().await;
    for name in ["TERM", "KILL"] {
        let child = hook(&world, &["claude"], &claude(&world, "touch x"));
        world.waiting(1).await;
        signal(i32::try_from(child.id()).unwrap(), name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), if name == "TERM" { Some(2) } else { None });
        nobody_is_asked(&world).await;
    }
}

#[tokio::test]
async fn what_can_not_be_read_is_denied() {
    let world = World::start().await;
    for host in ["claude", "codex", "gemini", "opencode", "copilot"] {
        for message in
            [json!("text"), json!({}), json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash" })]
        {
            if host == "gemini" && message["hook_event_name"] == "PreToolUse" {
                continue;
            }
            let output = hook(&world, &[host], &message).wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{host} {message}");
            assert!(!output.stderr.is_empty() && !output.stdout.is_empty(), "{host} {message}");
        }
    }
    let output = hook(&world, &["claude", "--no-such-option"], &json!({})).wait_with_output().unwrap();
    assert!(output.status.code() == Some(2) && !output.stderr.is_empty());
}

#[tokio::test]
async fn a_file_that_changes_after_the_question_is_not_what_was_approved() {
    let world = World::start().await;
    let file = world.folder.path().join("a.txt");
    fs::write(&file, "one\ntwo\n").unwrap();
    let edit = json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": world.folder.path(), "tool_name": "Edit",
        "tool_input": { "file_path": file, "old_string": "two", "new_string": "deux" },
    });
    for (changes, expected) in [(false, "allow"), (true, "deny")] {
        let child = hook(&world, &["claude"], &edit);
        world.waiting(1).await;
        if changes {
            fs::write(&file, "zero\ntwo\n").unwrap();
        }
        world
            .decide_all(1, |request| {
                assert!(request.payload.contains("-two\\n+deux"), "{}", request.payload);
                approve(request)
            })
            .await;
        let (verdict, reason) = decision(&child.wait_with_output().unwrap());
        assert_eq!(verdict, expected, "{reason}");
    }
}

#[tokio::test]
async fn a_question_is_answered_by_its_buttons() {
    let world = World::start().await;
    let question = json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": world.folder.path(), "tool_name": "AskUserQuestion",
        "tool_input": { "questions": [{ "question": "Which colour?", "options": [{ "label": "red" }, { "label": "green" }] }] },
    });
    let child = hook(&world, &["claude"], &question);
    world
        .decide_all(1, |request| {
            assert_eq!(request.actions[1].caption, "green");
            let action = Some(request.actions[1].id.clone());
            (DecisionOutcome::Approve, Words { action, ..Words::default() })
        })
        .await;
    let output = child.wait_with_output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["hookSpecificOutput"]["updatedInput"]["answers"], json!({ "Which colour?": "green" }));
}

#[tokio::test]
async fn a_run_that_is_deferred_picks_its_answer_up() {
    let world = World::start().await;
    let limited = |seconds| ["claude", "--defer-for", "1h", "--host-timeout", seconds];
    let output = hook(&world, &limited("15"), &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_eq!(decision(&output).0, "defer");
    // From here on there is an answer, and more time for it.
    let arguments = limited("60");
    world.decide_all(1, approve).await;
    let output = hook(&world, &arguments, &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_eq!(decision(&output).0, "allow");
    // A second resumption is a second question.
    let child = hook(&world, &arguments, &claude(&world, "touch x"));
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "no")).await;
    assert_eq!(decision(&child.wait_with_output().unwrap()).0, "deny");
}

#[tokio::test]
async fn a_host_that_says_that_it_asks_twice_about_one_call_is_answered_once() {
    let world = World::start().await;
    let before = json!({ "event": "tool.execute.before", "tool": "bash", "sessionID": "s-1", "callID": "call-1",
        "cwd": world.folder.path(), "args": { "command": "touch x" } });
    let asked = |permission: &str| {
        json!({ "event": "permission.asked", "permission": permission, "sessionID": "s-1", "cwd": world.folder.path(),
            "tool": { "callID": "call-1" }, "metadata": { "command": "touch x" }, "patterns": ["touch x"] })
    };
    let child = hook(&world, &["opencode"], &before);
    world.decide_all(1, approve).await;
    assert!(child.wait_with_output().unwrap().status.success());
    // To leave the folder is another question, and so is the same one a second time.
    for (permission, is_answered) in [("external_directory", false), ("bash", true), ("bash", false)] {
        let child = hook(&world, &["opencode"], &asked(permission));
        if !is_answered {
            world.decide_all(1, |_| say(DecisionOutcome::Reject, "no")).await;
        }
        let output = child.wait_with_output().unwrap();
        let is_allowed = String::from_utf8_lossy(&output.stdout).contains("allow");
        assert_eq!(is_allowed, is_answered, "{permission}: {output:?}");
    }
}

/// Codex does not say what both of its questions have in common, and the second one may be to leave the sandbox.
#[tokio::test]
async fn a_second_question_that_may_be_another_one_is_asked() {
    let world = World::start().await;
    let child = hook(&world, &["codex"], &claude(&world, "touch x"));
    world.decide_all(1, approve).await;
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let child = hook(&world, &["codex"], &asks(&world, "codex"));
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "no")).await;
    assert!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).contains("deny"));
}

#[tokio::test]
async fn words_of_an_approver_reach_the_agent_when_it_has_finished() {
    let world = World::start().await;
    let event = |name: &str| json!({ "hook_event_name": name, "session_id": "s-1", "cwd": world.folder.path(), "prompt": "please" });
    for name in ["SessionStart", "UserPromptSubmit"] {
        let output = hook(&world, &["claude"], &event(name)).wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
    let session = world.ada.session(&"s-1".parse().unwrap()).await.unwrap();
    assert_eq!(session.agent_host.as_deref(), Some("Claude Code"));
    let draft = PromptDraft {
        target: Target::Other,
        content: PromptContent::Text("now the docs".to_owned()),
        session_id: Some("s-1".parse().unwrap()),
        valid_for: Duration::from_mins(5),
    };
    world.ada.prompt(&"robot".parse().unwrap(), &draft, &world.adas).await.unwrap();
    let output = hook(&world, &["claude"], &event("Stop")).wait_with_output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(value, json!({ "decision": "block", "reason": "ada says: now the docs" }));
    let output = hook(&world, &["claude"], &event("Stop")).wait_with_output().unwrap();
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[tokio::test]
async fn the_permission_tool_answers_over_mcp() {
    the_permission_tool_answers(&World::start().await).await;
}

async fn the_permission_tool_answers(world: &World) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["mcp", "--home"])
        .arg(world.home())
        .current_dir(world.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let call = |id: u32, command: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "approve", "arguments": {
            "tool_name": "Bash", "input": { "command": command }, "tool_use_id": "t",
        } } })
    };
    for id in [1, 2] {
        writeln!(input, "{}", call(id, &format!("touch {id}"))).unwrap();
    }
    world
        .decide_all(2, |request| match request.payload.contains("touch 1") {
            true => approve(request),
            false => say(DecisionOutcome::Reject, "no"),
        })
        .await;
    for _ in 0..2 {
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let verdict: Value = serde_json::from_str(text).unwrap();
        match answer["id"] == 1 {
            true => {
                assert_eq!(verdict, json!({ "behavior": "allow", "updatedInput": { "command": "touch 1" } }));
            }
            false => assert_eq!(verdict["behavior"], "deny"),
        }
    }
    // An agent that is gone takes its question back.
    writeln!(input, "{}", call(3, "touch 3")).unwrap();
    world.waiting(1).await;
    drop(input);
    nobody_is_asked(world).await;
    assert!(server.wait().unwrap().success());
    assert!(Path::new(&world.home()).is_dir());
}
