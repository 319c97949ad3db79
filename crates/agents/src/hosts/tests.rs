//! What the real programs have written to a hook (`tests/agents/recorded`), and what they are answered.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{output::Output, *};
use crate::{
    calls::{
        call::{Action, FileChange},
        event::{Event, Kind, Moment, News},
        verdict::Verdict,
    },
    tool::caller::Caller,
};

/// Every recorded message of a host as (event-what, message), with its project in a folder of ours.
fn recorded(host: Host, project: &Path) -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/recorded").join(host.word());
    let mut found: Vec<(String, Value)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.replace("/home/ada/project", project.to_str().unwrap());
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), serde_json::from_str(&text).unwrap())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// What our plugin writes for a message that OpenCode gives to plugins.
fn from_plugin(name: &str, message: &Value, project: &Path) -> Value {
    let event = name.split_once('-').unwrap().0;
    let mut ours = match event {
        "tool.execute.before" => {
            let input = &message["input"];
            json!({ "tool": input["tool"], "sessionID": input["sessionID"], "args": message["output"]["args"] })
        }
        "tool.execute.after" | "chat.message" => message["input"].clone(),
        _ => message["properties"].clone(),
    };
    ours["event"] = event.into();
    ours["cwd"] = project.to_str().unwrap().into();
    ours
}

/// One line for what an event is taken for.
fn line(event: &Event, project: &Path) -> String {
    let change = |file: &FileChange| {
        let size =
            |content: &Option<Vec<u8>>| content.as_ref().map_or("none".to_owned(), |it| it.len().to_string());
        let path = file.path.strip_prefix(project).unwrap_or(&file.path).display();
        format!("{path} {}→{}", size(&file.before), size(&file.after))
    };
    match &event.kind {
        Kind::Call { call, moment, .. } => {
            let what = match &call.action {
                Action::Edit(files) => files.iter().map(change).collect::<Vec<_>>().join(", "),
                Action::Questions(questions) => format!("{} {:?}", questions[0].text, questions[0].choices),
                Action::Own(_) => "own".to_owned(),
                Action::Other(_) => "other".to_owned(),
                action => format!("{action:?}").replace(project.to_str().unwrap(), "."),
            };
            format!("{} {}: {what}", if *moment == Moment::EveryCall { "call" } else { "asks" }, call.tool)
        }
        Kind::News(News::ToolUsed(_)) => "used".to_owned(),
        Kind::News(news) => format!("{news:?}"),
        Kind::Other => "-".to_owned(),
    }
}

