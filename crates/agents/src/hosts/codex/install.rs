//! Codex CLI: `hooks.json` with the trust that it needs, or `requirements.toml`, checked by what 0.166.0 did.
//!
//! Codex runs a hook of a user only if the user has trusted exactly this definition; otherwise it goes on without it, and
//! `codex exec` says nothing. The trust is the hash of the definition, kept in `config.toml` under the place of the hook.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_wire::hash::Sha256Hex;
use serde_json::Value;

use crate::{
    hook_line::{HookLine, host_name::HostName, words_of},
    hosts::spec::FixedFiles,
    install::{
        deciding_files::{
            Base::{Managed, User},
            DecidingFile::{self, Many, One},
            Kind::{Hooks, Settings, Skills},
            OneFile, Pattern,
            Place::{ManagedFolder, Named},
            User::{Doctor, Install, Switches},
        },
        hook_entries::{Entries, Format, Found},
        inspect::{InspectedPlace, LimitMember},
        inspection::{Inspection, InstalledHook, decides},
        json_host,
        json_scan::Problem,
        json_value::Json,
        places::{Places, there},
        plan::{Event, Plan, Purpose, Wish},
        settings_file::{Change, SettingsFile},
        switches::off,
        toml_text::{self, Section},
    },
    tool::{
        exit::{Exit, Failure},
        finding::Finding,
    },
};

pub(super) const NAMES: HostName = HostName { word: "codex", name: "Codex CLI" };

const HOOKS: OneFile = OneFile::new(User, "hooks.json", Hooks, &[Install, Doctor, Switches]);
const CONFIG: OneFile = OneFile::new(User, "config.toml", Settings, &[Switches, Install]);
const REQUIREMENTS: OneFile =
    OneFile::new(Managed("codex"), "requirements.toml", Settings, &[Switches, Install, Doctor]);

pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    One(HOOKS),
    One(CONFIG),
    One(REQUIREMENTS),
    Many(Pattern::new(Named(".codex"), "*", Settings)),
    Many(Pattern::new(Named(".agents/skills"), "*", Skills)),
    Many(Pattern::new(ManagedFolder("codex"), "*", Settings)),
];

const FORMAT: Format =
    Format { host: NAMES, has_comments: false, is_grouped: true, skeleton: "{}\n", emptied: &[] };

const EVENTS: [Event; 7] = [
    Event::new("PreToolUse", Some("*"), Purpose::Decision),
    Event::new("PermissionRequest", Some("*"), Purpose::Decision),
    Event::new("PostToolUse", Some("*"), Purpose::News),
    Event::new("UserPromptSubmit", None, Purpose::News),
    Event::new("SessionStart", None, Purpose::News),
    Event::new("SessionEnd", None, Purpose::End),
    Event::new("Stop", None, Purpose::News),
];

/// Around our lines in `requirements.toml`.
const MARKS: [&str; 2] = [
    "# countersign: begin (`countersign uninstall codex --managed` removes these lines)",
    "# countersign: end",
];

/// A hook that Codex has to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trust {
    /// The place of the hook, `FILE:EVENT:GROUP:HANDLER`.
    key: String,
    /// The hash of its definition.
    hash: String,
}

pub(super) fn folder(places: &Places) -> PathBuf {
    // Codex keeps trust by this path, in which it resolves links only if it comes from its variable.
    let moved = places.variable("CODEX_HOME");
    moved.map_or_else(|| places.home.join(".codex"), |folder| folder.canonicalize().unwrap_or(folder))
}

fn path(file: OneFile, places: &Places) -> PathBuf {
    file.path(&folder(places), places, Path::new(""))
}

fn file(places: &Places) -> PathBuf {
    path(HOOKS, places)
}

fn config_file(places: &Places) -> PathBuf {
    path(CONFIG, places)
}

fn requirements_file(places: &Places) -> PathBuf {
    path(REQUIREMENTS, places)
}

fn entries(line: &HookLine) -> Entries {
    EVENTS.map(|event| (event.name, event.group(event.handler(line)))).into()
}

