//! The environment of a hook, which is not that of the tool that then runs: the shell's start-up files come in between.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use countersign_client::payload::{BoundFile, BoundRole, Effect, EnvironmentVariable, VariableContent};

use super::{Mac, bound, clear, is_ordinary, loading_effect};
use crate::examine::{
    file::{Examined, real},
    grammar::variables::loads_code,
};

/// What is bound of the environment of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookEnvironment {
    /// Every variable that does not change by itself, sorted by name.
    pub environment: Vec<EnvironmentVariable>,
    /// The files that shells read when they start, whether they are there or not.
    pub files: Vec<BoundFile>,
    /// That other code is loaded.
    pub effects: Vec<Effect>,
}

/// Names that change by themselves between two calls, and what they are.
const CHANGING: &[(&str, &str)] = &[
    ("AI_AGENT", "the host's name and version for programs that it runs"),
    ("CLAUDE_CODE_SESSION_ID", "a new one for each session"),
    ("CLAUDE_EFFORT", "a setting of the model, changed in between"),
    ("CLAUDE_PID", "a number of a process"),
    ("COLUMNS", "the size of the window"),
    ("DBUS_SESSION_BUS_ADDRESS", "a socket of this login"),
    ("GEMINI_PLANS_DIR", "a folder of the session"),
    ("GEMINI_SESSION_ID", "a new one for each session"),
    ("GPG_TTY", "the terminal"),
    ("LINES", "the size of the window"),
    ("OLDPWD", "the folder before; the call has its own"),
    ("PWD", "the folder; the call has its own"),
    ("SHLVL", "how many shells are around it"),
    ("SSH_CLIENT", "the port of this login"),
    ("SSH_CONNECTION", "the port of this login"),
    ("SSH_TTY", "the terminal"),
    ("WINDOWID", "the window"),
    ("_", "the last command"),
];

/// How such names begin, and what they are.
const CHANGING_BEGIN: &[(&str, &str)] =
    &[("CLAUDE_CODE_MESSAGING_", "a socket of this session"), ("TMUX", "the pane and its server")];

fn is_changing(name: &str) -> bool {
    CHANGING.iter().any(|(it, _)| *it == name)
        || CHANGING_BEGIN.iter().any(|(begin, _)| name.starts_with(begin))
}

/// Start-up files in the user's folder.
const STARTUP: &[&str] = &[".bash_profile", ".bashrc", ".profile", ".zprofile", ".zshenv", ".zshrc"];

/// Variables that name such a file.
const STARTUP_VARIABLES: &[&str] = &["BASH_ENV", "CLAUDE_ENV_FILE", "ENV"];

/// What is bound of the environment of a hook, in a folder. Values are in the clear only if they are ordinary or load code: a
/// person's environment has secrets under any name.
pub fn of_hook(all: &[(OsString, OsString)], cwd: &Path, mac: Mac<'_>) -> HookEnvironment {
    let mut found = HookEnvironment::default();
    for (name, value) in all {
        // A name that is no text is bound by its bytes, as one that is.
        let text = name.to_string_lossy().into_owned();
        if text.is_empty() || text.contains('=') || is_changing(&text) {
            continue;
        }
        let is_clear = name.to_str().is_some() && (is_ordinary(&text) || loads_code(&text));
        let variable = if is_clear {
            bound(&text, value, mac)
        } else {
            let bytes = [name.as_encoded_bytes(), b"\0", value.as_encoded_bytes()].concat();
            EnvironmentVariable { content: VariableContent::Mac(mac(&text, &bytes)), name: text.clone() }
        };
        if loads_code(&text) {
            found.effects.push(loading_effect(&text, clear(&variable).as_deref()));
        }
        found.environment.push(variable);
    }
    found.environment.sort_by(|one, next| one.name.cmp(&next.name));
    found.environment.dedup_by(|one, next| one.name == next.name);
    found.effects.sort_by(|one, next| one.detail.cmp(&next.detail));
    found.files = startup_files(all, cwd);
    found
}

fn startup_files(all: &[(OsString, OsString)], cwd: &Path) -> Vec<BoundFile> {
    let value = |wanted: &str| {
        let found = all.iter().find(|(name, _)| name == wanted).map(|(_, value)| PathBuf::from(value));
        found.filter(|path| !path.as_os_str().is_empty())
    };
    let homes = [value("HOME"), value("ZDOTDIR")];
    let in_homes = homes.iter().flatten().flat_map(|home| STARTUP.iter().map(move |name| home.join(name)));
    let named = STARTUP_VARIABLES.iter().filter_map(|name| value(name));
    let mut files: Vec<BoundFile> = Vec::new();
    for path in in_homes.chain(named).map(|path| cwd.join(path)) {
        let digest = Examined::read(&path).ok().map(|examined| examined.digest);
        let file = BoundFile { path: real(&path), role: BoundRole::Startup, digest };
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}
