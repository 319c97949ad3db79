//! Quill, a host that does not exist.

mod adapter;
mod install;

use countersign_agents::hosts::spec::{Canary, Files, Host, HostSpec, Messages, Moves, Variable};
use serde_json::json;

pub(crate) const HOST: Host = Host::new(&HostSpec {
    names: install::NAMES,
    about: "Quill by nobody",
    tested_versions: &["1.0.0"],
    without_updates: &[],
    headless: &["--batch"],
    messages: Messages {
        read: adapter::read,
        write: adapter::write,
        event_name: adapter::event_name,
        deciding: &[adapter::EVERY_CALL],
        takes_answers: false,
        edits: |_| None,
        asks_beside_hook: false,
        aside: &[],
        join: |_| None,
        recorded: |_, _| Vec::new(),
    },
    files: Files {
        folder: install::folder,
        deciding: install::DECIDING_FILES,
        variables: &[Variable { name: "QUILL_HOME", moves: Moves::Folder }],
        install: install::install,
        uninstall: install::uninstall,
        inspect: install::inspect,
        switches: install::switches,
        leftovers: |_, _| None,
    },
    contained: None,
    canary: Canary {
        tool: "run",
        arguments: |command| json!({ "run": command }),
        start: |command, url, _| {
            command.args(["--batch", "please"]).env("QUILL_MODEL", url);
            Ok(())
        },
        unasked: None,
    },
});
