//! `exec`: run a command after a person has approved exactly it.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use countersign_agents::{
    asking,
    execution::{Difference, Prepared, RunAs, StartError, Stdin, read_stdin},
    proposals::{
        Command, Proposal, What,
        decider::{Approval, Decider},
    },
    tool::{
        exit::{Exit, Failure},
        home::Home,
        moment,
        output::{object, say},
        terminal::Terminal,
    },
};
use countersign_client::receipt::Outcome;
use countersign_wire::base64url;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    signal::unix::{SignalKind, signal},
};

use super::{
    ask,
    options::{AskAgain, Options, Ring, milliseconds},
};

/// How much of what a command writes to its standard output is kept for `--json`.
const MAX_WRITTEN: usize = 16 << 20;

/// Run a command after a person has approved it.
///
/// People see the command, the working directory, scripts that it runs, and what it does. It runs only if they approve, and
/// only if it is still what they approved: the program and its scripts run from the bytes that were compared, under another
/// path ($0 is /proc/self/fd/N). A script that loads files beside itself is refused before anybody is asked; `--with DIR`
/// binds a folder, and the script runs in place. Files that arguments name are compared immediately before the start; other
/// files that a program opens are not.
///
/// The command gets the variables that say who, where and how to show things (HOME, PATH, LANG …), and no other without
/// `--env NAME` or `env` in your rules. PATH loses folders of the repository.
///
/// A standard input that is no terminal is read before asking, and the command gets the same bytes.
///
/// With --json, one object goes to stdout when the command has ended: the answer, `exitCode`, and what the command wrote to its
/// standard output, as `stdout` (or `stdoutBase64` if it is no text). Of more than 16 MB the rest is dropped, and
/// `stdoutTruncated` is true. Its standard error goes to stderr as it comes.
///
/// Exit codes: that of the command; 81 rejected, 82 expired, 83 unreachable, 84 changed since it was approved, 85 not set up,
/// 126 can't be started, 127 not found, 130 taken back.
#[derive(Debug, Args)]
pub(super) struct Exec {
    /// How long people have to answer.
    #[arg(long, value_name = "TIME", default_value = ask::DEFAULT_VALID_FOR, value_parser = moment::duration)]
    valid_for: Duration,
    #[command(flatten)]
    again: AskAgain,
    #[command(flatten)]
    ring: Ring,
    /// Pass this variable too, and show it. Values of those that look like secrets are never shown.
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Bind all files below this folder, and run scripts in place. At most 2,000 files and 64 MB.
    #[arg(long, value_name = "DIR")]
    with: Vec<PathBuf>,
    /// The session that this belongs to, so that people can approve for all of it.
    #[arg(long, value_name = "ID", env = "COUNTERSIGN_SESSION", hide_env_values = true)]
    session: Option<String>,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Exec {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        // What whoever started this has left open is not for the command.
        close_fds::set_fds_cloexec(3, &[]);
        let decider = Decider::of(Home::of_user()?, options.profile.clone())?;
        let stdin = read_stdin()?;
        let mut interruption = asking::Interruption::watch()?;
        let command = Command {
            argv: self.command,
            env: self.env,
            with: self.with,
            reads: stdin.reads(),
            run_as: RunAs::this_process(),
        };
        let proposal = Proposal {
            what: What::Run(command.clone()),
            valid_for: milliseconds(self.valid_for),
            patience: milliseconds(self.again.patience()),
            ring: self.ring.word(),
            session: self.session,
        };
        loop {
            let mut approval = decider.decide(&proposal, &mut interruption).await?;
            let differences = match approval.plan(&command).and_then(|plan| plan.prepare()) {
                Ok(prepared) => return execute(prepared, stdin, approval, options).await,
                Err(differences) => differences,
            };
            approval.finish(Outcome::Drifted).await;
            if !ask_again(&differences) {
                return Err(drifted(&differences));
            }
        }
    }
}

/// A person at the terminal may want to ask about what it is now.
fn ask_again(differences: &[Difference]) -> bool {
    let Ok(mut terminal) = Terminal::open("asking again needs a terminal") else { return false };
    say(&format!("✗ It changed after it was approved, so it did not run:\n{}", list(differences)));
    terminal.ask("Ask about it as it is now? [y/N] ").is_ok_and(|answer| answer.eq_ignore_ascii_case("y"))
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("  {difference}")).collect::<Vec<_>>().join("\n")
}

