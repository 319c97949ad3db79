//! The version of a host that is on this machine.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use crate::hosts::Host;

/// How long a host may take to say its version.
const LIMIT: Duration = Duration::from_secs(20);

/// The version that this program of a host says it has; `None` if it says nothing. It is started in an empty folder: hosts
/// read the settings of the folder in which they start, and some run what those name.
pub async fn found(host: Host, program: &Path) -> Option<String> {
    let folder = tempfile::tempdir().ok()?;
    let mut command = Command::new(program);
    command
        .arg("--version")
        .current_dir(folder.path())
        // Asking for the version must not change it.
        .envs(host.without_updates.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(LIMIT, command.output()).await.ok()?.ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout))
}

/// The first word that looks like a version, such as `2.1.325` in `2.1.325 (Claude Code)`.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let mut parts = word.split('.');
        let is_number = |part: Option<&str>| {
            part.is_some_and(|part| part.starts_with(|first: char| first.is_ascii_digit()))
        };
        is_number(parts.next()) && is_number(parts.next()) && is_number(parts.next())
    };
    let mut words =
        text.split_whitespace().map(|word| word.trim_start_matches('v').trim_end_matches(['.', ',']));
    words.find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_hosts_print() {
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0", Some("0.166.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun copilot update", Some("1.0.102")),
            ("v0.61.0-nightly.1", Some("0.61.0-nightly.1")),
            ("error in line 1.5", None),
            ("", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
