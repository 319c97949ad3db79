//! What the person who answers sees: what will happen first, then all of it, with nothing invisible.

use std::time::Duration;

use countersign_agents::tool::moment;
use countersign_client::{
    audience::Verify,
    payload::{
        CommandFile, Effect, Found, Invocation, PatchFile, Payload, Weight, visible, visible_code,
        visible_lines,
    },
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

/// How much is certain, and what is dangerous, as chips such as `[pushes origin main]`.
pub fn chips(payload: &Payload) -> String {
    let chip = |effect: &Effect| match &effect.detail {
        Some(detail) => format!("[{} {}]", effect.kind.phrase(), visible(detail)),
        None => format!("[{}]", effect.kind.phrase()),
    };
    let state = payload.state_phrase().map(|phrase| format!("[{phrase}]"));
    let effects = payload.effects().unwrap_or_default().iter();
    let dangers = effects.filter(|effect| effect.kind.is_dangerous()).map(chip);
    state.into_iter().chain(dangers).collect::<Vec<_>>().join(" ")
}

/// What happens, in one line: the sentence, and behind it the first line of what was asked. A sentence about a change says both.
pub fn title(payload: &Payload) -> String {
    match payload {
        Payload::Patch(_) => payload.sentence(),
        _ => format!("{} · {}", payload.sentence(), payload.headline()),
    }
}

/// The whole request as lines of text: what happens, who asks, exactly what was asked, what was found, and the proof.
pub fn lines(request: &OpenedRequest, now: Timestamp) -> Vec<String> {
    let payload = payload(request);
    let mut lines = vec![payload.sentence(), payload.headline()];
    let place = request.repo_name.as_deref().map(|place| format!(" in {}", visible(place)));
    lines.push(format!(
        "asked by {}{}, {} left",
        visible(request.enforcer.as_str()),
        place.unwrap_or_default(),
        moment::left(request.expires_at.since(now)),
    ));
    lines.extend(asked_again(request).map(str::to_owned));
    lines.extend(about(&payload));
    lines.push(String::new());
    lines.extend(body(&payload));
    lines.extend(rest_of_the_call(&payload));
    lines.extend(found(&payload));
    lines.push(String::new());
    lines.extend(proof(request, &payload));
    lines
}

/// Who asks, in one line: the agent and its project, and the machine.
pub fn who(request: &OpenedRequest, payload: &Payload) -> String {
    let about = payload.context().map(|context| &context.about);
    let agent = about.and_then(|about| about.agent.as_deref());
    let project = about.and_then(|about| about.project.as_deref()).or(request.repo_name.as_deref());
    let named = [agent, project].into_iter().flatten().map(visible);
    let machine = format!("on {}", visible(request.enforcer.as_str()));
    named.chain([machine]).collect::<Vec<_>>().join(" · ")
}

/// What the machine has found, the most serious first.
pub fn found(payload: &Payload) -> Vec<String> {
    let line = |found: Found| match found.weight {
        Weight::Danger => format!("found ! {}", found.text),
        Weight::Unclear => format!("found ? {}", found.text),
        Weight::Plain => format!("found · {}", found.text),
    };
    payload.found().into_iter().map(line).collect()
}

/// That it takes the place of another request, if it does.
pub fn asked_again(request: &OpenedRequest) -> Option<&'static str> {
    request.supersedes.as_ref().map(|_| match request.is_edited {
        true => "your change: this is what the machine has made of it; it runs once if you approve it",
        false => "asked again: in place of a request without an answer",
    })
}

/// Why this machine can't approve a request; `None` if it can. A passphrase proves nothing to the machine that asks.
pub fn needs_lock(request: &OpenedRequest) -> Option<&'static str> {
    let is_needed = request.verify == Verify::Person;
    is_needed.then_some("This needs a device lock, and a terminal has none. Approve it on a phone; here you can only reject it.")
}

/// What the call has beside what is shown of it: each member with its place and its value.
pub fn rest_of_the_call(payload: &Payload) -> Vec<String> {
    let line = |(pointer, value): &(String, String)| {
        format!("also  {}: {}", visible_code(pointer.trim_start_matches('/')), visible_code(value))
    };
    payload.not_shown().iter().map(line).collect()
}

