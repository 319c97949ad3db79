//! Claude Code: `PreToolUse` before every call, `PermissionRequest` beside its own prompt, and news of the session.

use serde_json::{Value, json};

use super::tools;
use crate::{
    calls::{
        event::{Event, Kind, News},
        message::Aside,
        verdict::Verdict,
    },
    hosts::{
        input::{self, EVERY_CALL, Unreadable, WOULD_ASK, optional, text},
        output::Output,
    },
    tool::caller::Caller,
};

/// Tools for which an approval counts only with their input repeated.
const WITH_INPUT: &[&str] = &["ExitPlanMode", "AskUserQuestion"];

/// The events that decide.
pub(super) const DECIDING: &[&str] = &[EVERY_CALL, WOULD_ASK];

/// Members that are no part of what a grant covers.
pub(super) const ASIDE: &[Aside] = &[
    // Which run, prompt, call or subagent it is: other each time.
    Aside::everywhere("/session_id"),
    Aside::everywhere("/transcript_path"),
    Aside::everywhere("/prompt_id"),
    Aside::everywhere("/tool_use_id"),
    Aside::everywhere("/agent_id"),
    Aside::everywhere("/agent_type"),
    // What the host would do without us, and how hard the model thinks.
    Aside::everywhere("/permission_mode"),
    Aside::everywhere("/permission_suggestions"),
    Aside::everywhere("/effort"),
    // The model's words about a command, and how long it waits for it.
    Aside::of(&["Bash"], "/tool_input/description"),
    Aside::of(&["Bash"], "/tool_input/timeout"),
];

/// Every version that has the event `PermissionRequest`, or names a call by its id, takes other arguments with an approval.
pub(super) fn edits(message: &Value) -> Option<&'static str> {
    let takes = match event_name(message) {
        EVERY_CALL => message["tool_use_id"].is_string(),
        event => event == WOULD_ASK,
    };
    takes.then_some("/tool_input")
}

pub(super) fn event_name(message: &Value) -> &str {
    input::event_name(message, EVERY_CALL)
}

pub(super) fn read(message: &Value, _: &Caller) -> Result<Event, Unreadable> {
    let call = |moment| {
        let (tool, cwd) = (text(message, "tool_name")?, input::cwd(message)?);
        Ok(Kind::Call {
            call: tools::call(tool, &message["tool_input"], &cwd),
            moment,
            call_id: optional(message, "tool_use_id"),
            key: Some(input::key(message)),
        })
    };
    input::read_named(message, call, |name| news(name, message))
}

fn news(name: &str, message: &Value) -> Option<News> {
    Some(match name {
        "SessionStart" => News::SessionStarted,
        "UserPromptSubmit" => News::Prompted(optional(message, "prompt").unwrap_or_default()),
        "PostToolUse" | "PostToolUseFailure" => News::ToolUsed(Some(input::key(message))),
        "Stop" => News::Finished(optional(message, "last_assistant_message")),
        "Notification" => News::Waiting(optional(message, "message").unwrap_or_default()),
        "SessionEnd" => News::SessionEnded,
        _ => return None,
    })
}

pub(super) fn write(event: &str, message: &Value, verdict: &Verdict) -> Output {
    match event {
        EVERY_CALL => write_every_call(message, verdict),
        WOULD_ASK => write_would_ask(message, verdict),
        _ => write_news(event, verdict),
    }
}

fn write_every_call(message: &Value, verdict: &Verdict) -> Output {
    let answer = |decision: &str, reason: &str| {
        json!({ "hookSpecificOutput": {
            "hookEventName": EVERY_CALL, "permissionDecision": decision, "permissionDecisionReason": reason,
        } })
    };
    match verdict {
        Verdict::Allow { reason, words, .. } => {
            let mut output = answer("allow", reason);
            if let Some(words) = words {
                output["hookSpecificOutput"]["additionalContext"] = words.as_str().into();
            }
            if let Some(input) = repeated_input(message, verdict) {
                output["hookSpecificOutput"]["updatedInput"] = input;
            }
            Output::json(&output)
        }
        Verdict::Deny { reason, failed: false } => Output::json(&answer("deny", reason)),
        Verdict::Deny { reason, failed: true } => Output::denied(&answer("deny", reason), reason),
        Verdict::Defer { reason } => Output::json(&answer("defer", reason)),
        Verdict::NoOpinion { .. } | Verdict::Words { .. } => Output::default(),
    }
}

fn write_would_ask(message: &Value, verdict: &Verdict) -> Output {
    let answer = |decision: Value| json!({ "hookSpecificOutput": { "hookEventName": WOULD_ASK, "decision": decision } });
    match verdict {
        Verdict::Allow { .. } => {
            let mut decision = json!({ "behavior": "allow" });
            if let Some(input) = repeated_input(message, verdict) {
                decision["updatedInput"] = input;
            }
            Output::json(&answer(decision))
        }
        Verdict::Deny { reason, failed } => {
            let output = answer(json!({ "behavior": "deny", "message": reason }));
            match failed {
                true => Output::denied(&output, reason),
                false => Output::json(&output),
            }
        }
        Verdict::NoOpinion { cause: Some(cause) } => {
            Output::json(&json!({ "systemMessage": format!("Countersign: {cause}") }))
        }
        Verdict::NoOpinion { cause: None } | Verdict::Defer { .. } | Verdict::Words { .. } => {
            Output::default()
        }
    }
}

/// The input that an approver has changed, or that of the call with their answers, for the tools that need it.
fn repeated_input(message: &Value, verdict: &Verdict) -> Option<Value> {
    let Verdict::Allow { answers, input, .. } = verdict else { return None };
    if input.is_some() {
        return input.clone();
    }
    let tool = message["tool_name"].as_str()?;
    let mut input = WITH_INPUT.contains(&tool).then(|| message["tool_input"].clone())?;
    if !answers.is_empty() {
        input["answers"] = Value::Object(answers.clone());
    }
    Some(input)
}

/// Words of an approver go into the conversation where the host takes some.
fn write_news(event: &str, verdict: &Verdict) -> Output {
    let Verdict::Words { text } = verdict else { return Output::default() };
    match event {
        "Stop" => Output::json(&json!({ "decision": "block", "reason": text })),
        "SessionStart" | "UserPromptSubmit" | "PostToolUse" => Output::json(&json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": text },
        })),
        _ => Output::default(),
    }
}
