//! The versions of the hosts with which the hook was checked, and the version that is here.

use std::{process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use crate::agent::host::Host;

/// How long a host may take to say its version.
const LIMIT: Duration = Duration::from_secs(20);

/// The versions against which the hook was run, newest last.
pub fn checked(host: Host) -> &'static [&'static str] {
    match host {
        Host::Claude => &["2.1.197", "2.1.325"],
        Host::Codex => &["0.166.0"],
        Host::Gemini => &["0.61.0"],
        Host::Opencode => &["1.18.33"],
        Host::Copilot => &["1.0.102"],
    }
}

/// The version that the host on the search path says it has; `None` if it is not there or says nothing.
pub async fn found(host: Host) -> Option<String> {
    let mut command = Command::new(host.word());
    command
        .arg("--version")
        // Asking for the version must not change it.
        .env("DISABLE_AUTOUPDATER", "1")
        .env("COPILOT_AUTO_UPDATE", "false")
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
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

    #[test]
    fn every_host_was_checked() {
        assert!(Host::ALL.iter().all(|host| !checked(*host).is_empty()));
    }
}
