//! What the person who answers sees: what will happen first, then all of it, with nothing invisible.

use std::time::Duration;

use countersign_client::{
    payload::{Effect, Invocation, Payload, visible, visible_lines},
    request::OpenedRequest,
};
use countersign_wire::{RawObject, timestamp::Timestamp};

use crate::moment;

/// For how long an approval may be acted on after it was given.
pub const APPROVAL_VALID: Duration = Duration::from_mins(10);

/// The longest approval that a machine honours.
pub const MAX_GRANT_TIME: Duration = Duration::from_hours(8);

/// The payload of a request. Whatever it is, there is something to show.
pub fn payload(request: &OpenedRequest) -> Payload {
    let unreadable = || RawObject::parse(b"{}");
    match RawObject::parse(request.payload.as_bytes()).or_else(|_| unreadable()) {
        Ok(object) => Payload::read(request.artifact_type, &object),
        Err(_) => unreachable!("an empty object is an object"),
    }
}

/// The effects as chips, such as `[publishes origin main]`.
pub fn chips(payload: &Payload) -> String {
    let chip = |effect: &Effect| match &effect.detail {
        Some(detail) => format!("[{} {}]", effect.kind.phrase(), visible(detail)),
        None => format!("[{}]", effect.kind.phrase()),
    };
    match payload.effects() {
        None => "[not examined]".to_owned(),
        Some([]) => String::new(),
        Some(effects) => effects.iter().map(chip).collect::<Vec<_>>().join(" "),
    }
}

/// The whole request as lines of text.
pub fn lines(request: &OpenedRequest, now: Timestamp) -> Vec<String> {
    let payload = payload(request);
    let mut lines = vec![payload.headline()];
    let chips = chips(&payload);
    if !chips.is_empty() {
        lines.push(chips);
    }
    let place = request.repo_name.as_deref().map(visible).unwrap_or_default();
    lines.push(format!(
        "asked by {} (key {}) in {place}, {} left",
        visible(request.enforcer.as_str()),
        request.asked_by.fingerprint().short(),
        moment::left(request.expires_at.since(now)),
    ));
    lines.push(format!("request {}, hash {}", request.request_id, request.artifact_hash));
    lines.push(String::new());
    lines.extend(body(&payload));
    lines
}

fn body(payload: &Payload) -> Vec<String> {
    match payload {
        Payload::Command(command) => command_lines(command),
        Payload::Patch(patch) => {
            let files = patch.files.iter().map(|file| {
                format!(
                    "{} {} (+{} −{})",
                    file.status.as_str(),
                    visible(&file.path),
                    file.added,
                    file.removed
                )
            });
            files.chain([String::new()]).chain(visible_lines(&patch.diff)).collect()
        }
        Payload::Plan(plan) | Payload::Task(plan) => {
            let steps = plan
                .steps
                .iter()
                .enumerate()
                .map(|(number, step)| format!("{}. {}", number + 1, visible(step)));
            visible_lines(&plan.text).chain(steps).collect()
        }
        Payload::Checkpoint(checkpoint) => {
            let changes = checkpoint.changes.iter().map(|change| format!("- {}", visible(change)));
            visible_lines(&checkpoint.summary).chain(changes).collect()
        }
        Payload::Raw(raw) => visible_lines(&raw.text).collect(),
    }
}

fn command_lines(command: &countersign_client::payload::Command) -> Vec<String> {
    let mut lines = vec![format!("in    {}", visible(&command.cwd))];
    if let Invocation::Shell(text) = &command.invocation {
        lines.extend(visible_lines(text).map(|line| format!("sh    {line}")));
    }
    for variable in &command.env {
        let value = variable.value.as_deref().map_or_else(|| "(not shown)".to_owned(), visible);
        lines.push(format!("with  {}={value}", visible(&variable.name)));
    }
    if let Some(stdin) = &command.stdin {
        lines.push(format!("reads {} bytes, SHA-256 {}", stdin.size, stdin.digest));
    }
    if let Some(revision) = &command.base_revision {
        lines.push(format!("at    commit {}", visible(revision)));
    }
    for file in &command.files {
        let (path, role) = (visible(&file.path), file.role.as_str());
        lines.push(format!("{role} {path}, {} bytes, SHA-256 {}", file.size, file.digest));
        if let Some(content) = &file.content {
            lines.extend(visible_lines(content).map(|line| format!("  │ {line}")));
        }
    }
    lines
}
