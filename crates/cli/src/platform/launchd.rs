//! Services of the user, managed by launchd: they start when the user logs in.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use countersign_agents::tool::exit::{Exit, Failure};

use super::plist;

const LAUNCHCTL: &str = "/bin/launchctl";

/// What was just taken away may still be going when it is put back.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);

/// A service of the user.
#[derive(Debug)]
pub(crate) struct LaunchAgent {
    label: String,
    /// The user's session with windows, which a login over the network does not have.
    domain: String,
    file: PathBuf,
    log: PathBuf,
}

impl LaunchAgent {
    /// `None` where there are none, such as in a login over the network. `folder` is for its log.
    pub(crate) fn of_user(name: &str, folder: &Path) -> Option<Self> {
        let domain = format!("gui/{}", rustix::process::getuid().as_raw());
        launchctl(&["print", &domain]).ok()?;
        let label = plist::label(name);
        let home = PathBuf::from(env::var_os("HOME")?);
        let file = home.join("Library/LaunchAgents").join(format!("{label}.plist"));
        Some(Self { label, domain, file, log: folder.join("log") })
    }

    /// Whether the service was ever started.
    pub(crate) fn is_installed(&self) -> bool {
        self.file.exists()
    }

    /// Where the reason is, if it does not start.
    pub(crate) fn reason(&self) -> String {
        format!("its reason is at the end of {}", self.log.display())
    }

    /// Writes the service and starts it, now and at every login.
    #[expect(clippy::disallowed_methods, reason = "launchd does not say when it is ready for it again")]
    pub(crate) fn start(&self, _description: &str, command: &[OsString]) -> Result<(), Failure> {
        let failed =
            |error| Failure::new(Exit::Failed, format!("{} can't be written: {error}", self.file.display()));
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&self.file, plist::text(&self.label, command, &self.log)).map_err(failed)?;
        self.unload()?;
        launchctl(&["enable", &self.target()])?;
        let file = self.file.to_string_lossy();
        let load = || launchctl(&["bootstrap", &self.domain, &file]);
        let mut loaded = load();
        for _ in 0..TRIES {
            if loaded.is_ok() {
                break;
            }
            thread::sleep(PAUSE);
            loaded = load();
        }
        loaded
    }

    /// Stops it and removes the service, so that it does not start at the next login.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        self.unload()?;
        let removed = fs::remove_file(&self.file);
        removed.map_err(|error| Failure::new(Exit::Failed, format!("{} stays: {error}", self.file.display())))
    }

    fn unload(&self) -> Result<(), Failure> {
        match launchctl(&["print", &self.target()]) {
            Ok(()) => launchctl(&["bootout", &self.target()]),
            Err(_) => Ok(()),
        }
    }

    fn target(&self) -> String {
        format!("{}/{}", self.domain, self.label)
    }
}

fn launchctl(arguments: &[&str]) -> Result<(), Failure> {
    match Command::new(LAUNCHCTL).args(arguments).stdin(Stdio::null()).output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(Output { stderr, .. }) => {
            let reason = String::from_utf8_lossy(&stderr).trim().to_owned();
            Err(Failure::new(Exit::Failed, format!("launchctl {} failed: {reason}", arguments.join(" "))))
        }
        Err(error) => Err(Failure::new(Exit::Failed, format!("launchctl can't be run: {error}"))),
    }
}
