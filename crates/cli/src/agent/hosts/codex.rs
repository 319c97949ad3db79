//! Codex CLI: blocks at `PreToolUse`, approves at `PermissionRequest`. Members that it does not know make an answer
//! invalid, and an approval is no answer at `PreToolUse`.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    Output, apply_patch,
    input::{self, EVERY_CALL, Unreadable, WOULD_ASK, optional, text},
};
use crate::agent::{
    call::{Action, Call},
    event::{Event, Kind, News},
    tools,
    verdict::Verdict,
};

pub(super) fn read(message: &Value) -> Result<Event, Unreadable> {
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
            tools::questions(arguments).map_or_else(|| input::other(arguments), Action::Questions)
        }
        _ => input::other(arguments),
    };
    Call { tool: tool.to_owned(), cwd: cwd.to_owned(), action }
}

pub(super) fn write(event: &str, verdict: &Verdict) -> Output {
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