#[test]
fn every_recorded_message_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path();
    fs::write(project.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(project.join("c.txt"), "old\n").unwrap();
    fs::write(project.join("b.txt"), "new\n").unwrap();
    let mut lines = Vec::new();
    for host in ALL {
        for (name, message) in recorded(host, project) {
            let message = match host == opencode::HOST {
                true => from_plugin(&name, &message, project),
                false => message,
            };
            let event = host.read(&message, &Caller::default()).unwrap();
            assert_eq!(event.name, host.event_name(&message));
            assert!(event.session.is_some(), "{name}");
            assert_eq!(matches!(event.kind, Kind::Call { .. }), host.decides(&event.name), "{name}");
            lines.push(format!("{} {name}: {}", host.word(), line(&event, project)));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn verdicts_are_in_the_words_of_the_host() {
    let verdicts = [
        ("allow", Verdict::allow("by rule")),
        ("deny", Verdict::deny("rejected by dana")),
        ("failed", Verdict::failed("the gateway is away")),
        ("none", Verdict::NoOpinion { cause: Some("the gateway is away".to_owned()) }),
        ("words", Verdict::Words { text: "dana says: hello".to_owned() }),
    ];
    let events = [
        (claude::HOST, ["PreToolUse", "PermissionRequest", "Stop"]),
        (codex::HOST, ["PreToolUse", "PermissionRequest", "Stop"]),
        (gemini::HOST, ["BeforeTool", "BeforeTool", "AfterAgent"]),
        (opencode::HOST, ["tool.execute.before", "permission.asked", "session.idle"]),
        (copilot::HOST, ["preToolUse", "permissionRequest", "agentStop"]),
    ];
    let mut lines = Vec::new();
    for (host, events) in events {
        for event in events {
            for (name, verdict) in &verdicts {
                let output = host.write(event, &json!({ "tool_name": "Bash" }), verdict);
                let Output { stdout, stderr, code } = &output;
                lines.push(format!(
                    "{} {event} {name}: {code} {} | {}",
                    host.word(),
                    stdout.trim(),
                    stderr.trim()
                ));
                if host.decides(event) && *name == "failed" {
                    // Hosts obey one or the other.
                    assert!(*code == 2 && !stderr.is_empty() && stdout.contains("deny"), "{event}");
                }
            }
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// A plan counts as approved only with its input repeated, and questions with their answers.
#[test]
fn plans_and_questions_of_claude_repeat_their_input() {
    let input = json!({ "questions": [{ "question": "Which?" }] });
    let answers = json!({ "Which?": "red" });
    let verdict = Verdict::Allow {
        input: None,
        reason: String::new(),
        words: Some("mind the gap".to_owned()),
        answers: answers.as_object().unwrap().clone(),
    };
    let message = json!({ "tool_name": "AskUserQuestion", "tool_input": input });
    let wanted = json!({ "questions": [{ "question": "Which?" }], "answers": answers });
    for (event, place) in
        [("PreToolUse", "/hookSpecificOutput"), ("PermissionRequest", "/hookSpecificOutput/decision")]
    {
        let output: Value =
            serde_json::from_str(&claude::HOST.write(event, &message, &verdict).stdout).unwrap();
        assert_eq!(output.pointer(place).unwrap()["updatedInput"], wanted);
    }
    let shell = json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let output: Value =
        serde_json::from_str(&claude::HOST.write("PreToolUse", &shell, &verdict).stdout).unwrap();
    assert_eq!(output["hookSpecificOutput"]["additionalContext"], "mind the gap");
    assert!(output["hookSpecificOutput"]["updatedInput"].is_null());
}

#[test]
fn what_is_no_message_of_the_host_is_not_read() {
    for host in ALL {
        for message in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "hook_event_name": "PreToolUse", "event": "tool.execute.before" }),
        ] {
            assert!(
                host.read(&message, &Caller::default()).is_err()
                    || (host == gemini::HOST && message["hook_event_name"] == "PreToolUse"),
                "{host:?} {message}"
            );
            // Of what can't be read, a verdict may be wanted.
            let event = host.event_name(&message);
            if message.get("hook_event_name").is_none() {
                assert!(host.decides(event), "{host:?} {message}");
            }
        }
    }
}

#[test]
fn every_host_was_tested_and_looks_where_its_variables_say() {
    use std::ffi::OsString;

    use crate::install::places::Places;
    let by = |variables: &[(&str, &str)]| {
        Places::by(variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    };
    assert_eq!(by(&[]), None);
    let folders = |places: &Places| {
        let folders = ALL.iter().map(|host| (host.files.folder)(places).display().to_string());
        folders.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        folders(&by(&[("HOME", "/home/ada")]).unwrap()),
        "/home/ada/.claude /home/ada/.codex /home/ada/.gemini /home/ada/.config/opencode /home/ada/.copilot"
    );
    let moved = by(&[
        ("HOME", "/home/ada"),
        ("CLAUDE_CONFIG_DIR", "/c"),
        ("CODEX_HOME", "/no/such/x"),
        ("GEMINI_CLI_HOME", "/g"),
        ("XDG_CONFIG_HOME", "/xdg"),
        ("COPILOT_HOME", "relative"),
    ]);
    assert_eq!(folders(&moved.unwrap()), "/c /no/such/x /g/.gemini /xdg/opencode /home/ada/.copilot");
    assert!(ALL.iter().all(|host| !host.tested_versions.is_empty()));
}

/// What the hook reads and nobody sends it is never heard of.
#[test]
fn every_event_that_the_hook_reads_is_installed() {
    use std::time::Duration;

    use crate::{
        hook_line::{HookLine, mode::Mode, place::Place},
        install::{places::Places, plan::Wish},
    };
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().as_os_str().to_owned();
    let places = Places::by([("HOME".into(), home)]).unwrap();
    for host in ALL {
        let line = HookLine {
            program: "/usr/bin/countersign".to_owned(),
            host: host.names,
            place: Place::default(),
            keeper: None,
            mode: Mode::Gate,
            host_timeout: Duration::from_mins(10),
        };
        let plan = (host.files.install)(&places, &Wish { line, is_managed: false }).unwrap();
        let written: String = plan.changes.into_iter().filter_map(|change| change.after).collect();
        for (name, message) in recorded(host, folder.path()) {
            let message = match host == opencode::HOST {
                true => from_plugin(&name, &message, folder.path()),
                false => message,
            };
            let event = host.read(&message, &Caller::default()).unwrap();
            let is_there = written.contains(&format!("\"{}\"", event.name));
            assert!(is_there || event.kind == Kind::Other, "{host:?} {name}");
        }
    }
}

#[test]
fn a_subagent_of_copilot_belongs_to_the_session_of_its_agent() {
    let read = |parent: Value| {
        let message = json!({
            "sessionId": "sub", "parentAgentId": parent, "cwd": "/", "toolName": "bash", "toolArgs": { "command": "ls" },
        });
        copilot::HOST.read(&message, &Caller::default()).unwrap().session
    };
    assert_eq!(read(json!("main")).as_deref(), Some("main"));
    assert_eq!(read(Value::Null).as_deref(), Some("sub"));
}
