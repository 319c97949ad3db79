//! One small adapter for each host: its event in, its verdict out. What was seen of each host is in docs/agents/.

mod apply_patch;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod input;
mod opencode;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::input::Unreadable;
use super::{event::Event, host::Host, verdict::Verdict};

/// How a hook ends, in the words of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// What the host reads as the verdict.
    pub stdout: String,
    /// What the host shows to the agent or its person.
    pub stderr: String,
    /// The exit code. 2 denies in every host, if stderr is not empty.
    pub code: u8,
}

impl Output {
    /// A verdict that the host reads as JSON.
    fn json(value: &Value) -> Self {
        Self { stdout: format!("{value}\n"), ..Self::default() }
    }

    /// Denied in every way that a host knows: hosts differ in what they obey, and a denial must not depend on it.
    fn denied(value: &Value, reason: &str) -> Self {
        Self { stdout: format!("{value}\n"), stderr: format!("{reason}\n"), code: 2 }
    }
}

impl Host {
    /// Reads what the host has written to the hook's standard input.
    pub fn read(self, input: &Value) -> Result<Event, Unreadable> {
        match self {
            Self::Claude => claude::read(input),
            Self::Codex => codex::read(input),
            Self::Gemini => gemini::read(input),
            Self::Opencode => opencode::read(input),
            Self::Copilot => copilot::read(input),
        }
    }

    /// Writes a verdict on an event. `input` is what the host has written.
    pub fn write(self, event: &str, input: &Value, verdict: &Verdict) -> Output {
        match self {
            Self::Claude => claude::write(event, input, verdict),
            Self::Codex => codex::write(event, verdict),
            Self::Gemini => gemini::write(event, verdict),
            Self::Opencode => opencode::write(verdict),
            Self::Copilot => copilot::write(event, verdict),
        }
    }

    /// The event that a message is, as far as that is known even of one that can't be read.
    pub fn event_name(self, input: &Value) -> &str {
        match self {
            Self::Claude | Self::Codex => input["hook_event_name"].as_str().unwrap_or("PreToolUse"),
            Self::Gemini => input["hook_event_name"].as_str().unwrap_or("BeforeTool"),
            Self::Opencode => input["event"].as_str().unwrap_or(opencode::EVERY_CALL),
            Self::Copilot => copilot::event_name(input),
        }
    }

    /// Whether a failure at this event must deny: it decides something.
    pub fn decides(self, event: &str) -> bool {
        match self {
            Self::Claude | Self::Codex => matches!(event, "PreToolUse" | "PermissionRequest"),
            Self::Gemini => event == "BeforeTool",
            Self::Opencode => matches!(event, opencode::EVERY_CALL | opencode::WOULD_ASK),
            Self::Copilot => matches!(event, copilot::EVERY_CALL | copilot::WOULD_ASK),
        }
    }

    /// Whether a verdict can carry the answers to an agent's questions. Elsewhere they are the words of a denial.
    pub fn takes_answers(self) -> bool {
        self == Self::Claude
    }

    /// Whether the host's own prompt is on the screen while a hook waits. The first answer counts.
    pub fn asks_beside_hook(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode)
    }
}
