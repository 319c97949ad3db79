//! The programs that host a coding agent.

use clap::ValueEnum;

/// A program that runs an agent and can ask before the agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Host {
    /// Claude Code by Anthropic.
    Claude,
    /// Codex CLI by `OpenAI`.
    Codex,
    /// Gemini CLI by Google.
    Gemini,
    /// OpenCode, which has plugins instead of hooks.
    Opencode,
    /// Copilot CLI by `GitHub`.
    Copilot,
}

impl Host {
    /// Every host, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Copilot];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "OpenCode",
            Self::Copilot => "Copilot CLI",
        }
    }
}
