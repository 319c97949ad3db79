//! The settings of Quill.

use std::path::{Path, PathBuf};

use countersign_agents::{
    hook_line::{HookLine, host_name::HostName},
    install::{
        deciding_files::{Base, DecidingFile, Kind, OneFile, Pattern, Place, User},
        hook_entries::{Entries, Format},
        inspect::{InspectedPlace, LimitMember},
        inspection::Inspection,
        json_host,
        places::Places,
        plan::{Event, Plan, Purpose, Wish},
        switches::{is_true, off},
    },
    tool::{exit::Failure, finding::Finding},
};

use super::adapter::EVERY_CALL;

pub(super) const NAMES: HostName = HostName { word: "quill", name: "Quill" };

const SETTINGS: OneFile =
    OneFile::new(Base::User, "settings.json", Kind::Settings, &[User::Switches, User::Install, User::Doctor]);

pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    DecidingFile::One(SETTINGS),
    DecidingFile::Many(Pattern::new(Place::Named(".quill"), "*", Kind::Settings)),
];

const FORMAT: Format =
    Format { host: NAMES, has_comments: false, is_grouped: true, skeleton: "{}\n", emptied: &[] };

pub(super) fn folder(places: &Places) -> PathBuf {
    places.variable("QUILL_HOME").unwrap_or_else(|| places.home.join(".quill"))
}

fn file(places: &Places) -> PathBuf {
    SETTINGS.path(&folder(places), places, Path::new(""))
}

fn entries(line: &HookLine) -> Entries {
    let event = Event::new(EVERY_CALL, Some("*"), Purpose::Decision);
    vec![(event.name, event.group(event.handler(line)))]
}

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::put(FORMAT, &file(places), &entries(&wish.line), wish.new_mode())?);
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, _is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(json_host::take(FORMAT, &file(places))?);
    Ok(plan)
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let place = InspectedPlace { host: NAMES, is_managed: false, file: file(places) };
    place.json(FORMAT, entries, LimitMember { key: "timeout", units_per_second: 1 }).into_iter().collect()
}

pub(super) fn switches(_places: &Places, inspection: &Inspection, _project: &Path) -> Vec<Finding> {
    match is_true(&inspection.file, "quiet") {
        true => vec![off(NAMES, format!("{} is quiet", inspection.file.display()), "remove that setting")],
        false => Vec::new(),
    }
}
