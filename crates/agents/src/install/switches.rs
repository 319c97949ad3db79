//! Reads settings of hosts that switch a hook off.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    deciding_files::{DecidingFile, User},
    inspection::Inspection,
    json_text::{Document, Step},
    places::Places,
};
use crate::{hook_line::host_name::HostName, tool::finding::Finding};

/// The hook is switched off.
pub fn off(host: HostName, what: String, remedy: &str) -> Finding {
    Finding::problem(host.word, what, format!("{} does not run the hook at all", host.name), remedy)
}

/// The value behind some keys of a JSON file, comments or not. `None` if it can't be read: others say so.
pub fn setting(file: &Path, keys: &[&str]) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    let document = Document::parse(&text, true).ok()?;
    let path: Vec<Step> = keys.iter().map(|key| Step::Key((*key).to_owned())).collect();
    document.get(&path).map(|node| document.value(node))
}

/// Whether a member of the root is true.
pub fn is_true(file: &Path, key: &str) -> bool {
    setting(file, &[key]) == Some(Value::Bool(true))
}

/// Where `"disableAllHooks": true` in any file that the table lists switches every hook off that administrators have not
/// installed.
pub fn disabled(
    inspection: &Inspection,
    files: &[DecidingFile],
    folder: &Path,
    places: &Places,
    project: &Path,
) -> Vec<Finding> {
    let files = files.iter().filter_map(DecidingFile::one);
    let files = files.filter(|file| file.is_used_by(User::Switches) && !inspection.is_managed);
    let paths = files.map(|file| file.path(folder, places, project));
    let found = paths.filter(|path| is_true(path, "disableAllHooks"));
    found
        .map(|path| {
            off(
                inspection.host,
                format!("{} has `\"disableAllHooks\": true`", path.display()),
                "remove that setting, or install with --managed",
            )
        })
        .collect()
}