/// Who asks and why. What the agent says about it stands in a box of its own, which nothing in it can leave.
pub fn about(payload: &Payload) -> Vec<String> {
    let Some(about) = payload.context().map(|context| &context.about) else { return Vec::new() };
    let who = [&about.agent, &about.project, &about.branch].map(|text| text.as_deref().map(visible));
    let who: Vec<String> = who.into_iter().flatten().collect();
    let boxed = |title: &str, text: &Option<String>| {
        let lines = text.iter().flat_map(|text| text.split('\n')).map(|line| format!("│ {}", visible(line)));
        let title = text.iter().map(|_| format!("┌ {title}"));
        let end = text.iter().map(|_| "└".to_owned());
        title.chain(lines).chain(end).collect::<Vec<_>>()
    };
    let named = (!who.is_empty()).then(|| who.join(" · "));
    let task = boxed("The task, as its person put it", &about.task);
    let words = boxed("The agent's own words, not checked", &about.words);
    named.into_iter().chain(task).chain(words).collect()
}

/// What exactly is signed, and by whom it was asked: every id and digest, behind the content.
pub fn proof(request: &OpenedRequest, payload: &Payload) -> Vec<String> {
    let mut lines = vec![
        format!("request {}, hash {}", visible(request.request_id.as_str()), request.artifact_hash),
        format!("asked with the paired key {}", request.asked_by.fingerprint().short()),
    ];
    lines.extend(
        request.supersedes.iter().map(|old| format!("asked before as request {}", visible(old.as_str()))),
    );
    lines.extend(digests(payload));
    lines.extend(proof_of_call(payload));
    lines
}

/// The digests of what is shown.
fn digests(payload: &Payload) -> Vec<String> {
    match payload {
        Payload::Command(command) => {
            let stdin = command.stdin.iter().map(|stdin| format!("standard input, SHA-256 {}", stdin.digest));
            let file = |file: &CommandFile| {
                format!("{} {}, SHA-256 {}", file.role.as_str(), visible_code(&file.path), file.digest)
            };
            stdin.chain(command.files.iter().map(file)).collect()
        }
        Payload::Patch(patch) => patch.files.iter().map(digests_of_change).collect(),
        Payload::Checkpoint(checkpoint) => {
            let earlier = checkpoint.earlier.iter().map(|earlier| {
                let id = visible(earlier.request_id.as_str());
                format!("after request {id}, hash {}", earlier.artifact_hash)
            });
            earlier.collect()
        }
        Payload::Plan(_) | Payload::Task(_) | Payload::Raw(_) => Vec::new(),
    }
}

fn digests_of_change(file: &PatchFile) -> String {
    let side = |word: &str, digest: Option<_>| digest.map(|digest| format!("{word} {digest}"));
    let sides = [side("from", file.base_digest), side("to", file.result_digest)];
    let sides = sides.into_iter().flatten().collect::<Vec<_>>().join(" ");
    format!("SHA-256 of {}: {sides}", visible_code(&file.path))
}

/// What else is bound by the signature.
fn proof_of_call(payload: &Payload) -> Vec<String> {
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
        lines.push(format!("reads {} bytes from standard input", stdin.size));
    }
    if let Some(revision) = &command.base_revision {
        lines.push(format!("at    commit {}", visible(revision)));
    }
    for file in &command.files {
        let (path, role) = (visible(&file.path), file.role.as_str());
        lines.push(format!("{role} {path}, {} bytes", file.size));
        if let Some(content) = &file.content {
            lines.extend(visible_lines(content).map(|line| format!("  │ {line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use countersign_client::payload::{About, Plan};

    use super::*;

    #[test]
    fn what_the_agent_says_stays_in_its_box() {
        let about_of = |about: About| about_lines(&about);
        assert!(about_of(About::default()).is_empty(), "older payloads say nothing of it");
        let hostile = "Looks fine\n└\nfound · Checked by Countersign\u{202e}\r".to_owned();
        let lines = about_of(About {
            agent: Some("Claude Code".to_owned()),
            branch: Some("ma\u{456}n".to_owned()),
            task: Some("Make the cart use Decimal".to_owned()),
            words: Some(hostile),
            ..About::default()
        });
        assert_eq!(
            lines,
            [
                "Claude Code · ma⟨U+0456⟩n",
                "┌ The task, as its person put it",
                "│ Make the cart use Decimal",
                "└",
                "┌ The agent's own words, not checked",
                "│ Looks fine",
                "│ └",
                "│ found · Checked by Countersign⟨U+202E⟩⟨U+000D⟩",
                "└",
            ]
        );
    }

    fn about_lines(given: &About) -> Vec<String> {
        about(&Payload::Plan(Plan::new("x")).with_about(given.clone()))
    }
}
