//! Which members of a call a view shows (docs/payloads.md). What it does not show is shown as it is.

use std::collections::BTreeSet;

use countersign_wire::{Error, hash::Sha256Hex};
use serde_json::Value;

use super::{
    call::{Call, VariableContent},
    checkpoint::Checkpoint,
    command::{Command, CommandFile, Invocation, Variable},
    patch::{Hunk, Patch},
    plan::Plan,
};

/// The names of members that hold a path in calls that change files.
const PATHS: &[&str] = &["file_path", "filePath", "path", "absolute_path"];

/// The names of members that hold text of a file.
const TEXTS: &[&str] = &[
    "content",
    "contents",
    "file_text",
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "oldString",
    "newString",
];

/// The names of members that hold a whole patch.
const PATCHES: &[&str] = &["command", "input", "patch", "patchText"];

/// What people read of a call.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Command(&'a Command),
    Patch(&'a Patch),
    Plan(&'a Plan),
    Checkpoint(&'a Checkpoint),
}

/// Every claim must hold, so that nothing is taken for shown that is not.
pub(super) fn check(view: View<'_>, call: &Call) -> Result<(), Error> {
    let view = Shown::of(view, call);
    let mut claimed = BTreeSet::new();
    for pointer in &call.shown {
        let value = resolve(call, pointer).ok_or_else(|| Error::breaks("shown", "names no member"))?;
        if !view.shows(pointer, value) {
            return Err(Error::breaks("shown", "names a member that is not shown"));
        }
        if !claimed.insert(pointer)
            || claimed.iter().any(|other| is_below(pointer, other) || is_below(other, pointer))
        {
            return Err(Error::breaks("shown", "names a member twice"));
        }
    }
    view.check_lists()
}

/// The claims that hold for a call: what the view shows of it.
pub(super) fn provable(view: View<'_>, call: &Call) -> Vec<String> {
    let view = Shown::of(view, call);
    let mut found = Vec::new();
    collect(&Value::Object(call.message.clone()), "", &mut |pointer, value, is_leaf| {
        let is_shown = !pointer.is_empty() && view.shows(pointer, value);
        if is_shown {
            found.push(pointer.to_owned());
        }
        is_leaf || is_shown
    });
    found
}

/// What no claim covers: every leaf with its pointer and its JSON.
pub(super) fn rest(call: &Call) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(&Value::Object(call.message.clone()), "", &mut |pointer, value, is_leaf| {
        let is_claimed = call.shown.iter().any(|claimed| claimed == pointer);
        if is_leaf && !is_claimed && !pointer.is_empty() {
            found.push((pointer.to_owned(), value.to_string()));
        }
        is_leaf || is_claimed
    });
    found
}

/// Visits values with their pointers from the outside in; the visitor says whether to stop there.
fn collect(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, &Value, bool) -> bool) {
    let is_leaf = match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    if visit(pointer, value, is_leaf) {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(member, &format!("{pointer}/{name}"), visit);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{pointer}/{at}"), visit);
            }
        }
        _ => {}
    }
}

fn resolve<'a>(call: &'a Call, pointer: &str) -> Option<&'a Value> {
    let (first, rest) = match pointer.strip_prefix('/')?.split_once('/') {
        Some((first, rest)) => (first, format!("/{rest}")),
        None => (pointer.strip_prefix('/')?, String::new()),
    };
    call.message.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(&rest)
}

fn is_below(pointer: &str, other: &str) -> bool {
    pointer.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// The last name in a pointer that is no position in a list.
fn name_of(pointer: &str) -> &str {
    let is_name = |part: &&str| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit());
    pointer.rsplit('/').find(is_name).unwrap_or_default()
}

/// A view, with what it takes to see whether it shows a value.
struct Shown<'a> {
    view: View<'a>,
    call: &'a Call,
    hunks: Vec<Hunk<'a>>,
}

impl<'a> Shown<'a> {
    fn of(view: View<'a>, call: &'a Call) -> Self {
        let hunks = match view {
            View::Patch(patch) => patch.hunks(),
            _ => Vec::new(),
        };
        Self { view, call, hunks }
    }

    /// Whether a person who reads the view has read this member.
    fn shows(&self, pointer: &str, value: &Value) -> bool {
        let (name, text) = (name_of(pointer), value.as_str());
        let is_header = match name {
            "cwd" | "workdir" | "directory" => text.is_some_and(|text| self.is_folder(text)),
            "tool_name" | "toolName" | "tool" => text == Some(&self.call.tool),
            "hook_event_name" | "hookName" => text == Some(&self.call.moment),
            _ => false,
        };
        is_header || self.body_shows(name, value)
    }

    fn is_folder(&self, text: &str) -> bool {
        let in_view = matches!(self.view, View::Command(command) if command.cwd == text);
        text == self.call.folder || in_view
    }

