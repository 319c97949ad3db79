//! Parts of messages that several hosts have.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use countersign_wire::hash::Sha256Hex;
use serde_json::Value;

use crate::{
    calls::{
        call::{Action, FileChange, Question},
        event::{Event, Kind, Moment, News},
    },
    tool::files,
};

/// A message that can't be understood. Whatever it asks about must not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host's message can't be understood: {}", self.0)
    }
}

/// The event before every call, in the hosts that name their events like Claude Code.
pub const EVERY_CALL: &str = "PreToolUse";

/// Their event when they are about to ask.
pub const WOULD_ASK: &str = "PermissionRequest";

/// Reads a message of a host that names its events like Claude Code.
pub fn read_named(
    message: &Value,
    call: impl FnOnce(Moment) -> Result<Kind, Unreadable>,
    news: impl FnOnce(&str) -> Option<News>,
) -> Result<Event, Unreadable> {
    let name = text(message, "hook_event_name")?;
    let kind = match name {
        EVERY_CALL => call(Moment::EveryCall)?,
        WOULD_ASK => call(Moment::WouldAsk)?,
        _ => news(name).map_or(Kind::Other, Kind::News),
    };
    Ok(Event { name: name.to_owned(), session: optional(message, "session_id"), kind })
}

/// A text that must be there.
pub fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, Unreadable> {
    input[name].as_str().ok_or_else(|| Unreadable(format!("{name} is missing, or no text")))
}

/// A text that may be there.
pub fn optional(input: &Value, name: &str) -> Option<String> {
    input[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The working directory of the agent.
pub fn cwd(input: &Value) -> Result<PathBuf, Unreadable> {
    let path = PathBuf::from(text(input, "cwd")?);
    match path.is_absolute() {
        true => Ok(path),
        false => Err(Unreadable("cwd is no absolute path".to_owned())),
    }
}

/// The first of these members that is a text.
pub fn any<'a>(input: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| input[*name].as_str())
}

/// The largest file whose change is shown.
pub const MAX_FILE: u64 = 8 << 20;

/// The content of a file; `None` if there is none.
pub fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files::read(path, MAX_FILE) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file gets this content.
pub fn write(path: &Path, after: &str) -> Option<Action> {
    let before = content(path).ok()?;
    Some(Action::Edit(vec![FileChange {
        path: path.to_owned(),
        before,
        after: Some(after.as_bytes().to_vec()),
    }]))
}

/// A text in a file is replaced, once or wherever it is. `None` if it is not certain what the host will do: the text is
/// not there, or more than once without being replaced everywhere.
pub fn replace(content: &str, old: &str, new: &str, everywhere: bool) -> Option<String> {
    match content.matches(old).count() {
        _ if old.is_empty() => content.is_empty().then(|| new.to_owned()),
        0 => None,
        1 => Some(content.replacen(old, new, 1)),
        _ => everywhere.then(|| content.replace(old, new)),
    }
}

/// Texts in a file are replaced one after the other.
pub fn edit<'a>(path: &Path, steps: impl IntoIterator<Item = (&'a str, &'a str, bool)>) -> Option<Action> {
    let before = content(path).ok()?;
    let mut text = String::from_utf8(before.clone().unwrap_or_default()).ok()?;
    for (old, new, everywhere) in steps {
        text = replace(&text, old, new, everywhere)?;
    }
    Some(Action::Edit(vec![FileChange { path: path.to_owned(), before, after: Some(text.into_bytes()) }]))
}

/// The tool's arguments, as a whole, where nothing more is known of them.
pub fn other(arguments: &Value) -> Action {
    Action::Other(arguments.clone())
}

/// The same for the same tool with the same input.
pub fn key(message: &Value) -> String {
    let text = format!("{} {}", message["tool_name"], message["tool_input"]);
    Sha256Hex::digest(text.as_bytes()).to_string()
}

/// Questions with choices, as most hosts write them.
pub fn questions(input: &Value) -> Option<Vec<Question>> {
    let question = |value: &Value| {
        let choices = value.get("options")?.as_array()?.iter();
        let choices: Option<Vec<String>> =
            choices.map(|choice| choice.get("label").unwrap_or(choice).as_str().map(str::to_owned)).collect();
        Some(Question {
            text: value.get("question")?.as_str()?.to_owned(),
            choices: choices?,
            is_multiple: value.get("multiSelect").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    input.get("questions")?.as_array()?.iter().map(question).collect()
}

/// The event that a message names; otherwise the one before every call: of what can't be read, a verdict may be wanted.
pub fn event_name<'a>(message: &'a Value, every_call: &'a str) -> &'a str {
    message["hook_event_name"].as_str().unwrap_or(every_call)
}
