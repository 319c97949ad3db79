//! Codex CLI: blocks at `PreToolUse`, approves at `PermissionRequest`. Members that it does not know make an answer
//! invalid, and an approval is no answer at `PreToolUse`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    calls::{
        call::{Action, Call},
        event::{Event, Kind, News},
        message::Aside,
        verdict::Verdict,
    },
    hosts::{
        apply_patch,
        input::{self, EVERY_CALL, Unreadable, WOULD_ASK, optional, text},
        output::Output,
    },
    tool::caller::Caller,
};

/// The events that decide.
pub(super) const DECIDING: &[&str] = &[EVERY_CALL, WOULD_ASK];

/// Members that are no part of what a grant covers.
pub(super) const ASIDE: &[Aside] = &[
    // Which run, turn, call or subagent it is: other each time.
    Aside::everywhere("/session_id"),
    Aside::everywhere("/turn_id"),
    Aside::everywhere("/transcript_path"),
    Aside::everywhere("/tool_use_id"),
    // Which model asks, and what the host would do without us.
    Aside::everywhere("/model"),
    Aside::everywhere("/permission_mode"),
    // The model's words about a command.
    Aside::of(&["Bash"], "/tool_input/description"),
];

pub(super) fn event_name(message: &Value) -> &str {
    input::event_name(message, EVERY_CALL)
}

pub(super) fn read(message: &Value, _: &Caller) -> Result<Event, Unreadable> {
    let call = |moment| {
        let call = call(text(message, "tool_name")?, &message["tool_input"], &input::cwd(message)?);
        Ok(Kind::Call { call, moment, call_id: None, key: None })
    };
    input::read_named(message, call, |name| news(name, message))
}

fn news(name: &str, message: &Value) -> Option<News> {
    Some(match name {
        "SessionStart" => News::SessionStarted,
        "UserPromptSubmit" => News::Prompted(optional(message, "prompt").unwrap_or_default()),
        "PostToolUse" => News::ToolUsed(None),
        "Stop" => News::Finished(optional(message, "last_assistant_message")),
        "SessionEnd" => News::SessionEnded,
        _ => return None,
    })
}

fn call(tool: &str, arguments: &Value, cwd: &Path) -> Call {
    let action = match (tool, arguments["command"].as_str()) {
        ("Bash", Some(command)) => Action::Shell(command.to_owned()),
        ("apply_patch", Some(patch)) => match apply_patch::changes(patch, cwd) {
            Some(changes) => Action::Edit(changes),
            None => input::other(arguments),
        },
        ("request_user_input", _) => {
            input::questions(arguments).map_or_else(|| input::other(arguments), Action::Questions)
        }
        _ => input::other(arguments),
    };
    Call { tool: tool.to_owned(), cwd: cwd.to_owned(), action }
}

pub(super) fn write(event: &str, _message: &Value, verdict: &Verdict) -> Output {
    let answer = match (event, verdict) {
        (EVERY_CALL, Verdict::Deny { reason, .. }) => json!({ "hookSpecificOutput": {
            "hookEventName": EVERY_CALL, "permissionDecision": "deny", "permissionDecisionReason": reason,
        } }),
        (WOULD_ASK, Verdict::Deny { reason, .. }) => json!({ "hookSpecificOutput": {
            "hookEventName": WOULD_ASK, "decision": { "behavior": "deny", "message": reason },
        } }),
        (WOULD_ASK, Verdict::Allow { .. }) => json!({ "hookSpecificOutput": {
            "hookEventName": WOULD_ASK, "decision": { "behavior": "allow" },
        } }),
        ("Stop", Verdict::Words { text }) => json!({ "decision": "block", "reason": text }),
        ("SessionStart" | "UserPromptSubmit" | "PostToolUse", Verdict::Words { text }) => {
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
        }
        (_, Verdict::NoOpinion { cause: Some(cause) }) => {
            json!({ "systemMessage": format!("Countersign: {cause}") })
        }
        _ => return Output::default(),
    };
    match verdict {
        Verdict::Deny { reason, failed: true } => Output::denied(&answer, reason),
        _ => Output::json(&answer),
    }
}

/// The calls in a line of a rollout file.
pub(super) fn recorded(line: &Value, folder: &Path) -> Vec<Call> {
    let payload = &line["payload"];
    let (Some("response_item"), Some(name)) = (line["type"].as_str(), payload["name"].as_str()) else {
        return Vec::new();
    };
    let arguments = match payload["type"].as_str() {
        Some("function_call") => payload["arguments"].as_str().and_then(|it| serde_json::from_str(it).ok()),
        Some("custom_tool_call") => Some(payload["input"].clone()),
        _ => return Vec::new(),
    };
    vec![recorded_call(name, &arguments.unwrap_or_default(), folder)]
}

/// A recorded call of one of Codex CLI's tools.
fn recorded_call(tool: &str, input: &Value, cwd: &Path) -> Call {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let cwd = text("workdir").map_or_else(|| cwd.to_owned(), |folder| cwd.join(folder));
    let words = || {
        let words: Option<Vec<&str>> = input.get("command")?.as_array()?.iter().map(Value::as_str).collect();
        words
    };
    let shell = match (tool, words().as_deref()) {
        ("exec_command", _) => text("cmd"),
        ("shell_command", _) => text("command"),
        ("shell", Some([_, "-c" | "-lc", script])) => Some(*script),
        _ => None,
    };
    let action = shell.map_or_else(|| Action::Other(input.clone()), |text| Action::Shell(text.to_owned()));
    Call { tool: tool.to_owned(), cwd, action }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_runs_texts() {
        let cwd = Path::new("/repo");
        for (tool, input, expected) in [
            ("exec_command", json!({"cmd": "ls", "workdir": "src"}), "ls"),
            ("shell", json!({"command": ["bash", "-lc", "ls"], "workdir": "/repo/src"}), "ls"),
            ("shell_command", json!({"command": "ls", "workdir": "src"}), "ls"),
        ] {
            let call = recorded_call(tool, &input, cwd);
            assert_eq!(
                (call.cwd.to_str().unwrap(), call.action),
                ("/repo/src", Action::Shell(expected.to_owned()))
            );
        }
        let call = recorded_call("shell", &json!({"command": ["ls", "-l"]}), cwd);
        assert!(matches!(call.action, Action::Other(_)));
    }
}
