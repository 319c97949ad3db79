//! `doctor`: each thing that can be wrong is found, and what is right is not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use countersign_client::{
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Profile},
};
use serde_json::Value;
use tempfile::TempDir;

struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .arg("--json")
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.home.path())
            .env("COUNTERSIGN_HOME", self.path("countersign"))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let value = serde_json::from_slice(&output.stdout);
        assert!(value.is_ok(), "{text}");
        (output.status.code(), value.unwrap())
    }

    /// Installs for a host, changes a file, and returns what the doctor says about the host.
    fn after(host: &[&str], file: &str, change: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let place = Self::new();
        assert_eq!(place.run(&[&["install", "--yes"], host].concat()).0, Some(0));
        assert_eq!(place.problems(host[0]), Vec::<String>::new(), "{host:?}");
        let before = fs::read_to_string(place.path(file)).unwrap_or_default();
        match change(&before) {
            Some(after) => {
                assert_ne!(before, after, "the test changes nothing");
                fs::create_dir_all(place.path(file).parent().unwrap()).unwrap();
                fs::write(place.path(file), after).unwrap();
            }
            None => fs::remove_file(place.path(file)).unwrap(),
        }
        place.problems(host[0])
    }

    /// What has to be put right about a subject.
    fn problems(&self, subject: &str) -> Vec<String> {
        self.findings(subject, "problem")
    }

    fn findings(&self, subject: &str, level: &str) -> Vec<String> {
        let (_, report) = self.run(&["doctor", "--no-start"]);
        let all = report["findings"].as_array().unwrap();
        for finding in all {
            for part in ["what", "why", "remedy"] {
                assert!(finding[part].as_str().unwrap().len() > 10, "{finding}");
            }
        }
        let about = all.iter().filter(|it| it["subject"] == subject && it["level"] == level);
        about.map(|it| it["what"].as_str().unwrap().to_owned()).collect()
    }

    /// The profile of an agent whose gateway answers this to everything.
    fn profile(&self, answer: &'static str) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4_096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let facts = Facts {
            party: Party::Enforcer("robot".parse().unwrap()),
            tenant: "acme".parse().unwrap(),
            gateway: GatewayUrl::new(&url).unwrap(),
            label: "a machine".parse().unwrap(),
        };
        let folder = self.path("countersign/profiles/agent");
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let credential = Credential::new("csk_acme_x_y".to_owned().into()).unwrap();
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        Profile::create(&folder, facts, &credential, &keys, &FileKeys).unwrap();
    }
}

fn has(findings: &[String], words: &str) {
    assert!(findings.iter().any(|finding| finding.contains(words)), "{words}: {findings:?}");
}

const CLAUDE: &str = ".claude/settings.json";

#[test]
fn what_weakens_the_hook_of_claude_is_found() {
    type Edit = fn(&str) -> String;
    let edits: &[(Edit, &str)] = &[
        (|text| text.replace("\"timeout\": 600", "\"timeout\": 5"), "waits 5 s"),
        (|text| text.replace("\"PreToolUse\"", "\"PreCompact\""), "no hook for PreToolUse"),
        (
            |text| text.replacen("\"matcher\": \"*\"", "\"matcher\": \"Read\"", 1),
            "hook for PreToolUse in line",
        ),
        (|text| text.replace("--mode relay", "--mode none"), "not as it was installed"),
        (|text| text.replace("/countersign hook", "/gone/countersign hook"), "does not exist"),
        (|text| text.replacen("\"hooks\"", "\"disableAllHooks\": true, \"hooks\"", 1), "disableAllHooks"),
        (|text| text.replacen("\"hooks\"", "\"hooks\" \"", 1), "broken in line 2"),
    ];
    for (edit, words) in edits {
        has(&Place::after(&["claude"], CLAUDE, |text| Some(edit(text))), words);
    }
    let project = Place::after(&["claude"], ".claude/settings.local.json", |_| {
        Some("{\"disableAllHooks\": true}".to_owned())
    });
    has(&project, "settings.local.json");
    let place = Place::new();
    place.run(&["install", "claude", "--yes"]);
    fs::set_permissions(place.path(CLAUDE), fs::Permissions::from_mode(0o666)).unwrap();
    has(&place.problems("claude"), "others than its owner can change");
    // Another program of the same name is not this one.
    fs::set_permissions(place.path(CLAUDE), fs::Permissions::from_mode(0o600)).unwrap();
    let other = place.path("countersign-other");
    fs::write(&other, "").unwrap();
    let text = fs::read_to_string(place.path(CLAUDE)).unwrap();
    let this = fs::canonicalize(env!("CARGO_BIN_EXE_countersign")).unwrap();
    fs::write(place.path(CLAUDE), text.replace(this.to_str().unwrap(), other.to_str().unwrap())).unwrap();
    has(&place.problems("claude"), "not this program");
}

