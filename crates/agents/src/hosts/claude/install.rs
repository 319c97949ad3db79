//! Claude Code: `settings.json`, checked by what 2.1.197 and 2.1.325 did.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    hook_line::{HookLine, host_name::HostName},
    hosts::spec::FixedFiles,
    install::{
        deciding_files::{
            Base::{Managed, Project, User},
            DecidingFile::{self, Many, One},
            Kind::{Hooks, Settings, Skills},
            OneFile, Pattern,
            Place::{Absolute, Anywhere, ManagedFolder, Named},
            User::{Doctor, Install, Switches},
        },
        hook_entries::{Entries, Format},
        inspect::{InspectedPlace, LimitMember},
        inspection::Inspection,
        json_host,
        places::{Places, there},
        plan::{Event, Plan, Purpose, Wish},
        switches::{disabled, is_true, off},
        variables,
    },
    tool::{
        exit::{Exit, Failure},
        finding::Finding,
    },
};

pub(super) const NAMES: HostName = HostName { word: "claude", name: "Claude Code" };

/// Its settings of the user, and those of administrators.
const USER: OneFile = OneFile::new(User, "settings.json", Settings, &[Switches, Install, Doctor]);
const MANAGED: OneFile =
    OneFile::new(Managed("claude-code"), "managed-settings.json", Settings, &[Switches, Install, Doctor]);

pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    One(USER),
    One(OneFile::new(Project(".claude"), "settings.json", Settings, &[Switches])),
    One(OneFile::new(Project(".claude"), "settings.local.json", Settings, &[Switches])),
    One(MANAGED),
    Many(Pattern::new(Named(".claude"), "settings*.json", Settings)),
    Many(Pattern::new(Named(".claude"), "plugins", Hooks)),
    Many(Pattern::new(Named(".claude"), "hooks", Hooks)),
    Many(Pattern::new(Named(".claude"), "skills", Skills)),
    Many(Pattern::new(Named(".claude"), "agents", Skills)),
    Many(Pattern::new(Named(".claude"), "commands", Skills)),
    Many(Pattern::new(Anywhere, ".mcp.json", Skills)),
    Many(Pattern::new(Anywhere, ".claude.json", Settings)),
    Many(Pattern::new(Anywhere, "managed-settings.json", Settings)),
    Many(Pattern::new(ManagedFolder("claude-code"), "*", Settings)),
    Many(Pattern::new(Absolute("/Library/Application Support/ClaudeCode"), "*", Settings)),
];

const FORMAT: Format =
    Format { host: NAMES, has_comments: false, is_grouped: true, skeleton: "{}\n", emptied: &[] };

/// What administrators install also empties the variables that make a program load other code, or a shell run a file: a
/// project's settings could set them for the hook, and only these settings win over a project's.
const MANAGED_FORMAT: Format =
    Format { emptied: &["LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV", "ENV"], ..FORMAT };

fn format(is_managed: bool) -> Format {
    if is_managed { MANAGED_FORMAT } else { FORMAT }
}

const EVENTS: [Event; 9] = [
    Event::new("PreToolUse", Some("*"), Purpose::Decision),
    Event::new("PermissionRequest", Some("*"), Purpose::Decision),
    Event::new("PostToolUse", Some("*"), Purpose::News),
    Event::new("PostToolUseFailure", Some("*"), Purpose::News),
    Event::new("UserPromptSubmit", None, Purpose::News),
    Event::new("SessionStart", None, Purpose::News),
    Event::new("SessionEnd", None, Purpose::End),
    Event::new("Stop", None, Purpose::News),
    Event::new("Notification", None, Purpose::News),
];

pub(super) fn folder(places: &Places) -> PathBuf {
    places.variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| places.home.join(".claude"))
}

fn file(places: &Places, is_managed: bool) -> PathBuf {
    let file = if is_managed { MANAGED } else { USER };
    file.path(&folder(places), places, Path::new(""))
}

fn entries(line: &HookLine) -> Entries {
    EVENTS.map(|event| (event.name, event.group(event.handler(line)))).into()
}

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    let path = file(places, wish.is_managed);
    let format = format(wish.is_managed);
    let change = json_host::put(format, &path, &entries(&wish.line), wish.new_mode())?;
    if !change.after.as_deref().is_some_and(|text| format.empties_all(text)) {
        plan.note(format!(
            "{} sets some of {} itself: make all of them empty there, or a project can set them for the hook.",
            path.display(),
            format.emptied.join(", ")
        ));
    }
    plan.add(change);
    plan.note("Claude Code reads this when a session starts: sessions that run already go on without it.");
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::take(format(is_managed), &file(places, is_managed))?);
    Ok(plan)
}

/// Where it keeps settings that an organisation sends from a server. They count in place of those of administrators, whoever has
/// written the file.
const FROM_SERVER: &str = "remote-settings.json";

/// What holds in a sandbox: our hook alone, and the host's own sandbox for its tools, whatever its users' settings say. The same
/// stands where settings from a server would be.
pub(super) fn contained(places: &Places, line: &HookLine) -> Result<FixedFiles, Failure> {
    let path = file(places, true);
    let failed = |why: String| {
        Failure::new(Exit::Failed, format!("{} can't be used: {why}", path.display()))
            .next("repair it, and try again")
    };
    let before = there(&path).map_err(|error| failed(error.to_string()))?;
    let text = MANAGED_FORMAT
        .put(before.as_deref(), &entries(line))
        .map_err(|problem| failed(format!("in line {}, {}", problem.line, problem.what)))?;
    let mut settings: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    for name in MANAGED_FORMAT.emptied {
        settings["env"][name] = json!("");
    }
    settings["allowManagedHooksOnly"] = json!(true);
    settings["disableAllHooks"] = json!(false);
    if !settings["sandbox"].is_object() {
        settings["sandbox"] = json!({});
    }
    settings["sandbox"]["enabled"] = json!(true);
    settings["sandbox"]["failIfUnavailable"] = json!(true);
    settings["sandbox"]["allowUnsandboxedCommands"] = json!(false);
    // Without the variables that would move it: in the sandbox it has none of them.
    let from_server = places.home.join(".claude").join(FROM_SERVER);
    if there(&from_server).is_ok_and(|text| text.is_none_or(|text| text.trim().is_empty())) {
        return Ok(vec![(path, settings.to_string()), (from_server, settings.to_string())]);
    }
    let what = format!(
        "{} has settings from a server, which would count in place of the hook",
        from_server.display()
    );
    Err(Failure::new(Exit::NotSetUp, what).next(
        "if nobody sends your organisation's settings to Claude Code, remove that file; else have the hook added there, \
         and run Claude Code in a container",
    ))
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let limit = LimitMember { key: "timeout", units_per_second: 1 };
    let place = |is_managed| InspectedPlace { host: NAMES, is_managed, file: file(places, is_managed) };
    [false, true].into_iter().filter_map(|managed| place(managed).json(FORMAT, entries, limit)).collect()
}

pub(super) fn switches(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    let managed = file(places, true);
    let mut findings = disabled(inspection, DECIDING_FILES, &folder(places), places, project);
    findings.extend(variables::in_settings(NAMES, DECIDING_FILES, &folder(places), places, project));
    if !inspection.is_managed && is_true(&managed, "allowManagedHooksOnly") {
        findings.push(off(
            NAMES,
            format!("{} allows only hooks that administrators have installed", managed.display()),
            "have it installed there: `countersign install claude --managed`",
        ));
    }
    findings
}
