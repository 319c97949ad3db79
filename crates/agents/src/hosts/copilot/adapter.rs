//! Copilot CLI: `preToolUse` before every call, `permissionRequest` before it would ask. Only some of its messages name
//! their event, so it is known by what they have.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    calls::{
        call::{Action, Call, FileChange, Question},
        event::{Event, Kind, Moment, News},
        message::Aside,
        verdict::Verdict,
    },
    hosts::{
        input::{self, Unreadable, any, optional, text},
        output::Output,
    },
    tool::caller::Caller,
};

/// The event before every call.
pub(super) const EVERY_CALL: &str = "preToolUse";

/// The event when the host is about to ask.
pub(super) const WOULD_ASK: &str = "permissionRequest";

/// Members that are no part of what a grant covers.
pub(super) const ASIDE: &[Aside] = &[
    // Which run or subagent it is, and when: other each time.
    Aside::everywhere("/sessionId"),
    Aside::everywhere("/timestamp"),
    Aside::everywhere("/hookName"),
    Aside::everywhere("/agentId"),
    Aside::everywhere("/agentType"),
    Aside::everywhere("/parentAgentId"),
    // What the host would offer its person.
    Aside::everywhere("/permissionSuggestions"),
    // The model's words about a command.
    Aside::of(&["bash"], "/toolArgs/description"),
];

// CONTRIBUTING: add an agent host, step 3
pub(super) fn event_name(message: &Value) -> &str {
    let has = |name: &str| !message[name].is_null();
    match any(message, &["hookName", "hook_event_name"]) {
        Some("Notification") => "notification",
        // Under these names it writes and reads another format, which this is not.
        Some("PreToolUse") => EVERY_CALL,
        Some("PermissionRequest") => WOULD_ASK,
        Some(name) => name,
        None if has("toolResult") => "postToolUse",
        None if has("toolName") => EVERY_CALL,
        None if has("prompt") => "userPromptSubmitted",
        None if has("source") => "sessionStart",
        None if has("stopReason") => "agentStop",
        None if has("reason") => "sessionEnd",
        // Of what can't be recognised, a verdict may be wanted.
        None => EVERY_CALL,
    }
}

pub(super) fn read(message: &Value, _: &Caller) -> Result<Event, Unreadable> {
    let name = event_name(message);
    let kind = match name {
        EVERY_CALL => asked(call(message, "toolArgs")?, Moment::EveryCall),
        WOULD_ASK => asked(call(message, "toolInput")?, Moment::WouldAsk),
        "sessionStart" => Kind::News(News::SessionStarted),
        "userPromptSubmitted" => Kind::News(News::Prompted(optional(message, "prompt").unwrap_or_default())),
        "postToolUse" => Kind::News(News::ToolUsed(None)),
        // A subagent that has finished leaves its agent at work.
        "agentStop" if message["parentAgentId"].is_null() => Kind::News(News::Finished(None)),
        "notification" => Kind::News(News::Waiting(optional(message, "message").unwrap_or_default())),
        "sessionEnd" => Kind::News(News::SessionEnded),
        _ => Kind::Other,
    };
    // A subagent's messages name the subagent as their session, and their agent beside it.
    let session = any(message, &["parentAgentId", "sessionId"]).map(str::to_owned);
    Ok(Event { name: name.to_owned(), session, kind })
}

fn asked(call: Call, moment: Moment) -> Kind {
    Kind::Call { call, moment, call_id: None, key: None }
}

fn call(message: &Value, arguments: &str) -> Result<Call, Unreadable> {
    let (tool, cwd) = (text(message, "toolName")?, input::cwd(message)?);
    // Some versions write the arguments as a text.
    let arguments = match &message[arguments] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| message[arguments].clone()),
        other => other.clone(),
    };
    let action = action(tool, &arguments, &cwd).unwrap_or_else(|| input::other(&arguments));
    Ok(Call { tool: tool.to_owned(), cwd, action })
}

fn action(tool: &str, arguments: &Value, cwd: &Path) -> Option<Action> {
    let file = || any(arguments, &["path", "file_path"]).map(|path| cwd.join(path));
    Some(match tool {
        "bash" => Action::Shell(arguments["command"].as_str()?.to_owned()),
        "create" => input::write(&file()?, arguments["file_text"].as_str()?)?,
        "edit" if arguments["diff"].is_string() => return None,
        "edit" => {
            let (old, new) = (arguments["old_str"].as_str()?, arguments["new_str"].as_str()?);
            input::edit(&file()?, [(old, new, false)])?
        }
        "view" => Action::Read(vec![file()?]),
        "glob" | "grep" => Action::Read(file().into_iter().collect()),
        "web_fetch" => Action::Network(arguments["url"].as_str()?.to_owned()),
        "delete" => {
            let path = file()?;
            let before = Some(input::content(&path).ok()??);
            Action::Edit(vec![FileChange { path, before, after: None }])
        }
        "exit_plan_mode" => Action::Plan(any(arguments, &["summary", "plan"])?.to_owned()),
        "ask_user" => Action::Questions(vec![question(arguments)?]),
        _ => return None,
    })
}

/// A form with one choice. Other forms are shown as they are.
fn question(arguments: &Value) -> Option<Question> {
    let fields = arguments["requestedSchema"]["properties"].as_object()?;
    let choices = match fields.values().collect::<Vec<_>>()[..] {
        [field] => field["enum"].as_array()?.iter(),
        _ => return None,
    };
    Some(Question {
        text: any(arguments, &["message", "question"])?.to_owned(),
        choices: choices.map(|choice| choice.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        is_multiple: false,
    })
}

pub(super) fn write(event: &str, _message: &Value, verdict: &Verdict) -> Output {
    let answer = match (event, verdict) {
        (EVERY_CALL, Verdict::Deny { reason, .. }) => {
            json!({ "permissionDecision": "deny", "permissionDecisionReason": reason })
        }
        (EVERY_CALL, Verdict::Allow { reason, .. }) => {
            json!({ "permissionDecision": "allow", "permissionDecisionReason": reason })
        }
        (WOULD_ASK, Verdict::Deny { reason, .. }) => json!({ "behavior": "deny", "message": reason }),
        (WOULD_ASK, Verdict::Allow { .. }) => json!({ "behavior": "allow" }),
        ("agentStop", Verdict::Words { text }) => json!({ "decision": "block", "reason": text }),
        ("sessionStart" | "userPromptSubmitted" | "postToolUse", Verdict::Words { text }) => {
            json!({ "additionalContext": text })
        }
        _ => return Output::default(),
    };
    match verdict {
        Verdict::Deny { reason, failed: true } => Output::denied(&answer, reason),
        _ => Output::json(&answer),
    }
}
