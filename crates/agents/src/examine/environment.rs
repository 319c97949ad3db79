//! The environment of a command: what it gets, what is bound, and what people see of it.

pub mod hook;
pub mod last;

#[cfg(test)]
mod tests;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use countersign_client::payload::{Effect, EffectKind, EnvironmentVariable, Variable, VariableContent};
use countersign_wire::hash::Sha256Hex;

use super::{effects, grammar::variables::loads_code};
use crate::tool::files;

/// Names and values, as the system has them.
pub type Variables = Vec<(OsString, OsString)>;

/// Stands for a value that must not be shown: a keyed hash of name and value.
pub type Mac<'a> = &'a dyn Fn(&str, &[u8]) -> Sha256Hex;

/// What a command gets from `exec`, whatever it is.
const ALWAYS: &[&str] = &[
    "COLORTERM",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// What it gets too, and of which it only counts whether it is set: the value changes with every window and login.
const AS_SET: &[&str] = &["COLUMNS", "LINES", "SSH_AUTH_SOCK"];

/// What is bound of those.
const SET: &str = "set";

/// Dropped without a word: shells and this tool set them for themselves.
const OF_SHELLS: &[&str] = &["OLDPWD", "PWD", "SHLVL", "_"];

/// How the names begin that people miss first.
const MISSED: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "no_proxy",
    "CARGO_",
    "RUSTUP_",
    "NVM_",
    "PYENV_",
    "VIRTUAL_ENV",
    "CONDA_",
    "JAVA_HOME",
    "GO",
    "KUBECONFIG",
    "AWS_",
    "GOOGLE_",
    "AZURE_",
    "DOCKER_",
    "SSL_CERT_",
    "GH_",
    "GITHUB_",
    "NODE_",
    "NPM_",
    "DATABASE_",
    "CI",
    "PYTHON",
    "EDITOR",
    "DISPLAY",
];

/// Whether a variable is ordinary: it says who, where and how to show things, and its value is no secret.
fn is_ordinary(name: &str) -> bool {
    ALWAYS.contains(&name) || name.starts_with("LC_")
}

/// The environment of a command of `exec`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// All that the command gets.
    pub passed: Variables,
    /// What is bound and part of the grant key, sorted by name.
    pub bound: Vec<EnvironmentVariable>,
    /// What people see first: what loads code, then what was asked for.
    pub shown: Vec<Variable>,
    /// That other code is loaded.
    pub effects: Vec<Effect>,
    /// The names of what it does not get, those that people miss first.
    pub dropped: Vec<String>,
}

/// The environment that `exec` gives a command. `asked` names variables besides those that are always passed.
pub fn of_exec(
    all: &[(OsString, OsString)],
    asked: &[String],
    cwd: &Path,
    repository: Option<&Path>,
    mac: Mac<'_>,
) -> Environment {
    let mut environment = Environment::default();
    let mut seen: Vec<(String, Option<String>)> = Vec::new();
    for (name, value) in all {
        let Some(text) = name.to_str() else { continue };
        let is_asked = asked.iter().any(|it| it == text);
        if !is_asked && AS_SET.contains(&text) {
            environment.passed.push((name.clone(), value.clone()));
            let content = VariableContent::Value(SET.to_owned());
            environment.bound.push(EnvironmentVariable { name: text.to_owned(), content });
        } else if is_asked || is_ordinary(text) {
            let value = if text == "PATH" { search_path(value, repository) } else { value.clone() };
            let bound = bound(text, &value, mac);
            if is_asked {
                seen.push((text.to_owned(), clear(&bound)));
            }
            environment.passed.push((name.clone(), value));
            environment.bound.push(bound);
        } else if !OF_SHELLS.contains(&text) && !text.starts_with("COUNTERSIGN_") {
            environment.dropped.push(text.to_owned());
        }
    }
    environment.passed.retain(|(name, _)| name != "PWD");
    environment.passed.push(("PWD".into(), cwd.into()));
    environment.bound.sort_by(|one, next| one.name.cmp(&next.name));
    environment.bound.dedup_by(|one, next| one.name == next.name);
    seen.sort_by_key(|(name, _)| (!loads_code(name), name.clone()));
    let loading = seen.iter().filter(|(name, _)| loads_code(name));
    environment.effects = loading.map(|(name, value)| loading_effect(name, value.as_deref())).collect();
    environment.shown = seen.into_iter().map(|(name, value)| Variable { name, value }).collect();
    let is_missed = |name: &str| MISSED.iter().any(|begin| name.starts_with(begin));
    environment.dropped.sort_by_key(|name| (!is_missed(name), name.clone()));
    environment
}

/// How many names of dropped variables are said.
const MAX_SAID: usize = 5;

impl Environment {
    /// What to say about variables that the command does not get; `None` if it gets all.
    pub fn note(&self) -> Option<String> {
        let (first, _) = self.dropped.split_at(self.dropped.len().min(MAX_SAID));
        let more = match self.dropped.len() - first.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let names = first.join(", ");
        (!first.is_empty())
            .then(|| format!("  not passed to the command: {names}{more} (--env NAME passes one)"))
    }
}

fn loading_effect(name: &str, value: Option<&str>) -> Effect {
    let detail = value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"));
    Effect::on(EffectKind::LoadsCode, detail)
}

/// A variable by its value, or by what stands for it if that is a secret or no text.
fn bound(name: &str, value: &OsStr, mac: Mac<'_>) -> EnvironmentVariable {
    let content = match value.to_str() {
        Some(text) if !is_secret(name, text) => VariableContent::Value(text.to_owned()),
        _ => VariableContent::Mac(mac(name, value.as_encoded_bytes())),
    };
    EnvironmentVariable { name: name.to_owned(), content }
}

fn clear(variable: &EnvironmentVariable) -> Option<String> {
    match &variable.content {
        VariableContent::Value(value) => Some(value.clone()),
        VariableContent::Mac(_) => None,
    }
}

/// Whether a value is better not shown: its name says so, or it is an address with a password.
fn is_secret(name: &str, value: &str) -> bool {
    let has_password = |rest: &str| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    };
    effects::names_a_secret(name) || value.split("://").skip(1).any(has_password)
}

/// Where programs are looked for: folders that exist, by their whole paths, and none that the repository could fill.
fn search_path(value: &OsStr, repository: Option<&Path>) -> OsString {
    let root = repository.map(|root| files::canonicalize(root).unwrap_or_else(|_| root.to_owned()));
    let is_kept = |folder: &std::path::PathBuf| {
        let Ok(real) = files::canonicalize(folder) else { return false };
        let is_inside = root.as_ref().is_some_and(|root| real.starts_with(root) || folder.starts_with(root));
        folder.is_absolute() && files::is_dir(&real) && !is_inside
    };
    env::join_paths(env::split_paths(value).filter(is_kept)).unwrap_or_default()
}

/// The variables of this process that load code, as people see them.
pub fn variables() -> Vec<Variable> {
    let mut found: Vec<Variable> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| loads_code(name))
        .map(|(name, value)| {
            let value = value.into_string().ok().filter(|value| !is_secret(&name, value));
            Variable { name, value }
        })
        .collect();
    found.sort_by(|one, next| one.name.cmp(&next.name));
    found
}
