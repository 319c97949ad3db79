//! What administrators install for everybody on a machine.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use countersign_agents::{
    hook_line::{HookLine, mode::Mode, place::Place},
    hosts::{Host, claude, codex, copilot, gemini, opencode},
    install::{
        places::Places,
        plan::{Plan, Wish},
    },
    tool::exit::Exit,
};
use countersign_client::clock::{Clock as _, SystemClock};
use serde_json::Value;

fn wish(host: Host) -> Wish {
    let line = HookLine {
        program: "/usr/local/bin/countersign".to_owned(),
        host: host.names,
        place: Place::default(),
        keeper: None,
        mode: Mode::Gate,
        host_timeout: Duration::from_mins(10),
    };
    Wish { line, is_managed: true }
}

#[test]
fn what_administrators_install_is_readable_for_all_and_gone_again() {
    let files = [
        (claude::HOST, "claude-code/managed-settings.json", Some("{\"allowManagedHooksOnly\": true}\n")),
        (codex::HOST, "codex/requirements.toml", Some("allow_managed_hooks_only = true\n")),
        (codex::HOST, "codex/requirements.toml", None),
        (copilot::HOST, "github-copilot/policy.d/countersign.json", None),
    ];
    for (host, file, content) in files {
        let root = tempfile::tempdir().unwrap();
        let places = Places::under(root.path());
        let path = places.managed.join(file);
        if let Some(content) = content {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
        }
        let apply = |plan: &Plan| {
            for change in &plan.changes {
                change.apply(SystemClock.now()).unwrap();
            }
        };
        apply(&(host.files.install)(&places, &wish(host)).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        assert!(fs::read_to_string(&path).unwrap().contains("/usr/local/bin/countersign"));
        assert!((host.files.install)(&places, &wish(host)).unwrap().changes.is_empty(), "twice is once");
        apply(&(host.files.uninstall)(&places, true).unwrap());
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), content, "{host:?}");
    }
    let places = Places::under(Path::new("/nowhere"));
    for host in [gemini::HOST, opencode::HOST] {
        assert!((host.files.install)(&places, &wish(host)).unwrap_err().what.contains("nothing was changed"));
    }
}

#[test]
fn managed_settings_of_claude_code_empty_what_a_project_could_set_for_the_hook() {
    let names = ["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV", "ENV"];
    for (content, is_emptied) in [
        ("{}\n", true),
        ("{\"env\": {}}\n", true),
        ("{\n  \"env\": {\n    \"EDITOR\": \"vi\"\n  }\n}\n", true),
        ("{\n  \"env\": {\n    \"LD_LIBRARY_PATH\": \"/opt/lib\"\n  }\n}\n", false),
    ] {
        let root = tempfile::tempdir().unwrap();
        let places = Places::under(root.path());
        let path = places.managed.join("claude-code/managed-settings.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let files = &claude::HOST.files;
        let plan = (files.install)(&places, &wish(claude::HOST)).unwrap();
        plan.changes[0].apply(SystemClock.now()).unwrap();
        let settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let is_empty = names.iter().all(|name| settings["env"][name] == "");
        assert_eq!(is_empty, is_emptied, "{settings}");
        assert_eq!(plan.notes.iter().any(|note| note.contains("LD_AUDIT")), !is_emptied);
        assert!((files.install)(&places, &wish(claude::HOST)).unwrap().changes.is_empty(), "twice is once");
        (files.uninstall)(&places, true).unwrap().changes[0].apply(SystemClock.now()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn what_the_host_wrote_meanwhile_is_not_lost() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::under(root.path());
    let path = places.managed.join("claude-code/managed-settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{}\n").unwrap();
    let plan = (claude::HOST.files.install)(&places, &wish(claude::HOST)).unwrap();
    fs::write(&path, "{\"theme\": \"dark\"}\n").unwrap();
    let failure = plan.changes[0].apply(SystemClock.now()).unwrap_err();
    assert_eq!(failure.exit, Exit::Changed);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"theme\": \"dark\"}\n");
    let names: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["managed-settings.json"], "neither a backup nor half a file is left");
}
