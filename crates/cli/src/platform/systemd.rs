//! Services of the user, where the system has them: they start when the user logs in.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use countersign_agents::tool::exit::{Exit, Failure};

/// A service of the user, managed by systemd.
#[derive(Debug)]
pub(crate) struct Systemd {
    service: String,
    unit: PathBuf,
}

impl Systemd {
    /// `None` where there are none, such as in a container.
    pub(crate) fn of_user(name: &str, _folder: &Path) -> Option<Self> {
        let state = Command::new("systemctl")
            .args(["--user", "is-system-running"])
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let is_running = matches!(state.stdout.trim_ascii(), b"running" | b"degraded" | b"starting");
        let folder = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")))?;
        let service = format!("{name}.service");
        is_running.then(|| Self { unit: folder.join("systemd/user").join(&service), service })
    }

    /// Whether the service was ever started.
    pub(crate) fn is_installed(&self) -> bool {
        self.unit.exists()
    }

    /// Where the reason is, if it does not start.
    pub(crate) fn reason(&self) -> String {
        format!("`journalctl --user -u {}` has its reason", self.service.trim_end_matches(".service"))
    }

    /// Writes the service and starts it, now and at every login.
    pub(crate) fn start(&self, description: &str, command: &[OsString]) -> Result<(), Failure> {
        let failed =
            |error| Failure::new(Exit::Failed, format!("{} can't be written: {error}", self.unit.display()));
        if let Some(folder) = self.unit.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&self.unit, unit(description, command)).map_err(failed)?;
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", &self.service])?;
        systemctl(&["restart", &self.service])
    }

    /// Stops it and removes the service, so that it does not start at the next login.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        systemctl(&["disable", "--now", &self.service])?;
        let removed = fs::remove_file(&self.unit);
        removed.map_err(|error| Failure::new(Exit::Failed, format!("{} stays: {error}", self.unit.display())))
    }
}

/// The text of the service.
fn unit(description: &str, command: &[OsString]) -> String {
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    format!(
        "[Unit]\nDescription={description}\n\n\
         [Service]\nExecStart={}\nRestart=on-failure\n\n\
         [Install]\nWantedBy=default.target\n",
        command.join(" ")
    )
}

/// One word, whatever it contains.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$"))
}

fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    let ran = Command::new("systemctl").arg("--user").args(arguments).stdin(Stdio::null()).output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failure::new(
                Exit::Failed,
                format!("systemctl --user {} failed: {reason}", arguments.join(" ")),
            ))
        }
        Err(error) => Err(Failure::new(Exit::Failed, format!("systemctl can't be run: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_each() {
        let text = unit("x", &["/opt/a b/gw", "serve", "/home/x/100%/$y\"z"].map(OsString::from));
        assert!(text.contains("ExecStart=\"/opt/a b/gw\" \"serve\" \"/home/x/100%%/$$y\\\"z\"\n"), "{text}");
    }
}
