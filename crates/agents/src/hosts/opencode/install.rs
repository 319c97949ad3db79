//! OpenCode: a plugin, checked by what 1.18.33 did.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::adapter;
use crate::{
    hook_line::{HookLine, host_name::HostName, mode::Mode},
    hosts::spec::FixedFiles,
    install::{
        deciding_files::{
            Base::User,
            DecidingFile::{self, Many, One},
            Kind::{Hooks, Settings},
            OneFile, Pattern,
            Place::{Anywhere, ManagedFolder, Named},
            User::{Doctor, Install, Switches},
        },
        inspect::InspectedPlace,
        inspection::{Inspection, InstalledHook},
        json_value::Json,
        own_file,
        places::{Places, there},
        plan::{Plan, Wish},
        switches::setting,
    },
    tool::{
        exit::{Exit, Failure},
        finding::Finding,
    },
};

pub(super) const NAMES: HostName = HostName { word: "opencode", name: "OpenCode" };

const PLUGIN: OneFile = OneFile::new(User, "plugins/countersign.js", Hooks, &[Install, Doctor]);
const CONFIG: OneFile = OneFile::new(User, "opencode.json", Settings, &[Switches]);
const CONFIG_WITH_COMMENTS: OneFile = OneFile::new(User, "opencode.jsonc", Settings, &[Switches]);

pub(super) const DECIDING_FILES: &[DecidingFile] = &[
    One(PLUGIN),
    One(CONFIG),
    One(CONFIG_WITH_COMMENTS),
    Many(Pattern::new(Named(".opencode"), "*", Settings)),
    Many(Pattern::new(Named(".config/opencode"), "*", Settings)),
    Many(Pattern::new(Anywhere, "opencode.json", Settings)),
    Many(Pattern::new(Anywhere, "opencode.jsonc", Settings)),
    Many(Pattern::new(ManagedFolder("opencode"), "*", Settings)),
];

const SOURCE: &str = include_str!("plugin.js");

/// What stands in the source for the command line.
const PLACEHOLDER: &str = "[\"countersign\"]";

/// How the line with the command begins.
const COMMAND: &str = "const COMMAND = ";

pub(super) fn folder(places: &Places) -> PathBuf {
    places.variable("OPENCODE_CONFIG_DIR").unwrap_or_else(|| places.config.join("opencode"))
}

fn file(places: &Places) -> PathBuf {
    PLUGIN.path(&folder(places), places, Path::new(""))
}

/// The plugin for a command line.
fn content(line: &HookLine) -> String {
    let words = Json::List(line.words().into_iter().map(Json::Text).collect());
    SOURCE.replacen(PLACEHOLDER, &words.to_value().to_string(), 1)
}

/// The command line in a plugin. `None` if there is none in it that we would have written.
fn line_in(text: &str) -> Option<HookLine> {
    let line = text.lines().find_map(|line| line.strip_prefix(COMMAND))?;
    HookLine::from_words(&serde_json::from_str::<Vec<String>>(line).ok()?, NAMES)
}

pub(super) fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    if wish.is_managed {
        return Err(Failure::new(
            Exit::Failed,
            "OpenCode has no place for plugins that its users can't change; nothing was changed",
        )
        .next("install it for this user, without --managed"));
    }
    let mut plan = Plan::default();
    plan.add(own_file::put(&file(places), content(&wish.line), wish.new_mode())?);
    plan.note(
        "OpenCode goes on without a plugin that it can't load, and `opencode --pure` loads none. Set `permission` to `ask` in opencode.json as a second line: docs/agents/install.md has the lines.",
    );
    Ok(plan)
}

pub(super) fn uninstall(places: &Places, _is_managed: bool) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(own_file::take(&file(places))?);
    Ok(plan)
}

/// What holds in a sandbox: our plugin, from the folder of administrators, whose settings win over all others.
pub(super) fn contained(places: &Places, line: &HookLine) -> Result<FixedFiles, Failure> {
    let folder = places.managed.join("opencode");
    let (path, plugin) = (folder.join("opencode.json"), folder.join("countersign.js"));
    let failed = |why: String| {
        Failure::new(Exit::Failed, format!("{} can't be used: {why}", path.display()))
            .next("repair it, and try again")
    };
    let text = there(&path).map_err(|error| failed(error.to_string()))?;
    let mut config: Value = match text.as_deref().map(serde_json::from_str).transpose() {
        Ok(config) => config.unwrap_or_else(|| json!({})),
        Err(error) => return Err(failed(error.to_string())),
    };
    let named = json!(format!("file://{}", plugin.display()));
    match config["plugin"].as_array_mut() {
        Some(plugins) => plugins.push(named),
        None => config["plugin"] = json!([named]),
    }
    Ok(vec![(path, config.to_string()), (plugin, content(line))])
}

pub(super) fn inspect(places: &Places) -> Vec<Inspection> {
    let place = InspectedPlace { host: NAMES, is_managed: false, file: file(places) };
    inspect_plugin(&place).into_iter().collect()
}

fn inspect_plugin(place: &InspectedPlace) -> Option<Inspection> {
    let text = match place.text()? {
        Ok(text) => text,
        Err(inspection) => return Some(inspection),
    };
    let line = line_in(&text);
    let mut findings = Vec::new();
    match &line {
        Some(line) if content(line) == text => findings.extend(place.program(line)),
        _ => findings.push(place.changed("the plugin")),
    }
    findings.extend(place.others());
    let limit = line.as_ref().map(|line| line.host_timeout);
    let hook = InstalledHook { event: adapter::EVERY_CALL.to_owned(), line, limit };
    Some(place.inspection(vec![hook], findings))
}

pub(super) fn switches(places: &Places, inspection: &Inspection, project: &Path) -> Vec<Finding> {
    let path = |file: OneFile| file.path(&folder(places), places, project);
    let files = [CONFIG, CONFIG_WITH_COMMENTS].map(path);
    let asks = |file: &Path| {
        setting(file, &["permission"]).is_some_and(|permission| permission.to_string().contains("\"ask\""))
    };
    if files.iter().any(|file| asks(file)) {
        return Vec::new();
    }
    let finding = Finding::problem(
        NAMES.word,
        format!("{} has no `permission` that is `ask`", files[0].display()),
        match inspection.mode() {
            Some(Mode::Relay) => "OpenCode asks about nothing, so there is nothing to relay",
            _ => "the plugin is the only line: if it can't be loaded, nothing is asked about",
        },
        "add `\"permission\": { \"bash\": \"ask\", \"edit\": \"ask\" }` there",
    );
    vec![if inspection.mode() == Some(Mode::Relay) { finding } else { finding.as_note() }]
}
