//! Copilot CLI: a file of its own among the hooks, checked by what 1.0.102 did.

use std::path::{Path, PathBuf};

use crate::{
    hook_line::{HookLine, host_name::HostName},
    install::{
        deciding_files::{
            Base::{Managed, Project, User},
            DecidingFile::{self, Many, One},
            Kind::{Hooks, Settings, Skills},
            OneFile, Pattern,
            Place::{Anywhere, ManagedFolder, Named},
            User::{Doctor, Install, Switches},
        },
        hook_entries::{Entries, Format},
        inspect::{InspectedPlace, LimitMember},
        inspection::Inspection,
        json_host,
        json_value::Json,
        places::Places,
        plan::{Event, Plan, Purpose, Wish},
        switches::disabled,
    },
    tool::{exit::Failure, finding::Finding},
};

pub(super) const NAMES: HostName = HostName { word: "copilot", name: "Copilot CLI" };

/// Our own file of the user, and that of administrators.
const USER: OneFile = OneFile::new(User, "hooks/countersign.json", Hooks, &[Switches, Install, Doctor]);
const MANAGED: OneFile =
    OneFile::new(Managed("github-copilot/policy.d"), "countersign.json", Hooks, &[Install, Doctor]);

// CONTRIBUTING: add an agent host, step 4
pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    One(USER),
    One(OneFile::new(User, "settings.json", Settings, &[Switches])),
    One(OneFile::new(User, "config.json", Settings, &[Switches])),
    One(OneFile::new(Project(".github/copilot"), "settings.json", Settings, &[Switches])),
    One(OneFile::new(Project(".github/copilot"), "settings.local.json", Settings, &[Switches])),
    One(MANAGED),
    Many(Pattern::new(Named(".copilot"), "*", Settings)),
    Many(Pattern::new(Named(".github/hooks"), "*", Hooks)),
    Many(Pattern::new(Named(".github/copilot"), "settings*.json", Settings)),
    Many(Pattern::new(Named(".github/agents"), "*", Skills)),
    Many(Pattern::new(Named(".github/skills"), "*", Skills)),
    Many(Pattern::new(Anywhere, "managed-hooks.json", Hooks)),
    Many(Pattern::new(ManagedFolder("copilot"), "*", Settings)),
    Many(Pattern::new(ManagedFolder("github-copilot"), "*", Settings)),
];

const FORMAT: Format = Format {
    host: NAMES,
    has_comments: false,
    is_grouped: false,
    skeleton: "{\n  \"version\": 1\n}\n",
    emptied: &[],
};

const EVENTS: [Event; 8] = [
    Event::new("preToolUse", None, Purpose::Decision),
    Event::new("permissionRequest", None, Purpose::Decision),
    Event::new("postToolUse", None, Purpose::News),
    Event::new("userPromptSubmitted", None, Purpose::News),
    Event::new("sessionStart", None, Purpose::News),
    Event::new("sessionEnd", None, Purpose::End),
    Event::new("agentStop", None, Purpose::News),
    Event::new("notification", None, Purpose::News),
];

pub(super) fn folder(places: &Places) -> PathBuf {
    places.variable("COPILOT_HOME").unwrap_or_else(|| places.home.join(".copilot"))
}

fn file(places: &Places, is_managed: bool) -> PathBuf {
    let file = if is_managed { MANAGED } else { USER };
    file.path(&folder(places), places, Path::new(""))
}

fn entries(line: &HookLine) -> Entries {
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

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    let path = file(places, wish.is_managed);
    plan.add(json_host::put(FORMAT, &path, &entries(&wish.line), wish.new_mode())?);
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::take(FORMAT, &file(places, is_managed))?);
    Ok(plan)
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let limit = LimitMember { key: "timeoutSec", units_per_second: 1 };
    let place = |is_managed| InspectedPlace { host: NAMES, is_managed, file: file(places, is_managed) };
    [false, true].into_iter().filter_map(|managed| place(managed).json(FORMAT, entries, limit)).collect()
}

pub(super) fn switches(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    disabled(inspection, DECIDING_FILES, &folder(places), places, project)
}
