//! What each host says in an hour, in the messages that it was recorded with.

use std::{fmt, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use crate::Failure;

/// From one call of an agent to the next.
pub(super) const BETWEEN_CALLS: Duration = Duration::from_secs(15);

/// One turn in so many asks a person.
const TURNS_TO_ASK: u32 = 2;

/// OpenCode's session in the recordings.
const SESSION: &str = "ses_00000000000000000000000001";

/// The folder in which the recordings were made.
const RECORDED_FOLDER: &str = "/home/ada/project";

/// How many of what an hour has.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Hour {
    pub(super) turns: u32,
    pub(super) calls: u32,
    pub(super) asks: u32,
}

impl Hour {
    pub(super) fn of(turns: u32, tools: u32) -> Self {
        Self {
            turns,
            calls: turns * tools,
            asks: (0..turns).filter(|turn| asks(*turn)).count().try_into().unwrap_or(0),
        }
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turns, calls, asks } = self;
        write!(
            f,
            "an hour of an agent: {turns} turns, {calls} calls {} s apart, {asks} that a person is asked about",
            BETWEEN_CALLS.as_secs()
        )
    }
}

/// Whether a call of this turn asks.
pub(super) fn asks(turn: u32) -> bool {
    turn.is_multiple_of(TURNS_TO_ASK)
}

/// A message as a host was recorded with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded {
    /// The event, and what it was about after a dash.
    name: &'static str,
    text: &'static str,
}

/// The messages of one host.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) host: &'static str,
    pub(super) starts: Recorded,
    pub(super) prompted: Recorded,
    /// After a call that a rule allows: before it, nothing leaves the machine.
    pub(super) used: Recorded,
    pub(super) asks: Recorded,
    pub(super) finished: Recorded,
    /// A host that says nothing then has none.
    pub(super) ends: Option<Recorded>,
}

impl Script {
    /// A message as a hook gets it, of an agent that works in this folder.
    pub(super) fn message(&self, recorded: Recorded, folder: &str) -> Result<String, Failure> {
        let text = recorded.text.replace(RECORDED_FOLDER, folder);
        if self.host != "opencode" {
            return Ok(text);
        }
        // Its plugin takes the message apart, and gives the hook what it needs.
        // What starts and ends was recorded of another session.
        let message: Value = serde_json::from_str(&text.replace("ses_00000000000000000000000002", SESSION))?;
        let event = recorded.name.split('-').next().unwrap_or_default();
        let mut said = match event {
            "tool.execute.before" => {
                let input = &message["input"];
                json!({ "tool": input["tool"], "sessionID": input["sessionID"], "callID": input["callID"],
                    "args": message["output"]["args"] })
            }
            "tool.execute.after" | "chat.message" => message["input"].clone(),
            _ => message["properties"].clone(),
        };
        if event == "chat.message" {
            said["text"] = message["output"]["parts"][0]["text"].clone();
        }
        said["event"] = event.into();
        said["cwd"] = folder.into();
        Ok(said.to_string())
    }
}

macro_rules! recorded {
    ($host:literal, $name:literal) => {
        Recorded {
            name: $name,
            text: include_str!(concat!("../../../../tests/agents/recorded/", $host, "/", $name, ".json")),
        }
    };
}

pub(super) const HOSTS: [Script; 5] = [
    Script {
        host: "claude",
        starts: recorded!("claude", "SessionStart-startup"),
        prompted: recorded!("claude", "UserPromptSubmit-turn"),
        used: recorded!("claude", "PostToolUse-read"),
        asks: recorded!("claude", "PreToolUse-shell"),
        finished: recorded!("claude", "Stop-turn"),
        ends: Some(recorded!("claude", "SessionEnd-other")),
    },
    Script {
        host: "codex",
        starts: recorded!("codex", "SessionStart-startup"),
        prompted: recorded!("codex", "UserPromptSubmit-turn"),
        used: recorded!("codex", "PostToolUse-shell"),
        asks: recorded!("codex", "PreToolUse-shell"),
        finished: recorded!("codex", "Stop-turn"),
        ends: Some(recorded!("codex", "SessionEnd-other")),
    },
    Script {
        host: "gemini",
        starts: recorded!("gemini", "SessionStart-startup"),
        prompted: recorded!("gemini", "BeforeAgent-turn"),
        used: recorded!("gemini", "AfterTool-read"),
        asks: recorded!("gemini", "BeforeTool-shell"),
        finished: recorded!("gemini", "AfterAgent-turn"),
        ends: Some(recorded!("gemini", "SessionEnd-exit")),
    },
    Script {
        host: "opencode",
        starts: recorded!("opencode", "session.created-turn"),
        prompted: recorded!("opencode", "chat.message-turn"),
        used: recorded!("opencode", "tool.execute.after-read"),
        asks: recorded!("opencode", "tool.execute.before-shell"),
        finished: recorded!("opencode", "session.idle-turn"),
        ends: None,
    },
    Script {
        host: "copilot",
        starts: recorded!("copilot", "sessionStart-new"),
        prompted: recorded!("copilot", "userPromptSubmitted-turn"),
        used: recorded!("copilot", "postToolUse-read"),
        asks: recorded!("copilot", "preToolUse-shell"),
        finished: recorded!("copilot", "agentStop-turn"),
        ends: Some(recorded!("copilot", "sessionEnd-complete")),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_gets_the_event_of_every_host_with_its_session() {
        for script in &HOSTS {
            let ends = script.ends.into_iter();
            for recorded in [script.starts, script.prompted, script.used, script.asks, script.finished]
                .into_iter()
                .chain(ends)
            {
                let text = script.message(recorded, "/work").unwrap();
                let message: Value = serde_json::from_str(&text).unwrap();
                let names = ["session_id", "sessionId", "sessionID"];
                let session = names.iter().find_map(|name| message[*name].as_str());
                assert!(session.is_some(), "{} {}: {text}", script.host, recorded.name);
                assert!(!text.contains(RECORDED_FOLDER) && text.contains("/work"), "{text}");
            }
        }
    }
}