#[test]
fn what_switches_the_hooks_of_the_others_off_is_found() {
    let gemini = ["gemini", "--mode", "gate"];
    let settings = ".gemini/settings.json";
    let policy = ".gemini/policies/countersign.toml";
    let add = |text: &str, member: &str| Some(text.replacen('{', &format!("{{ {member}, // note\n"), 1));
    has(&Place::after(&gemini, policy, |_| None), "is missing");
    has(&Place::after(&gemini, policy, |text| Some(text.replace("100", "1"))), "not as it was installed");
    has(&Place::after(&gemini, settings, |_| Some("{}".to_owned())), "the hook is not installed");
    let off = Place::after(&gemini, settings, |text| add(text, "\"hooksConfig\": {\"enabled\": false}"));
    has(&off, "hooksConfig.enabled");
    let listed = Place::after(&gemini, settings, |text| {
        add(text, "\"hooksConfig\": {\"disabled\": [\"countersign\"]}")
    });
    has(&listed, "hooksConfig.disabled");

    let config = ".codex/config.toml";
    let untrusted = |text: &str| Some(text.replacen("sha256:", "sha256:0", 1));
    has(&Place::after(&["codex"], config, untrusted), "does not trust 1 of 7");
    has(&Place::after(&["codex"], config, |_| None), "does not trust 7 of 7");
    let off = Place::after(&["codex"], config, |text| Some(format!("[features]\nhooks = false\n{text}")));
    has(&off, "hooks = false");
    let moved = |text: &str| {
        let other = "\"PreToolUse\": [ { \"hooks\": [] },";
        Some(text.replacen("\"PreToolUse\": [", other, 1))
    };
    has(&Place::after(&["codex"], ".codex/hooks.json", moved), "does not trust 1 of 7");

    let copilot = ".copilot/hooks/countersign.json";
    let off = Place::after(&["copilot"], copilot, |text| {
        Some(text.replacen('{', "{ \"disableAllHooks\": true,", 1))
    });
    has(&off, "disableAllHooks");

    let plugin = ".config/opencode/plugins/countersign.js";
    let gate = ["opencode", "--mode", "gate"];
    let altered = |text: &str| Some(text.replace("throw new Error(", "console.log("));
    has(&Place::after(&gate, plugin, altered), "the plugin is not as it was installed");
    let place = Place::new();
    place.run(&["install", "opencode", "--yes"]);
    has(&place.problems("opencode"), "no `permission`");
    let settings = place.path(".config/opencode/opencode.json");
    fs::write(settings, "{ \"permission\": { \"bash\": \"ask\" } }").unwrap();
    assert_eq!(place.problems("opencode"), Vec::<String>::new());
}

#[test]
fn a_hook_that_uses_another_folder_is_found() {
    let elsewhere = |text: &str| Some(text.replace("--home ", "--home /srv/other"));
    let findings = Place::after(&["claude"], ".claude/settings.json", elsewhere);
    has(&findings, "the hook uses /srv/other");
}

#[test]
fn a_machine_that_can_not_ask_is_found_and_the_code_says_so() {
    let place = Place::new();
    let (code, report) = place.run(&["doctor"]);
    assert_eq!((code, &report["outcome"]), (Some(87), &Value::from("findings")));
    has(&place.problems("profiles"), "can't ask anybody");

    place.profile("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
    assert_eq!(place.problems("profiles"), Vec::<String>::new());
    assert_eq!(place.problems("agent"), ["no approver is paired"]);
    fs::set_permissions(place.path("countersign/profiles/agent/keys"), fs::Permissions::from_mode(0o644))
        .unwrap();
    has(&place.problems("agent"), "other users have access");
}

#[test]
fn a_wrong_clock_a_refused_credential_and_a_silent_gateway_are_found() {
    let place = Place::new();
    place.profile(
        "HTTP/1.1 200 OK\r\ndate: Sun, 15 Nov 2020 12:01:03 GMT\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    );
    has(&place.problems("agent"), "s ahead of the gateway's");
    let place = Place::new();
    place.profile("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
    has(&place.problems("agent"), "does not accept the credential");
    let place = Place::new();
    place.profile("");
    has(&place.problems("agent"), "can't be reached");
}

#[test]
fn a_version_that_was_not_checked_is_a_note() {
    let place = Place::new();
    place.run(&["install", "claude", "--yes"]);
    has(&place.findings("claude", "note"), "does not answer");
    fs::create_dir(place.path("bin")).unwrap();
    let claude = place.path("bin/claude");
    for (version, is_checked) in [("2.1.325", true), ("9.9.9", false)] {
        fs::write(&claude, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(place.findings("claude", "note").is_empty(), is_checked, "{version}");
    }
}

#[test]
fn a_hook_that_asks_a_keeper_needs_one_and_stays_with_it() {
    let place = Place::new();
    let (code, refused) = place.run(&["install", "claude", "--keeper", "--yes"]);
    assert_ne!(code, Some(0));
    assert!(refused["next"].as_str().unwrap().contains("countersign keeper start"), "{refused}");
    place.run(&["keeper", "start"]);
    let installed = place.run(&["install", "claude", "--keeper", "--yes"]);
    let with_keeper = place.problems("claude");
    // Installed again for another reason, it is still the keeper that decides.
    let again = place.run(&["install", "claude", "--mode", "gate", "--yes"]);
    let settings = fs::read_to_string(place.path(".claude/settings.json")).unwrap();
    let stopped = place.run(&["keeper", "stop"]);
    let without = place.problems("claude");
    assert_eq!((installed.0, again.0, stopped.0), (Some(0), Some(0), Some(0)));
    assert_eq!(with_keeper, Vec::<String>::new());
    assert!(
        settings.contains("countersign-hook hook claude") && settings.contains("--keeper user --mode gate"),
        "{settings}"
    );
    assert!(without.iter().any(|what| what.contains("none answers at")), "{without:?}");
}
