//! Gemini CLI: `settings.json` and a policy that belongs to it, checked by what 0.61.0 did.
//!
//! A hook of Gemini can forbid and never allow, so its own question stays whatever a person has answered elsewhere. As a
//! gate it works with a policy that lets Gemini stop asking: without the hook that policy would be an open door, so it is
//! written after the hook and removed before it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use crate::{
    hook_line::{HookLine, host_name::HostName, mode::Mode},
    install::{
        deciding_files::{
            Base::User,
            DecidingFile::{self, Many, One},
            Kind::{Hooks, Rules, Settings, Skills},
            OneFile, Pattern,
            Place::{ManagedFolder, Named},
            User::{Doctor, Install, Switches},
        },
        hook_entries::{Entries, Format},
        inspect::{InspectedPlace, LimitMember},
        inspection::Inspection,
        json_host,
        json_value::Json,
        own_file,
        places::Places,
        plan::{Event, Plan, Purpose, Wish},
        switches::{off, setting},
        variables,
    },
    tool::{
        exit::{Exit, Failure},
        finding::Finding,
    },
};

pub(super) const NAMES: HostName = HostName { word: "gemini", name: "Gemini CLI" };

const SETTINGS: OneFile = OneFile::new(User, "settings.json", Settings, &[Switches, Install, Doctor]);
const OWN_POLICY: OneFile =
    OneFile::new(User, "policies/countersign.toml", Rules, &[Switches, Install, Doctor]);

pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    One(SETTINGS),
    One(OWN_POLICY),
    Many(Pattern::new(Named(".gemini"), "settings.json", Settings)),
    Many(Pattern::new(Named(".gemini"), "policies", Rules)),
    Many(Pattern::new(Named(".gemini"), "hooks", Hooks)),
    Many(Pattern::new(Named(".gemini"), "extensions", Hooks)),
    Many(Pattern::new(Named(".gemini"), ".env", Settings)),
    Many(Pattern::new(Named(".gemini"), "commands", Skills)),
    Many(Pattern::new(ManagedFolder("gemini-cli"), "*", Settings)),
];

const FORMAT: Format =
    Format { host: NAMES, has_comments: true, is_grouped: true, skeleton: "{}\n", emptied: &[] };

/// The name by which `hooksConfig.disabled` could switch the hook off.
const NAME: &str = "countersign";

const EVENTS: [Event; 7] = [
    Event::new("BeforeTool", Some("*"), Purpose::Decision),
    Event::new("AfterTool", Some("*"), Purpose::News),
    Event::new("BeforeAgent", None, Purpose::News),
    Event::new("AfterAgent", None, Purpose::News),
    Event::new("SessionStart", None, Purpose::News),
    Event::new("SessionEnd", None, Purpose::End),
    Event::new("Notification", None, Purpose::News),
];

