//! What administrators install for everybody on a machine.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use countersign_cli::{
    agent::{host::Host, settings::Mode},
    exit::Exit,
    install::{
        hook_line::HookLine, install as install_for, places::Places, plan::Wish, uninstall as uninstall_for,
    },
};
use countersign_client::clock::{Clock as _, SystemClock};

fn wish(host: Host) -> Wish {
    let line = HookLine {
        program: "/usr/local/bin/countersign".to_owned(),
        host,
        mode: Mode::Gate,
        host_timeout: Duration::from_mins(10),
    };
    Wish { line, is_managed: true }
}

#[test]
fn what_administrators_install_is_readable_for_all_and_gone_again() {
    let files = [
        (Host::Claude, "claude-code/managed-settings.json", Some("{\"allowManagedHooksOnly\": true}\n")),
        (Host::Codex, "codex/requirements.toml", Some("allow_managed_hooks_only = true\n")),
        (Host::Codex, "codex/requirements.toml", None),
        (Host::Copilot, "github-copilot/policy.d/countersign.json", None),
    ];
    for (host, file, content) in files {
        let root = tempfile::tempdir().unwrap();
        let places = Places::under(root.path());
        let path = places.managed.join(file);
        if let Some(content) = content {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
        }
        let apply = |plan: &countersign_cli::install::plan::Plan| {
            for change in &plan.changes {
                change.apply(SystemClock.now()).unwrap();
            }
        };
        apply(&install_for(&places, &wish(host)).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        assert!(fs::read_to_string(&path).unwrap().contains("/usr/local/bin/countersign"));
        assert!(install_for(&places, &wish(host)).unwrap().changes.is_empty(), "twice is once");
        apply(&uninstall_for(&places, host, true).unwrap());
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), content, "{host:?}");
    }
    let places = Places::under(Path::new("/nowhere"));
    for host in [Host::Gemini, Host::Opencode] {
        assert!(install_for(&places, &wish(host)).unwrap_err().what.contains("nothing was changed"));
    }
}

#[test]
fn what_the_host_wrote_meanwhile_is_not_lost() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::under(root.path());
    let path = places.managed.join("claude-code/managed-settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{}\n").unwrap();
    let plan = install_for(&places, &wish(Host::Claude)).unwrap();
    fs::write(&path, "{\"theme\": \"dark\"}\n").unwrap();
    let failure = plan.changes[0].apply(SystemClock.now()).unwrap_err();
    assert_eq!(failure.exit, Exit::Changed);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"theme\": \"dark\"}\n");
    let names: Vec<_> =
        fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["managed-settings.json"], "neither a backup nor half a file is left");
}
