//! What a person reads when something goes wrong, kept as a snapshot: each message was read as a new user would.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

/// A home without anything in it, and the tool without a terminal.
struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Without a controlling terminal, whoever runs the test.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command
            .arg("--wait")
            .arg(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("COUNTERSIGN_HOME", self.home.path().join("countersign"))
            .stdin(std::process::Stdio::null());
        command
    }

    /// The message and the code, without what differs from run to run.
    fn message(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        let text = text.replace(&self.home.path().display().to_string(), "HOME");
        format!(
            "$ countersign {}\n{}\n[{}]\n",
            arguments.join(" "),
            text.trim(),
            output.status.code().unwrap_or(-1)
        )
    }

    /// A profile whose gateway nobody serves.
    fn join_as(&self, name: &str, role: &str) {
        let folder = self.home.path().join("countersign/profiles").join(name);
        make_profile(&folder, role);
    }
}

fn make_profile(folder: &Path, role: &str) {
    use countersign_client::{
        keys::DeviceKeys,
        profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Passphrase, PassphraseKeys, Profile},
    };
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let party = match role {
        "enforcer" => Party::Enforcer("robot".parse().unwrap()),
        _ => Party::Approver("ada".parse().unwrap()),
    };
    let facts = Facts {
        party,
        tenant: "acme".parse().unwrap(),
        gateway: GatewayUrl::new("http://127.0.0.1:1").unwrap(),
        label: "a machine".parse().unwrap(),
    };
    let credential = Credential::new("csk_acme_x_y".to_owned().into()).unwrap();
    let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
    if role == "enforcer" {
        Profile::create(folder, facts, &credential, &keys, &FileKeys).unwrap();
    } else {
        let passphrase = Passphrase::new("correct horse".to_owned().into()).unwrap();
        Profile::create(folder, facts, &credential, &keys, &PassphraseKeys::new(passphrase)).unwrap();
    }
}

/// Before anything is set up, and with wrong arguments.
const WITHOUT_ANYTHING: &[&[&str]] = &[
    &["status"],
    &["config"],
    &["exec", "--", "ls"],
    &["ask", "--checkpoint", "half done"],
    &["inbox"],
    &["show", "abc"],
    &["approve", "abc"],
    &["reject", "abc"],
    &["ask-again", "abc"],
    &["pair"],
    &["pair", "--answer"],
    &["devices"],
    &["devices", "revoke", "9F3C-41AA"],
    &["recovery", "new"],
    &["recovery", "accept"],
    &["keys", "passphrase"],
    &["keys", "export"],
    &["join"],
    &["join", "-"],
    &["join", "https://gateway.example"],
    &["up"],
    &["up", "--public-url", "http://gateway.example"],
    &["--profile", "nobody", "exec", "--", "ls"],
    &["--profile", "No Name", "exec", "--", "ls"],
    &["--json", "exec", "--", "ls"],
    &["aprove", "abc"],
    &["exec", "ls"],
    &["exec"],
    &["exec", "--valid-for", "soon", "--", "ls"],
    &["exec", "--valid-for", "99d", "--", "ls"],
    &["exec", "--ask-again-for", "soon", "--", "ls"],
    &["ask", "--detach", "--ask-again-for", "1m", "--", "ls"],
    &["ask"],
    &["completions", "basic"],
    &["rules", "test"],
    &["rules", "test", "--", "ls"],
    &["rules", "test", "--", "countersign", "approve", "abc"],
    &["rules", "test", "--event", "missing.json"],
    &["rules", "replay", "missing.jsonl"],
    &["rules", "init"],
    &["rules", "init"],
    &["rules", "show"],
    &["policy", "show"],
    &["policy", "test", "--", "ls"],
    &["install"],
    &["install", "emacs"],
    &["install", "gemini"],
    &["install", "claude", "--timeout", "5s"],
    &["install", "opencode", "--managed"],
    &["install", "claude", "--keeper", "--yes"],
    &["install", "claude", "--keeper", "system", "--yes"],
    &["uninstall", "claude"],
    &["doctor"],
    &["fleet"],
    &["fleet", "--policy", "main"],
];