/// What has to be trusted of the hooks in a text, which is the content of `file`.
fn trusts(file: &Path, text: &str) -> Result<Vec<Trust>, Problem> {
    let found = FORMAT.find(text)?;
    let trust = |found: Found| {
        let event = snake_case(&found.event);
        let key = format!("{}:{event}:{}:{}", file.display(), found.index, found.handler_index);
        Trust { key, hash: hash(&event, &found.entry, &found.handler) }
    };
    Ok(found.into_iter().map(trust).collect())
}

/// SHA-256 of the definition as canonical JSON, with keys in order: what Codex computes of it, its defaults written out.
fn hash(event: &str, group: &Value, handler: &Value) -> String {
    let member =
        |of: &Value, key: &str| of.get(key).map(|value| format!(",\"{key}\":{value}")).unwrap_or_default();
    let identity = format!(
        "{{\"event_name\":\"{event}\",\"hooks\":[{{\"async\":false{}{}{},\"type\":\"command\"}}]{}}}",
        member(handler, "command"),
        member(handler, "statusMessage"),
        member(handler, "timeout"),
        member(group, "matcher"),
    );
    format!("sha256:{}", Sha256Hex::digest(identity.as_bytes()))
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for next in name.chars() {
        if next.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(next.to_ascii_lowercase());
    }
    text
}

fn header(key: &str) -> String {
    format!("[hooks.state.{}]", toml_text::quoted(key))
}

/// Whether `config.toml` trusts a hook, and does not disable it.
fn is_trusted(config: &toml::Table, trust: &Trust) -> bool {
    let state = config.get("hooks").and_then(|hooks| hooks.get("state")).and_then(|all| all.get(&trust.key));
    let hash = state.and_then(|state| state.get("trusted_hash")).and_then(toml::Value::as_str);
    let enabled = state.and_then(|state| state.get("enabled")).and_then(toml::Value::as_bool);
    hash == Some(&trust.hash) && enabled != Some(false)
}

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    if wish.is_managed {
        let file = SettingsFile::read(&requirements_file(places))?;
        let text = file.text().unwrap_or_default();
        let after = toml_text::put_block(text, MARKS, &block(&wish.line))
            .map_err(|problem| file.malformed(&problem))?;
        plan.add(Change { file, after: Some(after), new_mode: wish.new_mode() });
        return Ok(plan);
    }
    let hooks = json_host::put(FORMAT, &file(places), &entries(&wish.line), wish.new_mode())?;
    let text = hooks.after.clone().unwrap_or_default();
    let trusts = trusts(&file(places), &text).map_err(|problem| hooks.file.malformed(&problem))?;
    let sections: Vec<Section> = trusts
        .iter()
        .map(|trust| Section {
            header: header(&trust.key),
            lines: vec![format!("trusted_hash = {}", toml_text::quoted(&trust.hash))],
        })
        .collect();
    let config = SettingsFile::read(&config_file(places))?;
    let malformed = |problem| config.malformed(&problem);
    let after = toml_text::put(config.text().unwrap_or_default(), &sections).map_err(malformed)?;
    let read = toml_text::parse(&after).map_err(malformed)?;
    if !trusts.iter().all(|trust| is_trusted(&read, trust)) {
        let what = format!(
            "the trust that Codex needs can't be added to {}; nothing was changed",
            config_file(places).display()
        );
        return Err(Failure::new(Exit::Failed, what).next("remove its `hooks.state`, and try again"));
    }
    plan.add(hooks);
    plan.add(Change { file: config, after: Some(after), new_mode: wish.new_mode() });
    plan.note("By installing you also say that Codex may trust these hooks; it would ask at its next start.");
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    if is_managed {
        let file = SettingsFile::read(&requirements_file(places))?;
        if let Some(text) = file.text() {
            let after = toml_text::take_block(text, MARKS).map_err(|problem| file.malformed(&problem))?;
            plan.add(emptied(file, after));
        }
        return Ok(plan);
    }
    let hooks = SettingsFile::read(&file(places))?;
    let trusts = trusts(&file(places), hooks.text().unwrap_or_default())
        .map_err(|problem| hooks.malformed(&problem))?;
    let taken = json_host::take(FORMAT, &file(places))?;
    let config = SettingsFile::read(&config_file(places))?;
    if let Some(text) = config.text() {
        let headers: Vec<String> = trusts.iter().map(|trust| header(&trust.key)).collect();
        let after = toml_text::take(text, &headers).map_err(|problem| config.malformed(&problem))?;
        plan.add(emptied(config, after));
    }
    plan.add(taken);
    Ok(plan)
}

