//! `install` and `uninstall` on settings as people have them: every byte that is not ours stays.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod settings;

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::settings::{MALFORMED, SETTINGS, WITH_COMMENTS};

/// A home with a host's settings in it.
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

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The tool without a terminal.
    fn run(&self, arguments: &[&str]) -> Output {
        self.run_copy(Path::new(env!("CARGO_BIN_EXE_countersign")), arguments)
    }

    fn run_copy(&self, program: &Path, arguments: &[&str]) -> Output {
        Command::new("setsid")
            .arg("--wait")
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}");
        text
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}: {text}");
        text
    }

    /// The names of the files in a folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A host whose settings others edit too: its word, its options and its file.
const HOSTS: &[(&[&str], &str)] = &[
    (&["claude"], ".claude/settings.json"),
    (&["gemini", "--mode", "gate"], ".gemini/settings.json"),
    (&["codex"], ".codex/hooks.json"),
];

fn install<'a>(host: &[&'a str]) -> Vec<&'a str> {
    [&["install"][..], host, &["--yes"]].concat()
}

fn uninstall<'a>(host: &[&'a str]) -> Vec<&'a str> {
    vec!["uninstall", host[0], "--yes"]
}

fn cases(host: &[&str]) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let with_comments = if host[0] == "gemini" { WITH_COMMENTS } else { &[] };
    SETTINGS.iter().chain(with_comments)
}

#[test]
fn every_file_is_byte_identical_after_the_round_trip() {
    assert!(SETTINGS.len() >= 20);
    for (host, file) in HOSTS {
        for (name, content) in cases(host) {
            let place = Place::new();
            place.write(file, content);
            place.ok(&install(host));
            let installed = place.read(file);
            assert!(installed.contains("\"PreToolUse\"") || installed.contains("\"BeforeTool\""));
            place.ok(&uninstall(host));
            assert_eq!(place.read(file), *content, "{host:?}: {name}\n{installed}");
        }
    }
}

#[test]
fn twice_is_once_and_other_options_change_ours_in_place() {
    for (host, file) in HOSTS {
        for (name, content) in cases(host) {
            let place = Place::new();
            place.write(file, content);
            place.ok(&install(host));
            let first = place.read(file);
            let text = place.ok(&install(host));
            assert!(text.contains("already") && place.read(file) == first, "{name}: {text}");
            let longer = [&install(host)[..], &["--timeout", "20m"]].concat();
            place.ok(&longer);
            let second = place.read(file);
            assert!(second.contains("1200") && !second.contains("host-timeout 600"), "{name}: {second}");
            assert_eq!(first.lines().count(), second.lines().count(), "{name}");
            place.ok(&uninstall(host));
            assert_eq!(place.read(file), *content, "{name}");
            let text = place.ok(&uninstall(host));
            assert!(text.contains("not installed"), "{text}");
        }
    }
}

#[test]
fn what_is_malformed_is_refused_untouched_with_its_line() {
    for (host, file) in HOSTS {
        for (content, line) in MALFORMED {
            let place = Place::new();
            place.write(file, content);
            let text = place.refused(&install(host));
            let line = match host[0] == "gemini" && content.contains("BeforeTool") {
                true => 4,
                false => *line,
            };
            assert!(text.contains(&format!("line {line}")), "{content}: {text}");
            assert_eq!(place.read(file), *content);
            let folder = Path::new(file).parent().unwrap().to_str().unwrap();
            assert_eq!(place.names(folder).len(), 1, "{:?}", place.names(folder));
        }
    }
    let place = Place::new();
    place.write(".claude/settings.json", b"{\n\"a\": \"\xff\"}");
    assert!(place.refused(&install(&["claude"])).contains("line 2"));
    place.write(".claude/settings.json", "// a comment\n{}");
    assert!(place.refused(&install(&["claude"])).contains("line 1"), "Claude Code does not read comments");
}

