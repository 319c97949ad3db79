//! What the person who answers sees: what will happen first, then all of it, with nothing invisible.

use std::time::Duration;

use countersign_agents::tool::moment;
use countersign_client::{
    payload::{Effect, Invocation, Payload, visible, visible_code, visible_lines},
    request::OpenedRequest,
};
use countersign_wire::{RawObject, timestamp::Timestamp};

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
    let state = payload.state_phrase().map(|phrase| format!("[{phrase}]"));
    let effects = payload.effects().unwrap_or_default().iter().map(chip);
    state.into_iter().chain(effects).collect::<Vec<_>>().join(" ")
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
    lines.extend(asked_again(request));
    lines.push(String::new());
    lines.extend(body(&payload));
    lines.extend(rest_of_the_call(&payload));
    lines.extend(about(&payload));
    lines.extend(proof(&payload));
    lines
}

/// That the same was asked before, if it was.
pub fn asked_again(request: &OpenedRequest) -> Option<String> {
    let old = visible(request.supersedes.as_ref()?.as_str());
    Some(format!("asked again: request {old} expired without an answer"))
}

/// What the call has beside what is shown of it: each member with its place and its value.
pub fn rest_of_the_call(payload: &Payload) -> Vec<String> {
    let line = |(pointer, value): &(String, String)| {
        format!("also  {}: {}", visible_code(pointer.trim_start_matches('/')), visible_code(value))
    };
    payload.not_shown().iter().map(line).collect()
}

/// Who asks and why, in the words of the machine; what the agent says is marked as such.
pub fn about(payload: &Payload) -> Vec<String> {
    let Some(about) = payload.context().map(|context| &context.about) else { return Vec::new() };
    let named = [
        ("agent", &about.agent),
        ("project", &about.project),
        ("branch", &about.branch),
        ("task", &about.task),
        ("the agent says", &about.words),
    ];
    let line = |(name, text): (&str, &Option<String>)| Some(format!("{name}: {}", visible(text.as_deref()?)));
    named.into_iter().filter_map(line).collect()
}

/// What else is bound by the signature.
pub fn proof(payload: &Payload) -> Vec<String> {
    let Some(call) = payload.call() else { return Vec::new() };
    let mut lines = vec![format!(
        "call  {} of {} at {}",
        visible(&call.tool),
        visible(&call.kind),
        visible(&call.moment)
    )];
    let root = call.repository.as_ref().filter(|root| **root != call.folder);
    let root = root.map(|root| format!(", of the repository {}", visible_code(root))).unwrap_or_default();
    lines.push(format!("      in {}{root}", visible_code(&call.folder)));
    for (pointer, value) in &call.aside {
        let value = visible_code(&value.to_string());
        lines.push(format!("      {}: {value}", visible_code(pointer.trim_start_matches('/'))));
    }
    for file in &call.files {
        let digest = file.digest.map_or_else(|| "not there".to_owned(), |digest| format!("SHA-256 {digest}"));
        lines.push(format!("      {} {}, {digest}", file.role, visible_code(&file.path)));
    }
    if !call.environment.is_empty() {
        let names: Vec<String> = call.environment.iter().map(|it| visible_code(&it.name)).collect();
        lines.push(format!("      {} variables: {}", names.len(), names.join(" ")));
    }
    if let Some(digest) = call.digest {
        lines.push(format!("      the host's message, SHA-256 {digest}"));
    }
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
