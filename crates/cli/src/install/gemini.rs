//! Gemini CLI: `settings.json` and a policy that belongs to it, checked by what 0.61.0 did.
//!
//! A hook of Gemini can forbid and never allow, so its own question stays whatever a person has answered elsewhere. As a
//! gate it works with a policy that lets Gemini stop asking: without the hook that policy would be an open door, so it is
//! written after the hook and removed before it.

use std::{path::PathBuf, time::Duration};

use super::{
    hook_entries::{Entries, Format},
    hook_line::HookLine,
    json_host,
    json_value::Json,
    own_file,
    places::Places,
    plan::{Event, Plan, Purpose, Wish},
};
use crate::{
    agent::{host::Host, settings::Mode},
    exit::{Exit, Failure},
};

pub const FORMAT: Format =
    Format { host: Host::Gemini, has_comments: true, is_grouped: true, skeleton: "{}\n" };

/// The name by which `hooksConfig.disabled` could switch the hook off.
pub const NAME: &str = "countersign";

const EVENTS: [Event; 6] = [
    Event::new("BeforeTool", Some("*"), Purpose::Decision),
    Event::new("BeforeAgent", None, Purpose::News),
    Event::new("AfterAgent", None, Purpose::News),
    Event::new("SessionStart", None, Purpose::News),
    Event::new("SessionEnd", None, Purpose::End),
    Event::new("Notification", None, Purpose::News),
];

pub const POLICY: &str = "\
# Written by `countersign install gemini --mode gate`, and removed by `countersign uninstall gemini`.
# Gemini CLI does not ask about these tools itself, because the hook in settings.json decides every call.
# Without that hook nobody would be asked at all: never keep one of the two without the other.
[[rule]]
toolName = [\"run_shell_command\", \"write_file\", \"replace\"]
decision = \"allow\"
priority = 100
allowRedirection = true
";

pub fn file(places: &Places) -> PathBuf {
    places.gemini.join("settings.json")
}

pub fn policy_file(places: &Places) -> PathBuf {
    places.gemini.join("policies/countersign.toml")
}

pub fn entries(line: &HookLine) -> Entries {
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

pub fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
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

pub fn uninstall(places: &Places) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(own_file::take(&policy_file(places))?);
    plan.add(json_host::take(FORMAT, &file(places))?);
    Ok(plan)
}
