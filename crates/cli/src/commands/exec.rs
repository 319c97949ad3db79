//! `exec`: run a command after a person has approved exactly it.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use countersign_client::{
    enforcer::Enforcer,
    payload::Payload,
    profile::{Pins, Role},
    receipt::Outcome,
    taken::Taken,
};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Options, ask};
use crate::{
    asking,
    execution::{Difference, Plan, Prepared, Stdin, read_stdin},
    exit::{Exit, Failure},
    home::{Home, failed},
    moment,
    output::{object, say},
    terminal::Terminal,
};

/// Run a command after a person has approved it.
///
/// People see the command, the working directory, scripts that it runs, variables that matter and what it does. It runs only
/// if they approve, and only if it is still what they approved: the program and its scripts run from the bytes that were
/// compared. Scripts are therefore run under another path ($0 is /proc/self/fd/N), and find no files beside themselves. Files
/// that a script opens are not compared.
///
/// A standard input that is no terminal is read before asking, and the command gets the same bytes.
///
/// Exit codes: that of the command; 81 rejected, 82 expired, 83 unreachable, 84 changed since it was approved, 85 not set up,
/// 126 can't be started, 127 not found, 130 taken back.
#[derive(Debug, Args)]
pub(super) struct Exec {
    /// How long people have for an answer.
    #[arg(long, value_name = "TIME", default_value = ask::DEFAULT_VALID_FOR, value_parser = moment::duration)]
    valid_for: Duration,
    /// Show this variable too. Values of those that look like secrets are never shown.
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// The session that this belongs to, so that people can approve for all of it.
    #[arg(long, value_name = "ID", env = "COUNTERSIGN_SESSION", hide_env_values = true)]
    session: Option<String>,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Exec {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let stdin = read_stdin()?;
        let mut interruption = asking::Interruption::watch()?;
        let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
        loop {
            let plan = Plan::examine(&self.command, &cwd, &self.env).map_err(|error| error.failure())?;
            let payload = Payload::Command(plan.payload(&stdin));
            let draft = ask::draft(&payload, self.valid_for, self.session.clone())?;
            let taken = asking::permission(&enforcer, &pins, &draft, &mut interruption).await?;
            let taken = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
            if let Err(rejected) = asking::announce(&taken.decision, enforcer.clock.now()) {
                asking::finish(&enforcer, &pins, taken, Outcome::Applied { exit_status: None }).await;
                return Err(rejected);
            }
            match plan.prepare() {
                Ok(prepared) => return execute(&enforcer, &pins, prepared, stdin, taken, options).await,
                Err(differences) => {
                    asking::finish(&enforcer, &pins, taken, Outcome::Drifted).await;
                    if !ask_again(&differences) {
                        return Err(drifted(&differences));
                    }
                }
            }
        }
    }
}

/// A person at the terminal may want to ask about what it is now.
fn ask_again(differences: &[Difference]) -> bool {
    let Ok(mut terminal) = Terminal::open("it is asked again only in a terminal") else { return false };
    say(&format!("✗ It has changed since it was approved, and was not run:\n{}", list(differences)));
    terminal.ask("Ask about it as it is now? [y/N] ").is_ok_and(|answer| answer.eq_ignore_ascii_case("y"))
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("  {difference}")).collect::<Vec<_>>().join("\n")
}

fn drifted(differences: &[Difference]) -> Failure {
    let what = format!("it has changed since it was approved, and was not run:\n{}\n", list(differences));
    Failure::new(Exit::Changed, what).next("look at what has changed, and ask again")
}

async fn execute(
    enforcer: &Enforcer,
    pins: &Pins,
    prepared: Prepared,
    stdin: Stdin,
    taken: Taken,
    options: &Options,
) -> Result<ExitCode, Failure> {
    let status = match run(prepared, stdin).await {
        Ok(status) => status,
        Err(error) => {
            let reason = format!("it can't be started: {error}");
            asking::finish(enforcer, pins, taken, Outcome::Refused { reason: reason.clone() }).await;
            return Err(Failure::new(Exit::NotExecutable, format!("it was approved, and {reason}")));
        }
    };
    let code = exit_code(status);
    if options.json {
        let mut result = ask::json_of(&taken);
        result["exitCode"] = json!(code);
        object(&result)?;
    }
    asking::finish(enforcer, pins, taken, Outcome::Applied { exit_status: status.code() }).await;
    Ok(ExitCode::from(code))
}

/// Runs the command to its end. It is in the same group and gets the terminal's signals itself; this process must live to
/// see its end.
async fn run(prepared: Prepared, stdin: Stdin) -> std::io::Result<std::process::ExitStatus> {
    let (mut command, held) = prepared.into_command(stdin)?;
    let mut quit = signal(SignalKind::quit())?;
    let mut child = command.spawn()?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            _ = quit.recv() => {}
        }
    };
    drop(held);
    Ok(status)
}

/// The code as a shell has it: its own, or 128 and the number of the signal.
fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
