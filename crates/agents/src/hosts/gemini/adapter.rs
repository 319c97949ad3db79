//! Gemini CLI: `BeforeTool` can only deny. What it lets through runs only with the companion policy, so this hook is the
//! gate for every tool, those of the plan mode included: leaving it switches all other checks off.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    calls::{
        call::{Action, Call},
        event::{Event, Kind, Moment, News},
        message::Aside,
        verdict::Verdict,
    },
    hosts::{
        input::{self, MAX_FILE, Unreadable, any, optional, text},
        output::Output,
    },
    tool::{caller::Caller, files},
};

/// The event before every call.
pub(super) const EVERY_CALL: &str = "BeforeTool";

/// Members that are no part of what a grant covers.
pub(super) const ASIDE: &[Aside] = &[
    // Which run it is, and when: other each time.
    Aside::everywhere("/session_id"),
    Aside::everywhere("/transcript_path"),
    Aside::everywhere("/timestamp"),
    // The model's words about a command or a change.
    Aside::of(&["run_shell_command"], "/tool_input/description"),
    Aside::of(&["replace"], "/tool_input/instruction"),
];

pub(super) fn event_name(message: &Value) -> &str {
    input::event_name(message, EVERY_CALL)
}

pub(super) fn read(message: &Value, caller: &Caller) -> Result<Event, Unreadable> {
    let name = text(message, "hook_event_name")?;
    let session = optional(message, "session_id");
    let kind = match name {
        EVERY_CALL => {
            let tool = text(message, "tool_name")?;
            let cwd = input::cwd(message)?;
            let session = Session { id: session.as_deref(), home: caller.variable("HOME") };
            let call = call(tool, &message["tool_input"], &cwd, session);
            Kind::Call { call, moment: Moment::EveryCall, call_id: None, key: None }
        }
        "SessionStart" => Kind::News(News::SessionStarted),
        "BeforeAgent" => Kind::News(News::Prompted(optional(message, "prompt").unwrap_or_default())),
        "AfterTool" => Kind::News(News::ToolUsed(None)),
        "AfterAgent" => Kind::News(News::Finished(optional(message, "prompt_response"))),
        "Notification" => Kind::News(News::Waiting(optional(message, "message").unwrap_or_default())),
        "SessionEnd" => Kind::News(News::SessionEnded),
        _ => Kind::Other,
    };
    Ok(Event { name: name.to_owned(), session, kind })
}

/// What leads to the files of a session.
#[derive(Clone, Copy)]
struct Session<'a> {
    id: Option<&'a str>,
    home: Option<&'a OsStr>,
}

fn call(tool: &str, arguments: &Value, cwd: &Path, session: Session<'_>) -> Call {
    let action = action(tool, arguments, cwd, session).unwrap_or_else(|| input::other(arguments));
    Call { tool: tool.to_owned(), cwd: cwd.to_owned(), action }
}

fn action(tool: &str, arguments: &Value, cwd: &Path, session: Session<'_>) -> Option<Action> {
    let file =
        || any(arguments, &["file_path", "absolute_path", "path", "dir_path"]).map(|path| cwd.join(path));
    Some(match tool {
        "run_shell_command" => shell(arguments)?,
        "write_file" => input::write(&file()?, arguments["content"].as_str()?)?,
        "replace" => {
            let everywhere = arguments["allow_multiple"].as_bool().unwrap_or(false)
                || arguments["expected_replacements"].as_u64().is_some_and(|count| count > 1);
            let (old, new) = (arguments["old_string"].as_str()?, arguments["new_string"].as_str()?);
            input::edit(&file()?, [(old, new, everywhere)])?
        }
        "read_file" => Action::Read(vec![file()?]),
        "list_directory" | "glob" | "search_file_content" | "grep_search" => {
            Action::Read(file().into_iter().collect())
        }
        "web_fetch" => Action::Network(any(arguments, &["prompt", "url"])?.to_owned()),
        "google_web_search" => Action::Network(format!("a web search for: {}", arguments["query"].as_str()?)),
        "exit_plan_mode" => Action::Plan(plan(arguments, session)),
        "ask_user" => Action::Questions(input::questions(arguments)?),
        _ => return None,
    })
}

/// A command in another folder is shown with that folder.
fn shell(arguments: &Value) -> Option<Action> {
    let command = arguments["command"].as_str()?;
    let folder = any(arguments, &["dir_path", "directory"]).filter(|folder| !folder.is_empty());
    Some(match folder {
        None => Action::Shell(command.to_owned()),
        Some(folder) => Action::Shell(format!("cd '{}' && {command}", folder.replace('\'', r"'\''"))),
    })
}

/// The plan is in a file of the session; the message has only its name.
fn plan(arguments: &Value, session: Session<'_>) -> String {
    let find = || {
        let name = Path::new(any(arguments, &["plan_filename", "plan_path"])?).file_name()?.to_owned();
        let home = Path::new(session.home?);
        let folder = home.join(".gemini/tmp");
        let projects = files::read_dir(&folder).ok()?;
        let file = |project: PathBuf| project.join(session.id?).join("plans").join(&name).into();
        let mut plans = projects.flatten().filter_map(|project| file(project.path));
        plans.find_map(|file: PathBuf| files::read_text(&file, MAX_FILE).ok())
    };
    find().unwrap_or_default()
}

pub(super) fn write(event: &str, _message: &Value, verdict: &Verdict) -> Output {
    match (event, verdict) {
        (EVERY_CALL, Verdict::Deny { reason, failed }) => {
            let answer = json!({ "decision": "deny", "reason": reason });
            match failed {
                true => Output::denied(&answer, reason),
                false => Output::json(&answer),
            }
        }
        (EVERY_CALL, Verdict::Allow { .. }) => Output::json(&json!({ "decision": "allow" })),
        // An agent that has finished goes on with these words.
        ("AfterAgent", Verdict::Words { text }) => {
            Output::json(&json!({ "decision": "deny", "reason": text }))
        }
        ("SessionStart" | "BeforeAgent" | "AfterTool", Verdict::Words { text }) => Output::json(&json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": text },
        })),
        (_, Verdict::NoOpinion { cause: Some(cause) }) => {
            Output::json(&json!({ "systemMessage": format!("Countersign: {cause}") }))
        }
        _ => Output::default(),
    }
}
