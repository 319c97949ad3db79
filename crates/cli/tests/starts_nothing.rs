//! A hook starts nothing but itself, watched by the kernel, in a repository full of traps.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use countersign_client::reply::Words;
use countersign_wire::decision::DecisionOutcome;
use serde_json::{Value, json};
use support::World;

const HOOK: &str = env!("CARGO_BIN_EXE_countersign");

/// Programs that stand first in the search path. The repository's settings and hooks run the first.
const PLANTED: &[&str] = &[
    "trap",
    "git",
    "git-lfs",
    "loginctl",
    "gdbus",
    "dbus-send",
    "busctl",
    "systemctl",
    "xset",
    "sh",
    "bash",
    "env",
    "ps",
    "who",
    "id",
    "uname",
    "hostname",
    "gpg",
    "ssh",
    "less",
    "python3",
    "node",
];

/// Whatever Git can be told to run.
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = trap\n\thooksPath = hooks\n\tpager = trap\n\teditor = trap\n\tsshCommand = trap\n\taskPass = trap\n[include]\n\tpath = ../more\n[diff]\n\texternal = trap\n[diff \"x\"]\n\ttextconv = trap\n\tcommand = trap\n[filter \"x\"]\n\tclean = trap\n\tsmudge = trap\n\tprocess = trap\n[alias]\n\tstatus = !trap\n\tconfig = !trap\n[credential]\n\thelper = !trap\n[gpg]\n\tprogram = trap\n[log]\n\tshowSignature = true\n[remote \"origin\"]\n\turl = ext::trap\n";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

struct Traps {
    root: PathBuf,
    bin: PathBuf,
    sprung: PathBuf,
}

impl Traps {
    fn set(folder: &Path) -> Self {
        let [root, bin, sprung] = ["repo", "bin", "sprung"].map(|name| folder.join(name));
        fs::create_dir(&sprung).unwrap();
        for name in PLANTED {
            write(&bin.join(name), &format!("#!/bin/sh\n: > {}\n", sprung.join(name).display()));
        }
        write(&root.join(".git/HEAD"), "ref: refs/heads/main\n");
        write(&root.join(".git/refs/heads/main"), "0123456789abcdef0123456789abcdef01234567\n");
        write(&root.join(".git/config"), SETTINGS);
        write(&root.join(".git/more"), SETTINGS);
        write(&root.join(".gitattributes"), "* filter=x diff=x merge=x\n");
        write(&root.join("README.md"), "text\n");
        for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-commit"] {
            for folder in [".git/hooks", "hooks"] {
                write(&root.join(folder).join(hook), "#!/bin/sh\ntrap\n");
            }
        }
        Self { root, bin, sprung }
    }

    /// Starts a program in the repository. What is executed is written to a file.
    fn start(&self, world: &World, program: &[&str], input: &str) -> Child {
        let log = log(world);
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap());
        let mut child = Command::new("strace")
            .args(["-f", "-qq", "-s", "4096", "-e", "trace=execve,execveat", "-e", "signal=none", "-o"])
            .arg(&log)
            .args(["-E", &format!("PATH={path}"), "-E", "XDG_SESSION_ID=1"])
            .args(program)
            .current_dir(&self.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child
    }

    fn sprung(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.sprung).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn log(world: &World) -> PathBuf {
    world.folder.path().join("executed")
}

/// Waits for the end, and returns every program that was executed, or was tried to be.
fn executed(world: &World, child: Child) -> (Output, BTreeSet<String>) {
    let output = child.wait_with_output().unwrap();
    let log = fs::read_to_string(log(world)).unwrap();
    let name = |line: &str| line.split('"').nth(1).unwrap_or(line).to_owned();
    (output, log.lines().filter(|line| line.contains("execve")).map(name).collect())
}

fn message(traps: &Traps, event: &str) -> Value {
    let mut message = json!({
        "hook_event_name": event, "session_id": "s-1", "cwd": traps.root, "transcript_path": "/dev/null",
        "permission_mode": "default",
    });
    let more = match event {
        "PreToolUse" | "PermissionRequest" | "PostToolUse" => json!({
            "tool_name": "Bash", "tool_input": { "command": "git status && sh hooks/pre-commit" }, "tool_use_id": "t-1",
            "tool_response": {},
        }),
        "SessionStart" => json!({ "source": "startup" }),
        "UserPromptSubmit" => json!({ "prompt": "please" }),
        "SessionEnd" => json!({ "reason": "exit" }),
        _ => json!({ "stop_hook_active": false }),
    };
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

#[tokio::test]
async fn a_hook_executes_nothing_but_itself() {
    let world = World::start().await;
    let traps = Traps::set(world.folder.path());
    // What is watched for would be seen.
    let (_, seen) = executed(&world, traps.start(&world, &["/bin/sh", "-c", "git status; true"], ""));
    assert!(seen.contains(traps.bin.join("git").to_str().unwrap()), "{seen:?}");
    assert_eq!(traps.sprung(), ["git"]);
    fs::remove_file(traps.sprung.join("git")).unwrap();

    let itself = BTreeSet::from([HOOK.to_owned(), "/proc/self/exe".to_owned()]);
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ];
    for host in ["claude", "codex"] {
        for event in events {
            for more in [&["--mode", "gate"][..], &["--mode", "relay", "--worker", "--attended"]] {
                let asks = (host, event, more.len()) == ("claude", "PreToolUse", 2);
                let limit = if asks { "60" } else { "6" };
                let home = world.home();
                let at = ["--home", home.to_str().unwrap()];
                let hook = [&[HOOK, "hook", host, "--host-timeout", limit], &at[..], more].concat();
                let child = traps.start(&world, &hook, &message(&traps, event).to_string());
                if asks {
                    world.waiting(1).await;
                    world.decide_all(1, |_| (DecisionOutcome::Approve, Words::default())).await;
                }
                let (output, seen) = executed(&world, child);
                assert_eq!(
                    String::from_utf8_lossy(&output.stdout).contains("approved by ada"),
                    asks,
                    "{output:?}"
                );
                assert!(!seen.is_empty(), "{output:?}");
                assert!(seen.is_subset(&itself), "{host} {event} {more:?}: {seen:?}");
                assert_eq!(traps.sprung(), Vec::<String>::new(), "{host} {event} {more:?}");
            }
        }
    }
}
