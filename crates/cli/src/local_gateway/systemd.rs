//! The gateway as a service of the user, where the system has them: it starts when the user logs in.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use countersign_agents::tool::exit::{Exit, Failure};

const SERVICE: &str = "countersign-gateway.service";

/// The services of the user, managed by systemd.
#[derive(Debug)]
pub(super) struct Systemd {
    unit: PathBuf,
}

impl Systemd {
    /// `None` where there are none, such as in a container.
    pub(super) fn of_user() -> Option<Self> {
        let state = Command::new("systemctl")
            .args(["--user", "is-system-running"])
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let is_running = matches!(state.stdout.trim_ascii(), b"running" | b"degraded" | b"starting");
        let folder = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")))?;
        is_running.then(|| Self { unit: folder.join("systemd/user").join(SERVICE) })
    }

    /// Whether the service was ever started.
    pub(super) fn is_installed(&self) -> bool {
        self.unit.exists()
    }

    /// Writes the service and starts it, now and at every login.
    pub(super) fn start(&self, binary: &Path, config: &Path) -> Result<(), Failure> {
        let failed =
            |error| Failure::new(Exit::Failed, format!("{} can't be written: {error}", self.unit.display()));
        if let Some(folder) = self.unit.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&self.unit, unit(binary, config)).map_err(failed)?;
        systemctl(&["daemon-reload"])?;
        systemctl(&["enable", SERVICE])?;
        systemctl(&["restart", SERVICE])
    }

    /// Stops it and removes the service, so that it does not start at the next login.
    pub(super) fn stop(self) -> Result<(), Failure> {
        systemctl(&["disable", "--now", SERVICE])?;
        let removed = fs::remove_file(&self.unit);
        removed.map_err(|error| Failure::new(Exit::Failed, format!("{} stays: {error}", self.unit.display())))
    }
}

/// The text of the service.
fn unit(binary: &Path, config: &Path) -> String {
    format!(
        "[Unit]\nDescription=Countersign gateway\n\n\
         [Service]\nExecStart={} serve --config {}\nRestart=on-failure\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted(binary),
        quoted(config)
    )
}

/// A path as one word, whatever it contains.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
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
        let text = unit(Path::new("/opt/a b/gw"), Path::new("/home/x/100%/$y\"z"));
        assert!(
            text.contains("ExecStart=\"/opt/a b/gw\" serve --config \"/home/x/100%%/$$y\\\"z\"\n"),
            "{text}"
        );
    }
}
