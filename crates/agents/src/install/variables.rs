//! Settings that carry variables into a hook: with them a project could make the hook load other code, or use other rules.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    deciding_files::{Base, DecidingFile, User},
    places::Places,
    switches::setting,
};
use crate::{hook_line::host_name::HostName, tool::finding::Finding};

/// Beginnings of names: of the dynamic linker's variables, and of our own.
const PREFIXES: &[&str] = &["LD_", "DYLD_", "COUNTERSIGN_"];

/// Variables that name a file to run first, or where programs are.
const NAMES: &[&str] = &["BASH_ENV", "ENV", "PATH", "NODE_OPTIONS"];

/// Problems with `env` in the settings of user and project, which hosts pass on to hooks.
pub fn in_settings(
    host: HostName,
    files: &[DecidingFile],
    folder: &Path,
    places: &Places,
    project: &Path,
) -> Vec<Finding> {
    let files = files.iter().filter_map(DecidingFile::one);
    let files =
        files.filter(|file| file.is_used_by(User::Switches) && !matches!(file.base, Base::Managed(_)));
    let found = files.filter_map(|file| {
        let path = file.path(folder, places, project);
        let variables = setting(&path, &["env"])?;
        let variables = variables.as_object()?.iter();
        let names = variables.filter(|(name, value)| is_dangerous(name, value.as_str() == Some("")));
        finding(host, &path, &names.map(|(name, _): (&String, &Value)| name.as_str()).collect::<Vec<_>>())
    });
    found.collect()
}

/// A problem with a file of lines `NAME=value`, which some hosts read when they start.
pub fn in_dot_env(host: HostName, file: &Path) -> Option<Finding> {
    let text = fs::read_to_string(file).ok()?;
    let lines = text.lines().filter_map(|line| line.trim().trim_start_matches("export ").split_once('='));
    let names = lines.filter(|(name, value)| is_dangerous(name.trim(), value.trim().is_empty()));
    finding(host, file, &names.map(|(name, _)| name.trim()).collect::<Vec<_>>())
}

/// An empty value loads nothing; an empty search path or folder still means another one.
fn is_dangerous(name: &str, is_empty: bool) -> bool {
    let is_ours = name == "PATH" || name.starts_with("COUNTERSIGN_");
    let is_listed = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_listed && (is_ours || !is_empty)
}

fn finding(host: HostName, file: &Path, names: &[&str]) -> Option<Finding> {
    (!names.is_empty()).then(|| {
        Finding::problem(
            host.word,
            format!("{} sets {}", file.display(), names.join(", ")),
            format!("{} gives it to the hook, which may then load other code or use other rules", host.name),
            "remove it there, and find out who has put it there",
        )
    })
}
