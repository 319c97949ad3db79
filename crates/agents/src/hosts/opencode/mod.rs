//! OpenCode, which has plugins instead of hooks.

mod adapter;
mod install;

use serde_json::{Value, json};
use tokio::process::Command;

use super::spec::{CANARY_KEY, Canary, Contained, Files, Host, HostSpec, Messages, Moves, State, Variable};

pub const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "OpenCode, which has plugins instead of hooks",
    tested_versions: &["1.18.33"],
    without_updates: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    headless: &["run", "serve", "web", "acp"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: &[adapter::EVERY_CALL, adapter::WOULD_ASK],
        takes_answers: false,
        edits: adapter::edits,
        asks_beside_hook: true,
        aside: adapter::ASIDE,
        join: adapter::join,
        recorded: |_, _| Vec::new(),
    },
    files: Files {
        folder: install::folder,
        deciding: install::DECIDING_FILES,
        variables: &[
            Variable { name: "OPENCODE_CONFIG_DIR", moves: Moves::Folder },
            Variable { name: "OPENCODE_CONFIG", moves: Moves::Folder },
            Variable { name: "XDG_CONFIG_HOME", moves: Moves::Parent(Some("opencode")) },
        ],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: |_, _| None,
    },
    contained: Some(Contained {
        state: &[
            State::Folder(".config/opencode"),
            State::Folder(".local/share/opencode"),
            State::Folder(".local/state/opencode"),
            State::Folder(".cache/opencode"),
        ],
        variables: &["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        refused: &["--pure"],
        has_own_sandbox: false,
        settings: install::contained,
    }),
    canary: Canary {
        tool: "bash",
        arguments: |command| json!({ "command": command, "description": "canary" }),
        start: |command: &mut Command, url, _| {
            command.args(["run", "please"]).env("OPENCODE_CONFIG_CONTENT", config(url).to_string());
            command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
            Ok(())
        },
        unasked: None,
    },
});

fn config(url: &str) -> Value {
    let options = json!({ "baseURL": format!("{url}/v1"), "apiKey": CANARY_KEY });
    json!({
        "autoupdate": false, "share": "disabled", "model": "doctor/m1", "small_model": "doctor/m1",
        "enabled_providers": ["doctor"], "permission": { "bash": "allow" },
        "provider": { "doctor": {
            "npm": "@ai-sdk/openai-compatible", "name": "doctor", "options": options,
            "models": { "m1": { "name": "m1", "limit": { "context": 100_000, "output": 4_000 } } },
        } },
    })
}