const POLICY: &str = "\
# Written by `countersign install gemini --mode gate`, and removed by `countersign uninstall gemini`.
# Gemini CLI does not ask about these tools itself, because the hook in settings.json decides every call.
# Without that hook nobody would be asked at all: never keep one of the two without the other.
[[rule]]
toolName = [\"run_shell_command\", \"write_file\", \"replace\"]
decision = \"allow\"
priority = 100
allowRedirection = true
";

pub(super) fn folder(places: &Places) -> PathBuf {
    places.variable("GEMINI_CLI_HOME").unwrap_or_else(|| places.home.clone()).join(".gemini")
}

fn file(places: &Places) -> PathBuf {
    SETTINGS.path(&folder(places), places, Path::new(""))
}

fn policy_file(places: &Places) -> PathBuf {
    OWN_POLICY.path(&folder(places), places, Path::new(""))
}

fn entries(line: &HookLine) -> Entries {
    let handler = |event: Event| {
        let own = event.line(line);
        vec![
            ("type", Json::text("command")),
            ("name", Json::text(NAME)),
            ("command", Json::text(event.text(line))),
            ("timeout", Json::Number(milliseconds(own.host_timeout))),
        ]
    };
    EVENTS.map(|event| (event.name, event.group(handler(event)))).into()
}

/// The unit of this host alone.
fn milliseconds(duration: Duration) -> u64 {
    duration.as_secs() * 1_000
}

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    if wish.is_managed {
        return Err(Failure::new(
            Exit::Failed,
            "for Gemini CLI there is no managed installation yet; nothing was changed",
        )
        .next("install it for this user, without --managed"));
    }
    if wish.line.mode == Mode::Relay {
        return Err(Failure::new(
            Exit::Usage,
            "Gemini CLI can't be relayed: its hooks can forbid a call but not allow one, so its own question would stay; nothing was changed",
        )
        .next("use --mode gate, which asks a person about every call that no rule or grant covers"));
    }
    let mut plan = Plan::default();
    plan.add(json_host::put(FORMAT, &file(places), &entries(&wish.line), wish.new_mode())?);
    plan.add(own_file::put(&policy_file(places), POLICY.to_owned(), wish.new_mode())?);
    plan.note(
        "Gemini CLI stops asking about shell commands and edits itself: the hook decides each of them.",
    );
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, _is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(own_file::take(&policy_file(places))?);
    plan.add(json_host::take(FORMAT, &file(places))?);
    Ok(plan)
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let place = InspectedPlace { host: NAMES, is_managed: false, file: file(places) };
    let limit = LimitMember { key: "timeout", units_per_second: 1_000 };
    place.json(FORMAT, entries, limit).into_iter().collect()
}

/// The policy without the hook that it relies on.
pub(super) fn orphaned_policy(places: &Places, found: &[Inspection]) -> Option<Inspection> {
    let file = policy_file(places);
    let is_orphaned = found.iter().all(|place| place.hooks.is_empty()) && file.exists();
    is_orphaned.then(|| {
        let finding = Finding::problem(
            NAMES.word,
            format!(
                "{} lets Gemini CLI run commands without asking, and the hook is not installed",
                file.display()
            ),
            "nobody is asked about anything",
            "run `countersign install gemini --mode gate`, or `countersign uninstall gemini`",
        );
        Inspection { host: NAMES, is_managed: false, file, hooks: Vec::new(), findings: vec![finding] }
    })
}

pub(super) fn switches(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    let file = &inspection.file;
    let files = [folder(places).join(".env"), project.join(".gemini/.env"), project.join(".env")];
    let mut findings: Vec<Finding> =
        files.iter().filter_map(|file| variables::in_dot_env(NAMES, file)).collect();
    if setting(file, &["hooksConfig", "enabled"]) == Some(Value::Bool(false)) {
        let what = format!("{} has `hooksConfig.enabled` set to false", file.display());
        findings.push(off(NAMES, what, "remove that setting"));
    }
    for keys in [["hooksConfig", "disabled"], ["hooks", "disabled"]] {
        let names = setting(file, &keys).and_then(|names| names.as_array().cloned()).unwrap_or_default();
        let is_named = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            name == NAME || name.contains("countersign hook gemini")
        };
        if names.iter().any(is_named) {
            let what = format!("{} lists the hook in `{}`", file.display(), keys.join("."));
            findings.push(off(NAMES, what, "take it out of that list"));
        }
    }
    let policy = policy_file(places);
    match fs::read_to_string(&policy) {
        Ok(text) if text == POLICY => {}
        Ok(_) => findings.push(Finding::problem(
            NAMES.word,
            format!("{} is not as it was installed", policy.display()),
            "Gemini CLI may ask twice, or not offer its tools",
            "run `countersign install gemini --mode gate` again",
        )),
        Err(_) => findings.push(Finding::problem(
            NAMES.word,
            format!("{} is missing", policy.display()),
            "Gemini CLI asks itself too, and without a terminal it does not offer its tools at all",
            "run `countersign install gemini --mode gate` again",
        )),
    }
    findings
}