/// A file without anything left in it goes, unless a backup says that it was there before.
fn emptied(file: SettingsFile, after: String) -> Change {
    let is_new = after.is_empty() && file.text() != Some("") && file.backups().is_empty();
    Change { file, after: (!is_new).then_some(after), new_mode: 0o600 }
}

/// The hooks as Codex reads them from `requirements.toml`, where they need no trust.
fn block(line: &HookLine) -> String {
    let mut lines = Vec::new();
    for event in EVENTS {
        lines.push(format!("[[hooks.{}]]", event.name));
        lines.extend(event.matcher.map(|matcher| format!("matcher = {}", toml_text::quoted(matcher))));
        lines.push(format!("[[hooks.{}.hooks]]", event.name));
        for (key, value) in event.handler(line) {
            let value = match value {
                Json::Text(text) => toml_text::quoted(&text),
                other => other.to_string(),
            };
            lines.push(format!("{key} = {value}"));
        }
    }
    lines.join("\n") + "\n"
}

/// What holds in a sandbox: our hook alone, and the host's own sandbox for its tools, whatever its users' settings say.
pub(super) fn contained(places: &Places, line: &HookLine) -> Result<FixedFiles, Failure> {
    let path = requirements_file(places);
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format!("{} can't be used: {why}", path.display()))
            .next("repair it, and try again")
    };
    let text = there(&path).map_err(|error| failed(&error))?.unwrap_or_default();
    let unmarked = toml_text::take_block(&text, MARKS).map_err(|problem| failed(&problem.what))?;
    let mut requirements: toml::Table = unmarked.parse().map_err(|error: toml::de::Error| failed(&error))?;
    let ours: toml::Table = block(line).parse().map_err(|error: toml::de::Error| failed(&error))?;
    requirements.extend(ours);
    requirements.insert("allow_managed_hooks_only".to_owned(), true.into());
    let modes = ["read-only", "workspace-write"].map(toml::Value::from);
    requirements.insert("allowed_sandbox_modes".to_owned(), toml::Value::Array(modes.into()));
    let features = requirements.entry("features").or_insert_with(|| toml::Table::new().into());
    if let Some(features) = features.as_table_mut() {
        features.insert("hooks".to_owned(), true.into());
    }
    let text = toml::to_string(&requirements).map_err(|error| failed(&error))?;
    // What it keeps of settings from a server. Nothing that counts, and nothing that anybody could put there.
    let from_server = places.home.join(".codex/cloud-config-bundle-cache.json");
    Ok(vec![(path, text), (from_server, "{}".to_owned())])
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let place = |is_managed, file| InspectedPlace { host: NAMES, is_managed, file };
    let limit = LimitMember { key: "timeout", units_per_second: 1 };
    let found = [
        place(false, file(places)).json(FORMAT, entries, limit),
        inspect_requirements(&place(true, requirements_file(places))),
    ];
    found.into_iter().flatten().collect()
}

/// The marked part of `requirements.toml`.
fn inspect_requirements(place: &InspectedPlace) -> Option<Inspection> {
    let text = match place.text()? {
        Ok(text) => text,
        Err(inspection) => return Some(inspection),
    };
    if let Err(problem) = toml_text::parse(&text) {
        return Some(place.broken(problem.line, &problem.what));
    }
    let marked = match toml_text::find_block(&text, MARKS) {
        Ok(found) => found.map(|(start, end)| &text[start..end])?,
        Err(problem) => return Some(place.broken(problem.line, &problem.what)),
    };
    let lines: Vec<&str> = marked.lines().collect();
    let body = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default().join("\n") + "\n";
    let hooks: Vec<InstalledHook> = toml_text::parse(marked)
        .ok()
        .and_then(|table| table.get("hooks")?.as_table().cloned())
        .into_iter()
        .flatten()
        .map(|(event, groups)| requirement(event, &groups))
        .collect();
    let mut findings = Vec::new();
    match decides(&hooks) {
        Some(line) if block(line) != body => findings.push(place.changed("the marked part")),
        Some(line) => findings.extend(place.program(line)),
        None => findings.push(place.changed("the marked part")),
    }
    findings.extend(place.others());
    Some(place.inspection(hooks, findings))
}

