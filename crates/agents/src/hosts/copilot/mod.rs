//! Copilot CLI by `GitHub`.

mod adapter;
mod install;

use serde_json::json;
use tokio::process::Command;

use super::spec::{CANARY_KEY, Canary, Files, Host, HostSpec, Messages, Moves, Variable};

// CONTRIBUTING: add an agent host, step 2
pub const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "Copilot CLI by `GitHub`",
    tested_versions: &["1.0.102"],
    without_updates: &[("COPILOT_AUTO_UPDATE", "false")],
    headless: &["-p", "--prompt"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: &[adapter::EVERY_CALL, adapter::WOULD_ASK],
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
        variables: &[Variable { name: "COPILOT_HOME", moves: Moves::Folder }],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: |_, _| None,
    },
    contained: None,
    canary: Canary {
        tool: "bash",
        arguments: |command| json!({ "command": command, "description": "canary" }),
        start: |command: &mut Command, url, _| {
            command.args(["-p", "please", "--allow-all-tools"]);
            command.env("COPILOT_OFFLINE", "true").env("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1"));
            command.env("COPILOT_PROVIDER_API_KEY", CANARY_KEY).env("COPILOT_MODEL", "gpt-4.1");
            Ok(())
        },
        unasked: None,
    },
});
