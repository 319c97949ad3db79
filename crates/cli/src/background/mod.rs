//! A program of ours that runs without a terminal: as a service of the user where the system has them, else as a process.

mod process;

use std::{ffi::OsString, io, path::PathBuf, time::Duration};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::StatusLine,
};
use tokio::time::{Instant, sleep};

use crate::platform::Service;

/// How long a program may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program that runs in the background.
#[derive(Debug)]
pub struct Background {
    /// What people call it.
    pub name: &'static str,
    /// Its name as a service.
    pub service: &'static str,
    /// The program and its arguments. The last one tells it from others of the same program.
    pub command: Vec<OsString>,
    /// Its folder, with its log and its number.
    pub folder: PathBuf,
    /// Whether it may be a service of the user: there is one of a name, so only for the usual folder.
    pub may_be_service: bool,
}

impl Background {
    /// Starts it, and waits until it is ready.
    pub async fn start(&self, ready: impl AsyncFn() -> bool) -> Result<(), Failure> {
        let (mut child, reason) = if let Some(service) = self.service() {
            service.start(&format!("Countersign {}", self.name), &self.command)?;
            (None, service.reason())
        } else {
            let log = self.folder.join("log");
            let child =
                process::spawn(&self.command, &self.folder, &log).map_err(|error| self.unusable(&error))?;
            (Some(child), format!("its reason is at the end of {}", log.display()))
        };
        let mut line = StatusLine::default();
        let until = Instant::now() + PATIENCE;
        while !ready().await {
            line.show(&format!("  starting the {} …", self.name));
            let has_ended =
                child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|ended| ended.is_some()));
            if has_ended || Instant::now() > until {
                line.clear();
                let what = format!("the {} does not start", self.name);
                return Err(Failure::new(Exit::Unreachable, what).next(reason));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Stops it; false if it was not running.
    pub async fn stop(&self, is_running: impl AsyncFn() -> bool) -> Result<bool, Failure> {
        if let Some(service) = self.service().filter(Service::is_installed) {
            let was_running = is_running().await;
            service.stop()?;
            return Ok(was_running);
        }
        let Some(process) = process::Running::find(&self.folder, self.command.last()) else {
            return Ok(false);
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format!("the {} can't be stopped: {error}", self.name))
        };
        process.terminate().map_err(|error| failed(&error))?;
        let mut line = StatusLine::default();
        let until = Instant::now() + PATIENCE;
        while process.lives() {
            line.show(&format!("  stopping the {} …", self.name));
            if Instant::now() > until {
                return Err(failed(&format!("process {process} does not end")));
            }
            sleep(Duration::from_millis(50)).await;
        }
        process.forget().map_err(|error| failed(&error))?;
        Ok(true)
    }

    fn service(&self) -> Option<Service> {
        if self.may_be_service { Service::of_user(self.service, &self.folder) } else { None }
    }

    fn unusable(&self, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format!("{} can't be used: {error}", self.folder.display()))
    }
}
