//! The call behind a payload: claims about what is shown are checked, and what is not shown is listed.

use countersign_wire::hash::Sha256Hex;
use serde_json::{Value, json};

use super::*;

fn call(tool: &str, message: Value) -> Call {
    let Value::Object(message) = message else { panic!("{message}") };
    Call::new("hook.claude", "PreToolUse", tool, "/srv/app", message)
}

fn bash(message: Value) -> Payload {
    let command = Command {
        effects: Some(Vec::new()),
        ..Command::new(Invocation::Shell("ls -l".to_owned()), "/srv/app")
    };
    Payload::Command(command).with_call(Some(State::Examined), call("Bash", message))
}

fn read(payload: &str, artifact_type: ArtifactType) -> Payload {
    Payload::read(artifact_type, &RawObject::parse(payload.as_bytes()).unwrap())
}

fn shown(payload: &Payload) -> Vec<&str> {
    payload.call().unwrap().shown.iter().map(String::as_str).collect()
}

#[test]
fn what_the_view_shows_is_claimed_and_the_rest_is_listed() {
    let payload = bash(json!({
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/srv/app",
        "tool_input": { "command": "ls -l", "dangerouslyDisableSandbox": true, "diff": "- teh\n+ the", "a/b~c": {} },
        "list": [1, { "command": "rm -rf /" }],
    }));
    assert_eq!(shown(&payload), ["/cwd", "/hook_event_name", "/tool_input/command", "/tool_name"]);
    let rest = payload.not_shown();
    let rest: Vec<(&str, &str)> = rest.iter().map(|(at, value)| (at.as_str(), value.as_str())).collect();
    assert_eq!(
        rest,
        [
            ("/list/0", "1"),
            ("/list/1/command", r#""rm -rf /""#),
            ("/tool_input/a~1b~0c", "{}"),
            ("/tool_input/dangerouslyDisableSandbox", "true"),
            ("/tool_input/diff", r#""- teh\n+ the""#),
        ]
    );
    let json = payload.to_json().unwrap();
    assert_eq!(read(&json, ArtifactType::CommandReview), payload);
}

#[test]
fn a_claim_that_does_not_hold_makes_the_payload_raw() {
    let payload = bash(json!({ "tool_input": { "command": "ls -l", "timeout": 5, "mode": "ls -l" } }));
    let json = payload.to_json().unwrap();
    let with =
        |shown: &str| json.replace(r#""shown":["/tool_input/command"]"#, &format!(r#""shown":{shown}"#));
    assert!(matches!(read(&with("[]"), ArtifactType::CommandReview), Payload::Command(_)));
    for lie in [
        r#"["/tool_input/timeout"]"#,
        r#"["/tool_input/mode"]"#,
        r#"["/tool_input/nothing"]"#,
        r#"["/tool_input"]"#,
        r#"["tool_input/command"]"#,
        r#"["/tool_input/command","/tool_input/command"]"#,
    ] {
        let text = with(lie);
        assert_ne!(text, json, "{lie}");
        let lied = read(&text, ArtifactType::CommandReview);
        assert!(matches!(&lied, Payload::Raw(Raw { reason: RawReason::Broken(_), .. })), "{lie}: {lied:?}");
        assert_eq!(lied.state(), Some(State::NotExamined));
    }
    let other = json.replace(r#""command":"ls -l""#, r#""command":"rm -rf /""#);
    assert!(
        matches!(read(&other, ArtifactType::CommandReview), Payload::Raw(_)),
        "the view shows another command"
    );
}

#[test]
fn an_edit_is_shown_where_its_diff_has_the_text() {
    let file = |path: &str, result: &[u8]| PatchFile {
        path: path.to_owned(),
        status: FileStatus::Modified,
        previous_path: None,
        added: 1,
        removed: 1,
        base_digest: Some(Sha256Hex::digest(b"")),
        result_digest: Some(Sha256Hex::digest(result)),
    };
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+2\n\\ No newline at end of file\n";
    let edit = |input: Value| {
        let mut call = call("Edit", json!({ "tool_input": input }));
        call.files = vec![BoundFile {
            path: "/srv/app/a.txt".to_owned(),
            role: BoundRole::Before,
            digest: Some(Sha256Hex::digest(b"")),
        }];
        let payload =
            Payload::Patch(Patch::new(diff, vec![file("a.txt", b"zero\none\n2")])).with_call(None, call);
        assert_eq!(read(&payload.to_json().unwrap(), ArtifactType::PatchReview), payload);
        let mut rest: Vec<String> = payload
            .not_shown()
            .into_iter()
            .map(|(at, _)| at.rsplit('/').next().unwrap().to_owned())
            .collect();
        rest.sort();
        rest.join(" ")
    };
    assert_eq!(
        edit(json!({ "file_path": "/srv/app/a.txt", "old_string": "e\ntwo", "new_string": "e\n2" })),
        ""
    );
    assert_eq!(
        edit(json!({ "file_path": "a.txt", "old_string": "two\n", "new_string": "" })),
        "old_string",
        "no line break there"
    );
    assert_eq!(
        edit(json!({ "file_path": "/other", "old_string": "3", "replace_all": true })),
        "file_path old_string replace_all"
    );
    assert_eq!(edit(json!({ "content": "zero\none\n2" })), "", "the whole result");
    assert_eq!(edit(json!({ "content": "evil\none\n2" })), "content");
    let no_hunk = Payload::Patch(Patch::new(
        "Binary files differ\n",
        vec![PatchFile { added: 0, removed: 0, ..file("a.txt", b"evil") }],
    ));
    let hidden = no_hunk.with_call(None, call("Write", json!({ "content": "evil" })));
    assert_eq!(hidden.not_shown().len(), 1, "no line of it is shown");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End of File\n*** End Patch";
    assert_eq!(edit(json!({ "command": patch })), "");
    assert_eq!(edit(json!({ "command": patch.replace("+2", "+3") })), "command");
    assert_eq!(edit(json!({ "command": patch.replace("a.txt", "b.txt") })), "command");
    assert_eq!(
        edit(json!({ "command": patch.replace("+2", "+2\n+") })),
        "command",
        "a blank line that the diff does not add"
    );
    assert_eq!(edit(json!({ "command": format!("evil\n{patch}") })), "command");
}

#[test]
fn state_and_effects_belong_together() {
    let of = |state: Option<State>, effects: Option<Vec<Effect>>| {
        let context = Context { state, ..Context::default() };
        let command = Command { effects, context, ..Command::new(Invocation::Shell("ls".to_owned()), "/") };
        Payload::Command(command).to_json().is_ok()
    };
    for (state, effects, is_valid) in [
        (State::Examined, true, true),
        (State::Examined, false, false),
        (State::Opaque, true, true),
        (State::Opaque, false, false),
        (State::NotExamined, true, false),
        (State::NotExamined, false, true),
    ] {
        assert_eq!(of(Some(state), effects.then(Vec::new)), is_valid, "{state} {effects}");
    }
    let plan =
        Plan { context: Context { state: Some(State::Examined), ..Context::default() }, ..Plan::new("x") };
    assert!(Payload::Plan(plan).to_json().is_err(), "a plan runs nothing");
    let task = Payload::Task(Plan::new("x")).with_call(None, call("x", json!({})));
    assert!(task.to_json().is_err(), "a call has a state");
}

#[test]
fn version_1_is_still_read() {
    let old = r#"{"schema":"org.proto.payload","version":1,"shell":"ls","cwd":"/"#;
    let examined = read(&format!(r#"{old}","effects":[]}}"#), ArtifactType::CommandReview);
    assert_eq!(examined.state(), Some(State::Examined));
    let not = read(&format!(r#"{old}"}}"#), ArtifactType::CommandReview);
    assert_eq!((not.state(), not.is_serious()), (Some(State::NotExamined), true));
    let newer = read(&format!(r#"{old}","state":"opaque","effects":[]}}"#), ArtifactType::CommandReview);
    assert!(matches!(newer, Payload::Raw(_)), "a member that version 1 does not have");
}

#[test]
fn variables_and_files_of_a_view_are_those_of_the_call() {
    let mut call = call("Bash", json!({ "command": "ls" }));
    let value = |text: &str| VariableContent::Value(text.to_owned());
    call.environment = vec![
        EnvironmentVariable { name: "A".to_owned(), content: value("1") },
        EnvironmentVariable { name: "B".to_owned(), content: VariableContent::Mac(Sha256Hex::digest(b"")) },
    ];
    let of = |env: &[(&str, Option<&str>)]| {
        let env = env
            .iter()
            .map(|(name, value)| Variable { name: (*name).to_owned(), value: value.map(str::to_owned) });
        let command =
            Command { env: env.collect(), ..Command::new(Invocation::Shell("ls".to_owned()), "/srv/app") };
        Payload::Command(command).with_call(Some(State::NotExamined), call.clone()).to_json().is_ok()
    };
    assert!(of(&[("A", Some("1")), ("B", None)]));
    for lie in [("A", Some("2")), ("C", None), ("B", Some("secret"))] {
        assert!(!of(&[lie]), "{lie:?}");
    }
}
