//! Copilot CLI: a file of its own among the hooks, checked by what 1.0.102 did.

use std::path::PathBuf;

use super::{
    hook_entries::{Entries, Format},
    hook_line::HookLine,
    json_host,
    json_value::Json,
    places::Places,
    plan::{Event, Plan, Purpose, Wish},
};
use crate::{agent::host::Host, exit::Failure};

pub const FORMAT: Format = Format {
    host: Host::Copilot,
    has_comments: false,
    is_grouped: false,
    skeleton: "{\n  \"version\": 1\n}\n",
};

const EVENTS: [Event; 6] = [
    Event::new("preToolUse", None, Purpose::Decision),
    Event::new("permissionRequest", None, Purpose::Decision),
    Event::new("postToolUse", None, Purpose::News),
    Event::new("userPromptSubmitted", None, Purpose::News),
    Event::new("sessionStart", None, Purpose::News),
    Event::new("sessionEnd", None, Purpose::End),
];

pub fn file(places: &Places, is_managed: bool) -> PathBuf {
    match is_managed {
        true => places.managed.join("github-copilot/policy.d/countersign.json"),
        false => places.copilot.join("hooks/countersign.json"),
    }
}

pub fn entries(line: &HookLine) -> Entries {
    let handler = |event: Event| {
        let own = event.line(line);
        Json::Object(vec![
            ("type", Json::text("command")),
            ("bash", Json::text(event.text(line))),
            ("timeoutSec", Json::Number(own.host_timeout.as_secs())),
        ])
    };
    EVENTS.map(|event| (event.name, handler(event))).into()
}

pub fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    let path = file(places, wish.is_managed);
    plan.add(json_host::put(FORMAT, &path, &entries(&wish.line), wish.new_mode())?);
    Ok(plan)
}

pub fn uninstall(places: &Places, is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::take(FORMAT, &file(places, is_managed))?);
    Ok(plan)
}
