//! Claude Code by Anthropic.

mod adapter;
mod install;
pub mod tools;

use serde_json::json;
use tokio::process::Command;

use super::spec::{CANARY_KEY, Canary, Contained, Files, Host, HostSpec, Messages, Moves, State, Variable};

pub const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "Claude Code by Anthropic",
    tested_versions: &["2.1.197", "2.1.325"],
    without_updates: &[("DISABLE_AUTOUPDATER", "1")],
    headless: &["-p", "--print"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: adapter::DECIDING,
        takes_answers: true,
        edits: adapter::edits,
        asks_beside_hook: true,
        aside: adapter::ASIDE,
        join: |_| None,
        recorded: tools::recorded,
    },
    files: Files {
        folder: install::folder,
        deciding: install::DECIDING_FILES,
        variables: &[Variable { name: "CLAUDE_CONFIG_DIR", moves: Moves::Folder }],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: |_, _| None,
    },
    contained: Some(Contained {
        state: &[State::Folder(".claude"), State::File(".claude.json", "{}")],
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
        ],
        refused: &["--bare"],
        has_own_sandbox: true,
        settings: install::contained,
    }),
    canary: Canary {
        tool: "Bash",
        arguments: |command| json!({ "command": command, "description": "canary" }),
        start: |command: &mut Command, url, _| {
            command.args(["-p", "please", "--permission-mode", "default", "--allowedTools", "Bash"]);
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", CANARY_KEY);
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            Ok(())
        },
        unasked: None,
    },
});
