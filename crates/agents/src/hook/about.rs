//! Who asks, and why: what this machine knows of the agent and its task, and what the agent says about a call.

use std::{
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use countersign_client::payload::About;
use serde_json::Value;

use super::desk::Desk;
use crate::{
    calls::{call::Call, event::Event, message::Message},
    examine::repository,
    hosts::Host,
    tool::files,
};

/// The longest task, and the longest words, in characters. More is cut: the content of a call is never here.
const MAX_CHARS: usize = 1_000;

/// How much of a transcript is read, from its end.
const MAX_TRANSCRIPT: u64 = 256 * 1024;

/// The end of the names by which hosts call what the model says about a call.
const WORDS: &[&str] = &["/description", "/instruction"];

/// Who asks about a call, and why.
pub(super) fn of(host: Host, message: &Message, event: &Event, call: &Call, desk: &Desk) -> About {
    let root = repository::root_of(&call.cwd);
    let session = event.session.as_deref();
    let kept = session.and_then(|session| desk.read("task", &[session]));
    let task = kept.or_else(|| from_transcript(message.value["transcript_path"].as_str()?));
    About {
        agent: Some(host.name().to_owned()),
        project: text(&repository::name_of(&call.cwd)),
        branch: root.as_deref().and_then(repository::branch_of).and_then(|branch| text(&branch)),
        task: task.and_then(|task| text(&task)),
        words: words(host, message, call).and_then(|words| text(&words)),
    }
}

/// Remembers what the person has asked for, for the calls that follow.
pub(super) fn keep_task(desk: &Desk, session: &str, prompt: &str) {
    if let Some(task) = text(prompt) {
        // Without it, the transcript is looked into.
        drop(desk.keep("task", &[session], &task));
    }
}

/// What the model says about a call, where its host has a member for it.
fn words(host: Host, message: &Message, call: &Call) -> Option<String> {
    let mut value = message.value.clone();
    let mut said = host.messages.aside.iter().filter(|it| WORDS.iter().any(|end| it.pointer.ends_with(end)));
    said.find_map(|member| member.take(&call.tool, &mut value)?.as_str().map(str::to_owned))
}

/// A text that is there and not too long.
fn text(text: &str) -> Option<String> {
    let text = text.trim();
    let mut kept: String = text.chars().take(MAX_CHARS).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    (!kept.is_empty()).then_some(kept)
}

/// The last prompt of the person in the transcript of a host.
fn from_transcript(path: &str) -> Option<String> {
    let path = Path::new(path);
    let mut file = files::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TRANSCRIPT))).ok()?;
    let mut end = Vec::new();
    file.take(MAX_TRANSCRIPT).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    end.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).find_map(|line| prompt_of(&line))
}

/// What a person has written in a line of a transcript of Claude Code or Codex CLI.
fn prompt_of(line: &Value) -> Option<String> {
    let payload = &line["payload"];
    if payload["type"] == "user_message" {
        return payload["message"].as_str().map(str::to_owned);
    }
    let is_prompt = line["type"] == "user" && line["isMeta"] != true && line["isSidechain"] != true;
    let content = is_prompt.then(|| &line["message"]["content"])?;
    let part = |part: &Value| part["text"].as_str().filter(|_| part["type"] == "text").map(str::to_owned);
    content.as_str().map(str::to_owned).or_else(|| content.as_array()?.iter().find_map(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        calls::event::Kind,
        hosts::{claude, gemini},
        tool::caller::Caller,
    };

    fn asked(host: Host, message: Value, desk: &Desk) -> About {
        let message = Message::of(message);
        let event = host.read(&message.value, &Caller::default()).unwrap();
        let Kind::Call { call, .. } = &event.kind else { panic!("no call") };
        of(host, &message, &event, call, desk)
    }

    fn message(folder: &Path) -> Value {
        json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": folder, "tool_name": "Bash",
            "transcript_path": folder.join("t.jsonl"),
            "tool_input": { "command": "ls", "description": "I only look" },
        })
    }

    #[test]
    fn the_agent_its_project_and_its_words_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("shop");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        let about = asked(claude::HOST, message(&project), &desk);
        assert_eq!(about.agent.as_deref(), Some("Claude Code"));
        assert_eq!((about.project.as_deref(), about.branch.as_deref()), (Some("shop"), Some("topic")));
        assert_eq!((about.task, about.words.as_deref()), (None, Some("I only look")));
    }

    #[test]
    fn other_hosts_call_it_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        let message = json!({
            "hook_event_name": "BeforeTool", "session_id": "s", "cwd": folder.path(), "tool_name": "run_shell_command",
            "tool_input": { "command": "ls", "description": "I look" },
        });
        let about = asked(gemini::HOST, message, &desk);
        assert_eq!((about.agent.as_deref(), about.words.as_deref()), (Some("Gemini CLI"), Some("I look")));
    }

    #[test]
    fn the_task_is_the_last_prompt_and_not_endless() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("desk"));
        std::fs::write(
            folder.path().join("t.jsonl"),
            r#"{"type":"user","message":{"role":"user","content":"Make the cart use Decimal"}}
{"type":"assistant","message":{"content":[{"type":"text","text":"I will"}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}
{"type":"user","isMeta":true,"message":{"role":"user","content":"a note of the host"}}
"#,
        )
        .unwrap();
        let task = |desk: &Desk| asked(claude::HOST, message(folder.path()), desk).task;
        assert_eq!(task(&desk).as_deref(), Some("Make the cart use Decimal"));
        keep_task(&desk, "other", "of another session");
        keep_task(&desk, "s", " ");
        assert_eq!(task(&desk).as_deref(), Some("Make the cart use Decimal"));
        keep_task(&desk, "s", &"é".repeat(5_000));
        for _ in 0..2 {
            assert_eq!(task(&desk).map(|task| task.chars().count()), Some(MAX_CHARS + 1));
        }
    }
}
