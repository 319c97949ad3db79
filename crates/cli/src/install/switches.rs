//! Settings of the hosts that switch a hook off, or that the hook relies on.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    claude, codex, gemini,
    inspection::Inspection,
    json_text::{Document, Step},
    places::Places,
    toml_text,
};
use crate::{
    agent::{host::Host, settings::Mode},
    finding::Finding,
};

/// What is wrong around a hook that is installed. `project` is the folder in which the agent works.
pub fn check(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    match inspection.host {
        Host::Claude => of_claude(places, inspection, project),
        Host::Codex => of_codex(places, inspection),
        Host::Gemini => of_gemini(places, inspection),
        Host::Opencode => of_opencode(places, inspection),
        Host::Copilot => of_copilot(places, inspection, project),
    }
}

fn off(host: Host, what: String, remedy: &str) -> Finding {
    Finding::problem(host.word(), what, format!("{} does not run the hook at all", host.name()), remedy)
}

/// The value behind some keys of a JSON file, comments or not. `None` if it can't be read: others say so.
fn setting(file: &Path, keys: &[&str]) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    let document = Document::parse(&text, true).ok()?;
    let path: Vec<Step> = keys.iter().map(|key| Step::Key((*key).to_owned())).collect();
    document.get(&path).map(|node| document.value(node))
}

fn is_true(file: &Path, key: &str) -> bool {
    setting(file, &[key]) == Some(Value::Bool(true))
}

/// Files in which one setting switches every hook off that administrators have not installed.
fn disabled(host: Host, inspection: &Inspection, files: &[&Path]) -> Vec<Finding> {
    let files = files.iter().filter(|file| !inspection.is_managed && is_true(file, "disableAllHooks"));
    files
        .map(|file| {
            off(
                host,
                format!("{} has `\"disableAllHooks\": true`", file.display()),
                "remove that setting, or install with --managed",
            )
        })
        .collect()
}

fn of_claude(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    let (user, managed) = (claude::file(places, false), claude::file(places, true));
    let (shared, local) =
        (project.join(".claude/settings.json"), project.join(".claude/settings.local.json"));
    let mut findings = disabled(Host::Claude, inspection, &[&user, &shared, &local, &managed]);
    if !inspection.is_managed && is_true(&managed, "allowManagedHooksOnly") {
        findings.push(off(
            Host::Claude,
            format!("{} allows only hooks that administrators have installed", managed.display()),
            "have it installed there: `countersign install claude --managed`",
        ));
    }
    findings
}

fn of_copilot(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    let user = [places.copilot.join("settings.json"), places.copilot.join("config.json")];
    let shared = project.join(".github/copilot/settings.json");
    let local = project.join(".github/copilot/settings.local.json");
    let files = [&inspection.file, &user[0], &user[1], &shared, &local].map(std::path::PathBuf::as_path);
    disabled(Host::Copilot, inspection, &files)
}

fn of_codex(places: &Places, inspection: &Inspection) -> Vec<Finding> {
    let table = |file: &Path| fs::read_to_string(file).ok().and_then(|text| toml_text::parse(&text).ok());
    let config_file = codex::config_file(places);
    let config = table(&config_file).unwrap_or_default();
    let mut findings = Vec::new();
    let feature = config.get("features").and_then(|features| features.get("hooks"));
    if feature.and_then(toml::Value::as_bool) == Some(false) {
        findings.push(off(
            Host::Codex,
            format!("{} has `hooks = false` under `[features]`", config_file.display()),
            "remove that line",
        ));
    }
    if inspection.is_managed {
        return findings;
    }
    let requirements = codex::requirements_file(places);
    let only_managed =
        table(&requirements).and_then(|table| table.get("allow_managed_hooks_only")?.as_bool());
    if only_managed == Some(true) {
        findings.push(off(
            Host::Codex,
            format!("{} allows only hooks that administrators have installed", requirements.display()),
            "have it installed there: `countersign install codex --managed`",
        ));
    }
    let hooks = fs::read_to_string(&inspection.file).unwrap_or_default();
    let trusts = codex::trusts(&inspection.file, &hooks).unwrap_or_default();
    let missing = trusts.iter().filter(|trust| !codex::is_trusted(&config, trust)).count();
    if missing > 0 {
        findings.push(Finding::problem(
            Host::Codex.word(),
            format!("Codex does not trust {missing} of {} hooks, or they are disabled", trusts.len()),
            "it goes on without them, and `codex exec` does not say so",
            "run `countersign install codex` again, or start `codex` and choose \"Trust\"",
        ));
    }
    findings
}

fn of_gemini(places: &Places, inspection: &Inspection) -> Vec<Finding> {
    let file = &inspection.file;
    let mut findings = Vec::new();
    if setting(file, &["hooksConfig", "enabled"]) == Some(Value::Bool(false)) {
        let what = format!("{} has `hooksConfig.enabled` set to false", file.display());
        findings.push(off(Host::Gemini, what, "remove that setting"));
    }
    for keys in [["hooksConfig", "disabled"], ["hooks", "disabled"]] {
        let names = setting(file, &keys).and_then(|names| names.as_array().cloned()).unwrap_or_default();
        let is_named = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            name == gemini::NAME || name.contains("countersign hook gemini")
        };
        if names.iter().any(is_named) {
            let what = format!("{} lists the hook in `{}`", file.display(), keys.join("."));
            findings.push(off(Host::Gemini, what, "take it out of that list"));
        }
    }
    let policy = gemini::policy_file(places);
    match fs::read_to_string(&policy) {
        Ok(text) if text == gemini::POLICY => {}
        Ok(_) => findings.push(Finding::problem(
            Host::Gemini.word(),
            format!("{} is not as it was installed", policy.display()),
            "Gemini CLI may ask twice, or not offer its tools",
            "run `countersign install gemini --mode gate` again",
        )),
        Err(_) => findings.push(Finding::problem(
            Host::Gemini.word(),
            format!("{} is missing", policy.display()),
            "Gemini CLI asks itself too, and without a terminal it does not offer its tools at all",
            "run `countersign install gemini --mode gate` again",
        )),
    }
    findings
}

fn of_opencode(places: &Places, inspection: &Inspection) -> Vec<Finding> {
    let files = ["opencode.json", "opencode.jsonc"].map(|name| places.opencode.join(name));
    let asks = |file: &Path| {
        setting(file, &["permission"]).is_some_and(|permission| permission.to_string().contains("\"ask\""))
    };
    if files.iter().any(|file| asks(file)) {
        return Vec::new();
    }
    let finding = Finding::problem(
        Host::Opencode.word(),
        format!("{} has no `permission` that is `ask`", files[0].display()),
        match inspection.mode() {
            Some(Mode::Relay) => "OpenCode asks about nothing, so there is nothing to relay",
            _ => "the plugin is the only line: if it can't be loaded, nothing is asked about",
        },
        "add `\"permission\": { \"bash\": \"ask\", \"edit\": \"ask\" }` there",
    );
    vec![if inspection.mode() == Some(Mode::Relay) { finding } else { finding.as_note() }]
}