/// Set up, with nobody paired.
const SET_UP: &[&[&str]] = &[
    &["config"],
    &["--profile", "desk", "config"],
    &["exec", "--", "no-such-program"],
    &["exec", "--", "ls"],
    &["ask", "--plan", "missing.md"],
    &["ask", "--checkpoint", "half done"],
    &["approve", "abc"],
    &["--profile", "agent", "approve", "abc"],
    &["--profile", "desk", "exec", "--", "ls"],
    &["devices"],
    &["devices", "revoke", "9F3C-41AA"],
    &["pair"],
    &["recovery", "new"],
    &["recovery", "use"],
    &["recovery", "accept"],
    &["keys", "show"],
    &["keys", "export"],
    &["join", "--name", "agent", "http://127.0.0.1:1/join#csi_x"],
    &["fleet"],
];

#[test]
fn every_message_says_what_to_do_next() {
    let mut all = String::new();
    let empty = Place::new();
    for arguments in WITHOUT_ANYTHING {
        all.push_str(&(empty.message(arguments) + "\n"));
    }
    let set_up = Place::new();
    set_up.join_as("agent", "enforcer");
    set_up.join_as("desk", "approver");
    for arguments in SET_UP {
        all.push_str(&(set_up.message(arguments) + "\n"));
    }
    let two = Place::new();
    two.join_as("one", "enforcer");
    two.join_as("two", "enforcer");
    all.push_str(&two.message(&["exec", "--", "ls"]));
    fs::write(two.home.path().join("countersign/profiles/one/pins.json"), "{").unwrap();
    all.push_str(&two.message(&["--profile", "one", "exec", "--", "ls"]));
    for rules in ["[[rule]]\nverdict = \"maybe\"\n", "[[rule]]\nverdict = \"deny\"\ncolour = \"red\"\n"] {
        fs::write(two.home.path().join("countersign/rules.toml"), rules).unwrap();
        all.push_str(&two.message(&["rules", "test", "--", "ls"]));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &all).unwrap();
    }
    assert_eq!(
        fs::read_to_string(path).unwrap_or_default(),
        all,
        "run again with UPDATE_DOCS=1, and read the difference"
    );
}

/// People paste it into reports.
#[test]
fn the_configuration_has_no_secrets() {
    let place = Place::new();
    place.join_as("agent", "enforcer");
    place.join_as("desk", "approver");
    let private: Vec<String> = ["agent", "desk"]
        .iter()
        .flat_map(|name| ["keys", "credential"].map(|file| format!("countersign/profiles/{name}/{file}")))
        .flat_map(|file| {
            let text = fs::read_to_string(place.home.path().join(file)).unwrap();
            text.split(['"', '\n', ' ']).filter(|part| part.len() > 20).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert!(private.len() >= 2, "{private:?}");
    for json in [false, true] {
        let mut command = place.command(if json { &["config", "--json"] } else { &["config"] });
        let output =
            command.env("COUNTERSIGN_TOKEN", "hunter2").env("COUNTERSIGN_SESSION", "agent-7").output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains("COUNTERSIGN_TOKEN") && text.contains("agent-7"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("csk_"), "{text}");
        assert!(private.iter().all(|secret| !text.contains(secret)), "{text}");
        if json {
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["asksWith"], "agent");
            assert_eq!(value["profiles"][1]["keys"], "passphrase");
            assert_eq!(value["longestGrantSeconds"], 8 * 60 * 60);
        }
    }
}

/// An agent is under the same user and has no passphrase. No command of the tool decides, grants or changes rules for it.
#[test]
fn without_the_passphrase_nothing_is_approved_or_changed() {
    let place = Place::new();
    place.join_as("agent", "enforcer");
    place.join_as("desk", "approver");
    let files = || {
        let mut content = Vec::new();
        for name in ["agent", "desk"] {
            for file in ["keys", "pins.json", "profile.json", "credential"] {
                content.push(
                    fs::read(place.home.path().join("countersign/profiles").join(name).join(file)).unwrap(),
                );
            }
        }
        content
    };
    let before = files();
    for arguments in [
        &["approve", "abc"][..],
        &["reject", "abc"],
        &["inbox"],
        &["show", "abc"],
        &["pair"],
        &["pair", "--typed"],
        &["pair", "--answer"],
        &["devices", "revoke", "9F3C-41AA"],
        &["recovery", "new"],
        &["recovery", "renew"],
        &["recovery", "use"],
        &["recovery", "accept"],
        &["keys", "passphrase"],
        &["keys", "export"],
    ] {
        let output = place.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}: {text}");
    }
    assert!(before == files(), "a file of a profile has changed");
}