#[test]
fn edits_in_between_stay() {
    for (host, file) in HOSTS {
        for (name, content) in cases(host) {
            let is_empty =
                content.replace(['{', '}'], "").trim().is_empty() || content.contains("nothing here");
            if is_empty || content.starts_with("// head") {
                continue;
            }
            let edit = |text: &str| text.replacen('{', "{\"added\": [1, 2],", 1);
            let place = Place::new();
            place.write(file, content);
            place.ok(&install(host));
            let edited = edit(&place.read(file));
            place.write(file, &edited);
            place.ok(&uninstall(host));
            assert_eq!(place.read(file), edit(content), "{host:?}: {name}");
        }
    }
}

#[test]
fn hooks_that_others_added_beside_ours_stay() {
    let place = Place::new();
    place.write(".claude/settings.json", "{}\n");
    place.ok(&["install", "claude", "--yes"]);
    let mut settings: Value = serde_json::from_str(&place.read(".claude/settings.json")).unwrap();
    let theirs = serde_json::json!({ "type": "command", "command": "theirs" });
    // In our group, after it, and for another event; and formatted as a program would.
    settings["hooks"]["PreToolUse"][0]["hooks"].as_array_mut().unwrap().push(theirs.clone());
    let group = serde_json::json!({ "matcher": "Bash", "hooks": [theirs] });
    settings["hooks"]["Stop"].as_array_mut().unwrap().push(group.clone());
    settings["hooks"]["PreCompact"] = serde_json::json!([group]);
    place.write(".claude/settings.json", serde_json::to_string_pretty(&settings).unwrap());
    place.ok(&["install", "claude", "--yes"]);
    place.ok(&["uninstall", "claude", "--yes"]);
    let left: Value = serde_json::from_str(&place.read(".claude/settings.json")).unwrap();
    let expected = serde_json::json!({ "hooks": {
        "PreToolUse": [{ "matcher": "*", "hooks": [theirs] }], "Stop": [group], "PreCompact": [group],
    }});
    assert_eq!(left, expected);
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    for (host, file) in HOSTS.iter().chain(&[
        (&["copilot"][..], ".copilot/hooks/countersign.json"),
        (&["opencode"][..], ".config/opencode/plugins/countersign.js"),
    ]) {
        let place = Place::new();
        place.ok(&install(host));
        assert!(place.path(file).is_file());
        assert_eq!(fs::metadata(place.path(file)).unwrap().mode() & 0o777, 0o600);
        place.ok(&uninstall(host));
        assert!(!place.path(file).exists(), "{host:?}");
        let ours = place.path(".local/share/countersign");
        let left = walk(place.home.path()).into_iter().filter(|path| !path.starts_with(&ours));
        let left: Vec<PathBuf> = left.collect();
        assert!(left.iter().all(|path| path.to_string_lossy().contains("countersign-backup")), "{left:?}");
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

#[test]
fn a_backup_has_what_was_there_and_mode_and_link_stay() {
    let place = Place::new();
    place.write("dotfiles/claude.json", "{\"a\":1}");
    fs::set_permissions(place.path("dotfiles/claude.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(place.path(".claude")).unwrap();
    symlink("../dotfiles/claude.json", place.path(".claude/settings.json")).unwrap();
    let text = place.ok(&["install", "claude", "--yes"]);
    assert!(text.contains("is a link") && text.contains("dotfiles/claude.json"), "{text}");
    assert!(fs::symlink_metadata(place.path(".claude/settings.json")).unwrap().is_symlink());
    assert_eq!(fs::metadata(place.path("dotfiles/claude.json")).unwrap().mode() & 0o777, 0o640);
    let names = place.names("dotfiles");
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[1].starts_with("claude.json.countersign-backup-20"), "{names:?}");
    assert_eq!(place.read(&format!("dotfiles/{}", names[1])), "{\"a\":1}");
    place.ok(&["uninstall", "claude", "--yes"]);
    assert_eq!(place.read("dotfiles/claude.json"), "{\"a\":1}");
    assert!(fs::symlink_metadata(place.path(".claude/settings.json")).unwrap().is_symlink());
}

#[test]
fn what_is_not_a_file_of_this_user_is_refused() {
    let place = Place::new();
    let settings = place.path(".claude/settings.json");
    fs::create_dir_all(&settings).unwrap();
    assert!(place.refused(&["install", "claude", "--yes"]).contains("not a regular file"));
    fs::remove_dir(&settings).unwrap();
    symlink("nowhere", &settings).unwrap();
    assert!(place.refused(&["install", "claude", "--yes"]).contains("leads nowhere"));
    fs::remove_file(&settings).unwrap();
    place.write("second", "{}");
    fs::hard_link(place.path("second"), &settings).unwrap();
    assert!(place.refused(&["install", "claude", "--yes"]).contains("second name"));
    fs::remove_file(place.path("second")).unwrap();
    if std::os::unix::fs::chown(&settings, Some(12_345), None).is_ok() {
        assert!(place.refused(&["install", "claude", "--yes"]).contains("somebody else"));
    }
    assert_eq!(place.read(".claude/settings.json"), "{}");
    assert_eq!(place.names(".claude").len(), 1);
}

#[test]
fn without_a_terminal_nothing_changes_unless_it_is_said() {
    let place = Place::new();
    place.write(".claude/settings.json", "{}\n");
    let text = place.refused(&["install", "claude"]);
    assert!(text.contains("+    \"PreToolUse\": [") && text.contains("--yes"), "{text}");
    let text = place.ok(&["install", "claude", "--dry-run"]);
    assert!(text.contains("+    \"PreToolUse\": ["), "{text}");
    assert_eq!(place.read(".claude/settings.json"), "{}\n");
    assert_eq!(place.names(".claude"), ["settings.json"]);
    let output = place.run(&["--json", "install", "claude", "--yes"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["files"][0]["change"], "changed");
    assert!(value["files"][0]["backup"].as_str().unwrap().contains("countersign-backup"));
}

#[test]
fn the_hook_is_this_program_with_the_options_that_were_said() {
    let place = Place::new();
    place.ok(&["install", "claude", "--mode", "gate", "--timeout", "5m", "--yes"]);
    let settings: Value = serde_json::from_str(&place.read(".claude/settings.json")).unwrap();
    let handler = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    let this = fs::canonicalize(env!("CARGO_BIN_EXE_countersign")).unwrap();
    let folder = place.path(".local/share/countersign");
    let expected = format!(
        "{} hook claude --home {} --mode gate --host-timeout 300 || {{",
        this.display(),
        folder.display()
    );
    let command = handler["command"].as_str().unwrap();
    assert!(command.contains(&expected) && command.ends_with("exit 2; }"), "{command}");
    let news = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    assert!(news.ends_with("--host-timeout 10"), "a session's end must not be denied: {news}");
    assert_eq!(handler["timeout"], 300);
    assert!(place.refused(&["install", "claude", "--timeout", "30s", "--yes"]).contains("1m to 24h"));
}

#[test]
fn installing_again_does_not_make_a_gate_into_less() {
    for host in ["claude", "codex", "gemini", "opencode", "copilot"] {
        let place = Place::new();
        place.ok(&["install", host, "--mode", "gate", "--yes"]);
        let text = place.ok(&["install", host, "--yes"]);
        assert!(text.contains("already"), "{host}: {text}");
    }
    let place = Place::new();
    place.ok(&["install", "claude", "--mode", "gate", "--yes"]);
    place.ok(&["install", "claude", "--mode", "relay", "--yes"]);
    assert!(!place.read(".claude/settings.json").contains("gate"));
}

#[test]
fn codex_gets_its_trust_and_loses_it_again() {
    for config in ["", "model = \"x\"", "# mine\n[features]\nhooks = true\n", "a = 1\r\n\r\n[b]\r\nc = 2\r\n"]
    {
        let place = Place::new();
        place.write(".codex/config.toml", config);
        place.ok(&["install", "codex", "--yes"]);
        let text = place.read(".codex/config.toml");
        let key = format!("{}:pre_tool_use:0:0", place.path(".codex/hooks.json").display());
        let table: toml::Table = text.parse().unwrap();
        assert!(table["hooks"]["state"][&key]["trusted_hash"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(table["hooks"]["state"].as_table().unwrap().len(), 7);
        place.ok(&["uninstall", "codex", "--yes"]);
        assert_eq!(place.read(".codex/config.toml"), config);
    }
    let place = Place::new();
    place.write(".codex/config.toml", "a = 1\nb =\n");
    assert!(place.refused(&["install", "codex", "--yes"]).contains("line 2"));
    assert_eq!(place.names(".codex"), ["config.toml"]);
}

#[test]
fn gemini_is_never_left_with_the_policy_and_without_the_hook() {
    let place = Place::new();
    let policy = ".gemini/policies/countersign.toml";
    for arguments in [&["install", "gemini", "--yes"][..], &["install", "gemini", "--mode", "relay", "--yes"]]
    {
        let text = place.refused(arguments);
        assert!(text.contains("--mode gate"), "{text}");
    }
    assert!(!place.path(".gemini").exists());
    place.ok(&["install", "gemini", "--mode", "gate", "--yes"]);
    let table: toml::Table = place.read(policy).parse().unwrap();
    assert_eq!(table["rule"][0]["decision"].as_str(), Some("allow"));
    // A file that can't be edited keeps the hook, and the policy goes only together with it.
    let settings = place.read(".gemini/settings.json");
    place.write(".gemini/settings.json", settings.replace('}', ""));
    place.refused(&["uninstall", "gemini", "--yes"]);
    assert!(place.path(policy).exists());
    place.write(".gemini/settings.json", settings);
    let text = place.ok(&["uninstall", "gemini", "--yes"]);
    assert!(text.find("countersign.toml").unwrap() < text.find("settings.json").unwrap(), "{text}");
    assert!(!place.path(policy).exists());
    // Somebody else's file of that name is left alone, and then the hook is not installed either.
    place.write(policy, "# mine\n");
    assert!(
        place.refused(&["install", "gemini", "--mode", "gate", "--yes"]).contains("not written by this tool")
    );
    assert!(!place.path(".gemini/settings.json").exists());
}

#[test]
fn somebody_elses_plugin_is_left_alone() {
    let place = Place::new();
    let plugin = ".config/opencode/plugins/countersign.js";
    place.write(plugin, "export const Mine = async () => ({})\n");
    place.refused(&["install", "opencode", "--yes"]);
    place.refused(&["uninstall", "opencode", "--yes"]);
    assert_eq!(place.read(plugin), "export const Mine = async () => ({})\n");
    fs::remove_file(place.path(plugin)).unwrap();
    place.ok(&["install", "opencode", "--yes"]);
    let line = place.read(plugin).lines().find(|line| line.starts_with("const COMMAND")).unwrap().to_owned();
    let expected = format!(
        r#""hook","opencode","--home","{}","--mode","relay","--host-timeout","600"]"#,
        place.path(".local/share/countersign").display()
    );
    assert!(line.contains(&expected), "{line}");
}

#[test]
fn what_a_package_runner_has_fetched_is_not_written_into_settings() {
    let place = Place::new();
    let fetched = place.path(".npm/_npx/1f3a/node_modules/@countersign/linux-x64/bin/countersign");
    let installed = place.path("lib/node_modules/@countersign/linux-x64/bin/countersign");
    for program in [&fetched, &installed] {
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_countersign"), program).unwrap();
    }
    let before = place.names(".");
    for arguments in [&["install", "claude", "--yes"][..], &["up"], &["keeper", "start"]] {
        let output = place.run_copy(&fetched, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(85), "{arguments:?}: {text}");
        assert!(text.contains("npx") && text.contains("npm install --global countersign"), "{text}");
    }
    assert_eq!(place.names("."), before);
    assert!(place.run_copy(&installed, &["install", "claude", "--yes"]).status.success());
    assert!(place.read(".claude/settings.json").contains(installed.to_str().unwrap()));
}