fn drifted(differences: &[Difference]) -> Failure {
    let what = format!("it changed after it was approved, so it did not run:\n{}\n", list(differences));
    Failure::new(Exit::Changed, what).next("look at what changed, then ask again")
}

async fn execute(
    prepared: Prepared,
    stdin: Stdin,
    approval: Approval,
    options: &Options,
) -> Result<ExitCode, Failure> {
    let (status, written) = match run(prepared, stdin, options.json).await {
        Ok(ended) => ended,
        Err(StartError::Changed(differences)) => {
            approval.finish(Outcome::Drifted).await;
            return Err(drifted(&differences));
        }
        Err(StartError::System(error)) => {
            let reason = format!("it can't be started: {error}");
            approval.finish(Outcome::Refused { reason: reason.clone() }).await;
            return Err(Failure::new(Exit::NotExecutable, format!("it was approved, and {reason}")));
        }
    };
    let code = exit_code(status);
    if options.json {
        let mut result = approval.json();
        result["exitCode"] = json!(code);
        written.add_to(&mut result);
        object(&result)?;
    }
    approval.finish(Outcome::Applied { exit_status: status.code() }).await;
    Ok(ExitCode::from(code))
}

/// Runs the command to its end. It is in the same group and gets the terminal's signals itself; this process must live to
/// see its end. What it writes to its standard output is kept if stdout is for one object.
async fn run(
    prepared: Prepared,
    stdin: Stdin,
    is_kept: bool,
) -> Result<(std::process::ExitStatus, Written), StartError> {
    let mut quit = signal(SignalKind::quit())?;
    let (mut command, held) = prepared.into_command(stdin)?;
    if is_kept {
        command.stdout(std::process::Stdio::piped());
    }
    let mut child = command.spawn()?;
    let stdout = child.stdout.take();
    let ended = async { tokio::join!(child.wait(), Written::read(stdout)) };
    tokio::pin!(ended);
    let (status, written) = loop {
        tokio::select! {
            (status, written) = &mut ended => break (status?, written),
            _ = quit.recv() => {}
        }
    };
    drop(held);
    Ok((status, written))
}

/// What a command has written to its standard output.
#[derive(Debug, Default)]
struct Written {
    bytes: Vec<u8>,
    is_truncated: bool,
}

impl Written {
    /// Reads to the end, so that the command never waits for a reader, and keeps the beginning.
    async fn read(output: Option<impl AsyncRead + Unpin>) -> Self {
        let mut written = Self::default();
        let Some(mut output) = output else { return written };
        let mut part = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = output.read(&mut part).await {
            let kept = count.min(MAX_WRITTEN - written.bytes.len());
            written.bytes.extend_from_slice(&part[..kept]);
            written.is_truncated |= kept < count;
        }
        written
    }

    fn add_to(self, result: &mut Value) {
        match String::from_utf8(self.bytes) {
            Ok(text) => result["stdout"] = text.into(),
            Err(error) => result["stdoutBase64"] = base64url::encode(error.as_bytes()).into(),
        }
        if self.is_truncated {
            result["stdoutTruncated"] = true.into();
        }
    }
}

/// The code as a shell has it: its own, or 128 and the number of the signal.
fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_command_writes_is_in_the_object_up_to_a_limit() {
        let object = async |bytes: &[u8]| {
            let mut result = json!({ "exitCode": 0 });
            Written::read(Some(bytes)).await.add_to(&mut result);
            result
        };
        assert_eq!(object("zwölf\n".as_bytes()).await, json!({ "exitCode": 0, "stdout": "zwölf\n" }));
        assert_eq!(object(b"\xff\x00").await, json!({ "exitCode": 0, "stdoutBase64": "_wA" }));
        let long = object(&vec![b'x'; MAX_WRITTEN + 1]).await;
        assert_eq!(long["stdout"].as_str().map(str::len), Some(MAX_WRITTEN));
        assert_eq!(long["stdoutTruncated"], true);
    }
}