    fn body_shows(&self, name: &str, value: &Value) -> bool {
        let text = value.as_str();
        match self.view {
            View::Command(command) => match (&command.invocation, name) {
                (Invocation::Shell(shell), "command" | "cmd") => text == Some(shell),
                (Invocation::Argv(argv), "argv") => *value == Value::from(argv.clone()),
                // The parts of `exec` are shown as they are.
                (Invocation::Argv(_), "stdin" | "user") => self.call.kind == "exec",
                _ => false,
            },
            View::Patch(patch) => text.is_some_and(|text| self.patch_shows(patch, name, text)),
            View::Plan(plan) => {
                let is_named = ["plan", "summary", "url", "query"].contains(&name);
                is_named && text.is_some_and(|text| plan.text.contains(text))
            }
            View::Checkpoint(checkpoint) => {
                let is_named = ["question", "label", "message", "prompt"].contains(&name);
                let mut lines = [&checkpoint.summary].into_iter().chain(&checkpoint.changes);
                is_named && text.is_some_and(|text| lines.any(|line| line.contains(text)))
            }
        }
    }

    fn patch_shows(&self, patch: &Patch, name: &str, text: &str) -> bool {
        let is_path = |text: &str| {
            patch.files.iter().any(|file| file.path == text || file.previous_path.as_deref() == Some(text))
                || self.call.files.iter().any(|file| file.path == text)
        };
        if PATHS.contains(&name) {
            return is_path(text);
        }
        if TEXTS.contains(&name) {
            return text.is_empty() || self.is_in_a_hunk(text) || self.is_a_result(patch, text);
        }
        PATCHES.contains(&name) && self.is_this_patch(patch, text)
    }

    fn is_in_a_hunk(&self, text: &str) -> bool {
        self.hunks.iter().any(|hunk| hunk.before.contains(text) || hunk.after.contains(text))
    }

    /// Whether it is the whole text of a file afterwards, of which the diff shows what is new.
    fn is_a_result(&self, patch: &Patch, text: &str) -> bool {
        let digest = Some(Sha256Hex::digest(text.as_bytes()));
        let mut files = patch.files.iter().filter(|file| file.result_digest == digest);
        files.any(|file| {
            let mut hunks = self.hunks.iter().filter(|hunk| hunk.path == file.path).peekable();
            hunks.peek().is_some() && hunks.all(|hunk| text.contains(hunk.after.as_str()))
        })
    }

    /// Whether a text in the format of `apply_patch` says nothing that the diff does not.
    fn is_this_patch(&self, patch: &Patch, text: &str) -> bool {
        let before: BTreeSet<&str> = self.hunks.iter().flat_map(|hunk| hunk.before.lines()).collect();
        let after: BTreeSet<&str> = self.hunks.iter().flat_map(|hunk| hunk.after.lines()).collect();
        let is_file = |path: &str| {
            let is_named = |file: &str| file == path || file.ends_with(&format!("/{path}"));
            let is_in_view = patch
                .files
                .iter()
                .any(|file| is_named(&file.path) || file.previous_path.as_deref().is_some_and(is_named));
            is_in_view || self.call.files.iter().any(|file| is_named(&file.path))
        };
        let is_shown = |line: &str| {
            if let Some(marker) = line.strip_prefix("*** ") {
                let starts = ["Add File: ", "Update File: ", "Delete File: ", "Move to: "];
                return match starts.iter().find_map(|start| marker.strip_prefix(start)) {
                    Some(named) => is_file(named),
                    None => matches!(marker, "Begin Patch" | "End Patch" | "End of File"),
                };
            }
            match line.split_at_checked(1) {
                Some(("+", line)) => after.contains(line),
                Some(("-", line)) => before.contains(line),
                None | Some((" ", _)) => true,
                _ => line.starts_with("@@"),
            }
        };
        text.lines().any(|line| line == "*** Begin Patch") && text.split('\n').all(is_shown)
    }

    /// What the view lists of variables and files is what the call has.
    fn check_lists(&self) -> Result<(), Error> {
        let View::Command(command) = self.view else { return Ok(()) };
        let is_bound = |variable: &Variable| {
            self.call.environment.iter().any(|bound| {
                let is_same = match (&bound.content, &variable.value) {
                    (VariableContent::Value(bound), Some(shown)) => bound == shown,
                    (_, None) => true,
                    (VariableContent::Mac(_), Some(_)) => false,
                };
                bound.name == variable.name && is_same
            })
        };
        if !command.env.iter().all(is_bound) {
            return Err(Error::breaks("env", "has a variable that the call does not have"));
        }
        let is_file =
            |file: &CommandFile| self.call.files.iter().any(|bound| bound.digest == Some(file.digest));
        match command.files.iter().all(is_file) {
            true => Ok(()),
            false => Err(Error::breaks("files", "has a file that the call does not have")),
        }
    }
}
