//! OpenCode: our plugin, which runs inside of it, calls this hook before every tool and when OpenCode asks its person. The
//! plugin takes nothing but an explicit verdict with exit code 0.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    calls::{
        call::{Action, Call},
        event::{Event, Kind, Moment, News},
        message::Aside,
        verdict::Verdict,
    },
    hosts::{
        apply_patch,
        input::{self, Unreadable, any, optional, text},
        output::Output,
    },
    tool::caller::Caller,
};

/// The event before every call.
pub(super) const EVERY_CALL: &str = "tool.execute.before";

/// The event when the host asks its person.
pub(super) const WOULD_ASK: &str = "permission.asked";

/// Members that are no part of what a grant covers.
pub(super) const ASIDE: &[Aside] = &[
    // Which run and which call it is: other each time.
    Aside::everywhere("/sessionID"),
    Aside::everywhere("/callID"),
    // What our plugin can do.
    Aside::everywhere("/takesArgs"),
    Aside::everywhere("/id"),
    Aside::everywhere("/tool/callID"),
    Aside::everywhere("/tool/messageID"),
    // The model's words about a command, and how long it waits for it.
    Aside::of(&["bash"], "/args/description"),
    Aside::of(&["bash"], "/args/timeout"),
];

/// Our plugin says whether it puts other arguments in their place. One of an earlier installation does not.
pub(super) fn edits(message: &Value) -> Option<&'static str> {
    (event_name(message) == EVERY_CALL && message["takesArgs"] == true).then_some("/args")
}

/// The call that both of OpenCode's questions are about. Its question whether to leave the folder is another one.
pub(super) fn join(message: &Value) -> Option<String> {
    let kind = match any(message, &["permission", "tool"])? {
        "edit" | "write" | "apply_patch" | "patch" => "edit",
        kind @ ("bash" | "webfetch") => kind,
        _ => return None,
    };
    let id = message["callID"].as_str().or(message["tool"]["callID"].as_str())?;
    Some(format!("{kind} {id}"))
}

pub(super) fn event_name(message: &Value) -> &str {
    message["event"].as_str().unwrap_or(EVERY_CALL)
}

pub(super) fn read(message: &Value, _: &Caller) -> Result<Event, Unreadable> {
    let name = text(message, "event")?;
    let kind = match name {
        EVERY_CALL => {
            let (tool, cwd) = (text(message, "tool")?, input::cwd(message)?);
            Kind::Call {
                call: call(tool, &message["args"], &cwd),
                moment: Moment::EveryCall,
                call_id: None,
                key: None,
            }
        }
        WOULD_ASK => {
            let (permission, cwd) = (text(message, "permission")?, input::cwd(message)?);
            Kind::Call {
                call: asked(permission, message, &cwd),
                moment: Moment::WouldAsk,
                call_id: None,
                key: None,
            }
        }
        "session.created" => Kind::News(News::SessionStarted),
        "chat.message" => Kind::News(News::Prompted(optional(message, "text").unwrap_or_default())),
        "tool.execute.after" => Kind::News(News::ToolUsed(None)),
        "session.idle" => Kind::News(News::Finished(None)),
        "session.deleted" | "server.instance.disposed" => Kind::News(News::SessionEnded),
        _ => Kind::Other,
    };
    Ok(Event { name: name.to_owned(), session: optional(message, "sessionID"), kind })
}

fn call(tool: &str, arguments: &Value, cwd: &Path) -> Call {
    let action = action(tool, arguments, cwd).unwrap_or_else(|| input::other(arguments));
    Call { tool: tool.to_owned(), cwd: cwd.to_owned(), action }
}

fn action(tool: &str, arguments: &Value, cwd: &Path) -> Option<Action> {
    let file = || any(arguments, &["filePath", "path"]).map(|path| cwd.join(path));
    Some(match tool {
        "bash" => shell(arguments)?,
        "write" => input::write(&file()?, arguments["content"].as_str()?)?,
        "edit" => {
            let everywhere = arguments["replaceAll"].as_bool().unwrap_or(false);
            let (old, new) = (arguments["oldString"].as_str()?, arguments["newString"].as_str()?);
            input::edit(&file()?, [(old, new, everywhere)])?
        }
        "apply_patch" | "patch" => {
            let text = any(arguments, &["patchText", "patch"])?;
            Action::Edit(apply_patch::changes(text, cwd)?)
        }
        "read" => Action::Read(vec![file()?]),
        "glob" | "grep" | "list" => Action::Read(file().into_iter().collect()),
        "webfetch" => Action::Network(arguments["url"].as_str()?.to_owned()),
        "websearch" => Action::Network(format!("a web search for: {}", arguments["query"].as_str()?)),
        _ => return None,
    })
}

/// A command in another folder is shown with that folder.
fn shell(arguments: &Value) -> Option<Action> {
    let command = arguments["command"].as_str()?;
    Some(match arguments["workdir"].as_str().filter(|folder| !folder.is_empty()) {
        None => Action::Shell(command.to_owned()),
        Some(folder) => Action::Shell(format!("cd '{}' && {command}", folder.replace('\'', r"'\''"))),
    })
}

/// What the host's own question is about. Of an edit it has only a diff, which is shown as it is.
fn asked(permission: &str, message: &Value, cwd: &Path) -> Call {
    let command = message["metadata"]["command"].as_str().filter(|_| permission == "bash");
    let action = match command {
        Some(command) => Action::Shell(command.to_owned()),
        None => Action::Other(json!({ "patterns": message["patterns"], "metadata": message["metadata"] })),
    };
    Call { tool: permission.to_owned(), cwd: cwd.to_owned(), action }
}

pub(super) fn write(_event: &str, _message: &Value, verdict: &Verdict) -> Output {
    let answer = match verdict {
        Verdict::Allow { reason, words, input: None, .. } => {
            json!({ "verdict": "allow", "reason": reason, "words": words })
        }
        Verdict::Allow { reason, words, input: Some(args), .. } => {
            json!({ "verdict": "allow", "reason": reason, "words": words, "args": args })
        }
        Verdict::Deny { reason, .. } => json!({ "verdict": "deny", "reason": reason }),
        Verdict::Words { text } => json!({ "verdict": "none", "words": text }),
        Verdict::NoOpinion { cause } => json!({ "verdict": "none", "reason": cause }),
        Verdict::Defer { reason } => json!({ "verdict": "none", "reason": reason }),
    };
    match verdict {
        Verdict::Deny { reason, failed: true } => Output::denied(&answer, reason),
        _ => Output::json(&answer),
    }
}
