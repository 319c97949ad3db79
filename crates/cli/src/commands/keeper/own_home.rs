//! Commands of the tool on what the keeper keeps for an account.

use std::{path::Path, process::Command};

use countersign_client::profile::HOME_VARIABLE;

/// What they get of the environment.
const PASSED: [&str; 5] = ["COLORTERM", "LANG", "LC_ALL", "NO_COLOR", "TERM"];

/// With the home of an account in the keeper's folder, and nothing else that could lead elsewhere.
pub(super) fn in_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    let passed = PASSED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .env_clear()
        .envs(passed)
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env(HOME_VARIABLE, home)
        .current_dir(home)
}
