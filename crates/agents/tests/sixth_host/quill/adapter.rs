//! What Quill writes to a hook, and what it reads.

use countersign_agents::{
    calls::{
        call::{Action, Call},
        event::{Event, Kind, Moment},
        verdict::Verdict,
    },
    hosts::{
        input::{self, Unreadable, optional, text},
        output::Output,
    },
    tool::caller::Caller,
};
use serde_json::{Value, json};

pub(super) const EVERY_CALL: &str = "before";

pub(super) fn event_name(message: &Value) -> &str {
    message["event"].as_str().unwrap_or(EVERY_CALL)
}

pub(super) fn read(message: &Value, _: &Caller) -> Result<Event, Unreadable> {
    let name = text(message, "event")?;
    let kind = match name {
        EVERY_CALL => {
            let (command, cwd) = (text(message, "run")?, input::cwd(message)?);
            let call = Call { tool: "run".to_owned(), cwd, action: Action::Shell(command.to_owned()) };
            Kind::Call { call, moment: Moment::EveryCall, call_id: None, key: None }
        }
        _ => Kind::Other,
    };
    Ok(Event { name: name.to_owned(), session: optional(message, "chat"), kind })
}

pub(super) fn write(_event: &str, _message: &Value, verdict: &Verdict) -> Output {
    match verdict {
        Verdict::Allow { .. } => Output::json(&json!({ "go": true })),
        Verdict::Deny { reason, failed: true } => Output::denied(&json!({ "go": false }), reason),
        _ => Output::json(&json!({ "go": false })),
    }
}