/// A hook in `requirements.toml`.
fn requirement(event: String, groups: &toml::Value) -> InstalledHook {
    let handler = groups.get(0).and_then(|group| group.get("hooks")?.get(0));
    let value = handler.and_then(|handler| handler.clone().try_into::<Value>().ok()).unwrap_or_default();
    let seconds = value.get("timeout").and_then(Value::as_u64);
    InstalledHook {
        event,
        line: words_of(&value).and_then(|words| HookLine::from_words(&words, NAMES)),
        limit: seconds.map(Duration::from_secs),
    }
}

pub(super) fn switches(places: &Places, inspection: &Inspection, _project: &Path) -> Vec<Finding> {
    let table = |file: &Path| fs::read_to_string(file).ok().and_then(|text| toml_text::parse(&text).ok());
    let config_file = config_file(places);
    let config = table(&config_file).unwrap_or_default();
    let mut findings = Vec::new();
    let feature = config.get("features").and_then(|features| features.get("hooks"));
    if feature.and_then(toml::Value::as_bool) == Some(false) {
        findings.push(off(
            NAMES,
            format!("{} has `hooks = false` under `[features]`", config_file.display()),
            "remove that line",
        ));
    }
    if inspection.is_managed {
        return findings;
    }
    let requirements = requirements_file(places);
    let only_managed =
        table(&requirements).and_then(|table| table.get("allow_managed_hooks_only")?.as_bool());
    if only_managed == Some(true) {
        findings.push(off(
            NAMES,
            format!("{} allows only hooks that administrators have installed", requirements.display()),
            "have it installed there: `countersign install codex --managed`",
        ));
    }
    let hooks = fs::read_to_string(&inspection.file).unwrap_or_default();
    let trusts = trusts(&inspection.file, &hooks).unwrap_or_default();
    let missing = trusts.iter().filter(|trust| !is_trusted(&config, trust)).count();
    if missing > 0 {
        findings.push(Finding::problem(
            NAMES.word,
            format!("Codex does not trust {missing} of {} hooks, or they are disabled", trusts.len()),
            "it goes on without them, and `codex exec` does not say so",
            "run `countersign install codex` again, or start `codex` and choose \"Trust\"",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook_line::{mode::Mode, place::Place};

    /// The hashes are what Codex CLI 0.166.0 answered to `hooks/list` for this file.
    #[test]
    fn trust_is_computed_as_codex_computes_it() {
        let line = |timeout: u64| {
            format!("/usr/local/bin/countersign hook codex --mode relay --host-timeout {timeout}")
        };
        let text = json!({ "hooks": {
            "PreToolUse": [{ "matcher": "*", "hooks": [{ "type": "command", "command": line(600), "timeout": 600,
                "statusMessage": "Waiting for approver" }] }],
            "SessionEnd": [{ "hooks": [{ "type": "command", "command": line(3), "timeout": 3 }] }],
        }});
        let expected = [
            ("pre_tool_use:0:0", "sha256:d3aca44b659e82f63fceb7b465371e8a7e20dca8a979e0076948a6e01a4df9dd"),
            ("session_end:0:0", "sha256:13a097e374b345d9415af7c7aa17eff03aec6883385a4c0c7a8588dd52b2e91b"),
        ];
        let found = trusts(Path::new("/x/hooks.json"), &text.to_string()).unwrap();
        let expected =
            expected.map(|(key, hash)| Trust { key: format!("/x/hooks.json:{key}"), hash: hash.to_owned() });
        assert_eq!(found, expected);
    }

    #[test]
    fn the_block_for_administrators_says_what_hooks_json_says() {
        let line = HookLine {
            program: "/opt/a \"b\"/countersign".to_owned(),
            host: NAMES,
            place: Place::default(),
            keeper: None,
            mode: Mode::Gate,
            host_timeout: Duration::from_mins(10),
        };
        let block: Value = toml_text::parse(&block(&line)).unwrap().try_into().unwrap();
        let text = FORMAT.put(None, &entries(&line)).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(block, json);
    }
}
