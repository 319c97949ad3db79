//! Gemini CLI by Google.

mod adapter;
mod install;

use serde_json::json;
use tokio::process::Command;

use super::spec::{CANARY_KEY, Canary, Files, Host, HostSpec, Messages, Moves, Variable};

pub const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "Gemini CLI by Google",
    tested_versions: &["0.61.0"],
    without_updates: &[],
    headless: &["-p", "--prompt"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: &[adapter::EVERY_CALL],
        takes_answers: false,
        edits: |_| None,
        asks_beside_hook: false,
        aside: adapter::ASIDE,
        join: |_| None,
        recorded: |_, _| Vec::new(),
    },
    files: Files {
        folder: install::folder,
        deciding: install::DECIDING_FILES,
        variables: &[Variable { name: "GEMINI_CLI_HOME", moves: Moves::Parent(None) }],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: install::orphaned_policy,
    },
    contained: None,
    canary: Canary {
        tool: "run_shell_command",
        arguments: |command| json!({ "command": command, "description": "canary" }),
        start: |command: &mut Command, url, folder| {
            let settings = folder.join("gemini.json");
            let auth = json!({ "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } } });
            std::fs::write(&settings, auth.to_string())?;
            command.args(["-m", "gemini-2.5-flash", "--yolo", "-p", "please"]);
            command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", settings);
            command.env("GEMINI_API_KEY", CANARY_KEY).env("GOOGLE_GEMINI_BASE_URL", url);
            Ok(())
        },
        unasked: None,
    },
});
