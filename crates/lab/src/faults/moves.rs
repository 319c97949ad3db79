//! Tenants that are moved between two shards while clients work and faults happen.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::time::sleep;

use crate::{Failure, report_progress, stopwatch::Stopwatch};

/// Between two moves, and before the first.
const PAUSE: Duration = Duration::from_secs(2);

/// A command that fails is run again after so long: the database may be failing over, or a node be away.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How long a move may take with all its attempts.
const MOVED_WITHIN: Duration = Duration::from_mins(5);

const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What is moved, and by which command.
#[derive(Debug)]
pub(crate) struct Moves {
    /// The words that run a command of the gateway.
    pub(crate) commands: Vec<String>,
    pub(crate) config: PathBuf,
    pub(crate) tenants: Vec<String>,
    pub(crate) count: u64,
}

impl Moves {
    /// Moves one tenant after the other, to the second shard first. The first mover of each is killed after some seconds, and
    /// the next goes on.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        for number in 0..self.count {
            sleep(PAUSE).await;
            let tenants = self.tenants.len() as u64;
            let tenant = &self.tenants[usize::try_from(number % tenants)?];
            let to = if (number / tenants).is_multiple_of(2) { "two" } else { "one" };
            let watch = Stopwatch::start();
            let mut killed_after = Some(Duration::from_secs(number * 5 % 13));
            while !self.attempt(tenant, to, killed_after.take()).await? {
                if watch.elapsed() > MOVED_WITHIN {
                    return Err(format!("{tenant} was not moved within {MOVED_WITHIN:?}").into());
                }
                sleep(RETRY_DELAY).await;
            }
            report_progress(&format!("{tenant} is on {to} after {} ms", watch.elapsed().as_millis()));
        }
        Ok(())
    }

    /// Whether the tenant has arrived.
    async fn attempt(&self, tenant: &str, to: &str, killed_after: Option<Duration>) -> Result<bool, Failure> {
        let (program, words) = self.commands.split_first().ok_or("a program has a name")?;
        let mut command = Command::new(program);
        command.args(words).args(["tenants", "move", "--tenant", tenant, "--to", to, "--config"]);
        let mut mover = command.arg(&self.config).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let watch = Stopwatch::start();
        loop {
            if let Some(ended) = mover.try_wait()? {
                return Ok(ended.success());
            }
            if killed_after.is_some_and(|after| watch.elapsed() >= after) {
                mover.kill()?;
                mover.wait()?;
                return Ok(false);
            }
            sleep(CHECK_INTERVAL).await;
        }
    }
}
