//! Codex CLI by `OpenAI`.

mod adapter;
mod install;

use serde_json::json;
use tokio::process::Command;

use super::spec::{CANARY_KEY, Canary, Contained, Files, Host, HostSpec, Messages, Moves, State, Variable};

pub const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "Codex CLI by `OpenAI`",
    tested_versions: &["0.166.0"],
    without_updates: &[],
    headless: &["exec", "e", "app-server", "mcp-server", "review"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: adapter::DECIDING,
        takes_answers: false,
        edits: |_| None,
        asks_beside_hook: false,
        aside: adapter::ASIDE,
        join: |_| None,
        recorded: adapter::recorded,
    },
    files: Files {
        folder: install::folder,
        deciding: install::DECIDING_FILES,
        variables: &[Variable { name: "CODEX_HOME", moves: Moves::Folder }],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: |_, _| None,
    },
    contained: Some(Contained {
        state: &[State::Folder(".codex")],
        variables: &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
        refused: &[],
        has_own_sandbox: true,
        settings: install::contained,
    }),
    canary: Canary {
        tool: "exec_command",
        arguments: |command| json!({ "cmd": command }),
        start: |command: &mut Command, url, _| {
            command.args(["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]);
            for setting in [
                "model_provider=\"doctor\"".to_owned(),
                "model_providers.doctor.name=\"doctor\"".to_owned(),
                format!("model_providers.doctor.base_url=\"{url}/v1\""),
                "model_providers.doctor.env_key=\"COUNTERSIGN_DOCTOR_KEY\"".to_owned(),
                "model_providers.doctor.wire_api=\"responses\"".to_owned(),
                "model_providers.doctor.request_max_retries=0".to_owned(),
                "model_providers.doctor.stream_max_retries=0".to_owned(),
                "check_for_update_on_startup=false".to_owned(),
            ] {
                command.arg("-c").arg(setting);
            }
            command.arg("please").env("COUNTERSIGN_DOCTOR_KEY", CANARY_KEY);
            Ok(())
        },
        unasked: Some("open Codex once and trust the hook"),
    },
});
