//! OpenCode: a plugin, checked by what 1.18.33 did.

use std::path::PathBuf;

use super::{
    hook_line::HookLine,
    json_value::Json,
    own_file,
    places::Places,
    plan::{Plan, Wish},
};
use crate::exit::{Exit, Failure};

const SOURCE: &str = include_str!("../agent/hosts/opencode_plugin.js");

/// What stands in the source for the command line.
const PLACEHOLDER: &str = "[\"countersign\"]";

/// How the line with the command begins.
const COMMAND: &str = "const COMMAND = ";

pub fn file(places: &Places) -> PathBuf {
    places.opencode.join("plugins/countersign.js")
}

/// The plugin for a command line.
pub fn content(line: &HookLine) -> String {
    let words = Json::List(line.words().into_iter().map(Json::Text).collect());
    SOURCE.replacen(PLACEHOLDER, &words.to_value().to_string(), 1)
}

/// The command line in a plugin. `None` if there is none in it that we would have written.
pub fn line_in(text: &str) -> Option<HookLine> {
    let line = text.lines().find_map(|line| line.strip_prefix(COMMAND))?;
    HookLine::from_words(&serde_json::from_str::<Vec<String>>(line).ok()?)
}

pub fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
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

pub fn uninstall(places: &Places) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    plan.add(own_file::take(&file(places))?);
    Ok(plan)
}
