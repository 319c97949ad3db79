//! Claude Code: `settings.json`, checked by what 2.1.197 and 2.1.325 did.

use std::path::PathBuf;

use super::{
    hook_entries::{Entries, Format},
    hook_line::HookLine,
    json_host,
    places::Places,
    plan::{Event, Plan, Purpose, Wish},
};
use crate::{agent::host::Host, exit::Failure};

pub const FORMAT: Format =
    Format { host: Host::Claude, has_comments: false, is_grouped: true, skeleton: "{}\n" };

const EVENTS: [Event; 8] = [
    Event::new("PreToolUse", Some("*"), Purpose::Decision),
    Event::new("PermissionRequest", Some("*"), Purpose::Decision),
    Event::new("PostToolUse", Some("*"), Purpose::News),
    Event::new("UserPromptSubmit", None, Purpose::News),
    Event::new("SessionStart", None, Purpose::News),
    Event::new("SessionEnd", None, Purpose::End),
    Event::new("Stop", None, Purpose::News),
    Event::new("Notification", None, Purpose::News),
];

pub fn file(places: &Places, is_managed: bool) -> PathBuf {
    match is_managed {
        true => places.managed.join("claude-code/managed-settings.json"),
        false => places.claude.join("settings.json"),
    }
}

pub fn entries(line: &HookLine) -> Entries {
    EVENTS.map(|event| (event.name, event.group(event.handler(line)))).into()
}

pub fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    let path = file(places, wish.is_managed);
    plan.add(json_host::put(FORMAT, &path, &entries(&wish.line), wish.new_mode())?);
    plan.note("Claude Code reads this when a session starts: sessions that run already go on without it.");
    Ok(plan)
}

pub fn uninstall(places: &Places, is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::take(FORMAT, &file(places, is_managed))?);
    Ok(plan)
}
