//! The process of the gateway, where the system has no services for users.

use std::{
    fs, io,
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::StatusLine,
};
use countersign_client::{http::Http, profile::GatewayUrl};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

/// How long a gateway may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether a gateway is ready there.
pub(super) async fn answers(url: &GatewayUrl) -> bool {
    reason_not_to_answer(url).await.is_none()
}

/// Why no gateway is ready there; `None` if one is.
pub(super) async fn reason_not_to_answer(url: &GatewayUrl) -> Option<String> {
    let checked = async { Http::new(url.clone(), None)?.check().await };
    checked.await.err().map(|error| error.to_string())
}

/// Starts it in the background, with a log beside its configuration.
pub(super) fn spawn(binary: &Path, config: &Path, log: &Path) -> io::Result<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let child = Command::new(binary)
        .args(["serve", "--config"])
        .arg(config)
        .current_dir(config.parent().unwrap_or(Path::new("/")))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Not in the terminal's group: Ctrl-C in the terminal is not for it.
        .process_group(0)
        .spawn()?;
    fs::write(pid_file(config), child.id().to_string())?;
    Ok(child)
}

fn pid_file(config: &Path) -> PathBuf {
    config.with_file_name("pid")
}

/// Waits until it is ready. `reason` says where to look if it never is.
pub(super) async fn wait_until_ready(
    url: &GatewayUrl,
    mut child: Option<Child>,
    reason: &str,
) -> Result<(), Failure> {
    let mut line = StatusLine::default();
    let until = Instant::now() + PATIENCE;
    while !answers(url).await {
        line.show("  starting the gateway …");
        let has_ended =
            child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|ended| ended.is_some()));
        if has_ended || Instant::now() > until {
            line.clear();
            return Err(Failure::new(Exit::Unreachable, "the gateway does not start").next(reason));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Stops it; false if it was not running.
pub(super) async fn stop(config: &Path) -> Result<bool, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failed, format!("the gateway can't be stopped: {error}"))
    };
    let pid = fs::read_to_string(pid_file(config)).ok().and_then(|text| text.trim().parse().ok());
    let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| is_ours(*pid, config)) else {
        return Ok(false);
    };
    kill_process(pid, Signal::TERM).map_err(|error| failed(&error))?;
    let mut line = StatusLine::default();
    let until = Instant::now() + PATIENCE;
    while is_ours(pid, config) {
        line.show("  stopping the gateway …");
        if Instant::now() > until {
            return Err(failed(&format!("process {} does not end", pid.as_raw_nonzero())));
        }
        sleep(Duration::from_millis(50)).await;
    }
    fs::remove_file(pid_file(config)).map_err(|error| failed(&error))?;
    Ok(true)
}

/// Whether a process is our gateway, and not another one that has its number now.
fn is_ours(pid: Pid, config: &Path) -> bool {
    let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let config = config.display().to_string();
    command.split(|byte| *byte == 0).any(|word| word == config.as_bytes())
}
