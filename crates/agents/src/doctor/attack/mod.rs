//! `doctor --attack`: what code of an agent can do about its own gate, tried on a copy of everything that protects.
//!
//! From three points: this shell, where nothing protects and each attempt has to succeed; a sandbox as `countersign run` builds it;
//! and a tool call of the real host in that sandbox, with a model that asks for it.
//!
//! | to find | look in |
//! |---|---|
//! | what is tried | [`attempts`] |
//! | the copy on which it is tried | `scratch.rs` |

pub mod attempts;

mod scratch;

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use serde::Serialize;
use tokio::time::timeout;

use self::{
    attempts::{ATTEMPTS, Attempt, Results},
    scratch::Scratch,
};
use super::{
    canary,
    model::{Model, Wish},
};
use crate::{
    hosts::{self, Host},
    sandbox::{bubblewrap, place::TOOL},
    tool::exit::{Exit, Failure},
};

/// How long a host may take for the whole of it.
const RUN_TIME: Duration = Duration::from_mins(2);

/// So many characters of what a host says when it has tried nothing.
const MAX_WORDS: usize = 300;

/// What came of one attempt from one point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum Outcome {
    /// It was refused, and how.
    Held { by: String },
    /// It succeeded: nothing keeps an agent from it.
    Open,
    /// It could not be tried, and why.
    NotTried { why: String },
}

/// What came of one attempt on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// What was tried, in words.
    pub attempt: &'static str,
    /// From this shell, where nothing protects.
    pub shell: Outcome,
    /// From where the host itself runs.
    pub host: Outcome,
    /// From a tool call of the host.
    pub call: Outcome,
    /// Whether something is open that should be held.
    pub is_wrong: bool,
}

/// What came of all attempts on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attacked {
    /// The word for the host.
    pub host: &'static str,
    /// What people call it.
    pub name: &'static str,
    pub lines: Vec<Line>,
}

/// Attacks every host on this machine that can be run in a sandbox, one after the other.
pub async fn attack(progress: impl Fn(&str)) -> Result<Vec<Attacked>, Failure> {
    let bubblewrap = bubblewrap::program().ok_or_else(|| {
        Failure::new(Exit::NotSetUp, "bubblewrap is not installed, so there is no sandbox to attack")
            .next("install it, such as with `sudo apt install bubblewrap`")
    })?;
    let path = std::env::var_os("PATH");
    let program = |host: Host| Some((host, canary::program(host, path.as_deref())?));
    let found: Vec<_> =
        hosts::ALL.into_iter().filter(|host| host.contained().is_some()).filter_map(program).collect();
    let mut attacked = Vec::new();
    for (host, program) in found {
        progress(host.name());
        let scratch = Scratch::make(host, program).await?;
        attacked.push(on_host(host, &scratch, bubblewrap).await?);
    }
    Ok(attacked)
}

async fn on_host(host: Host, scratch: &Scratch, bubblewrap: &Path) -> Result<Attacked, Failure> {
    let shell = Ok(attempts::run(&scratch.outside()));
    scratch.restore()?;
    let in_host = in_sandbox(scratch, bubblewrap);
    scratch.restore()?;
    let in_call = in_tool_call(host, scratch, bubblewrap).await;
    let has_own_sandbox = host.contained().is_some_and(|contained| contained.has_own_sandbox);
    let line = |attempt: &Attempt| {
        let [shell, host, call] = [&shell, &in_host, &in_call].map(|results| outcome(results, attempt.name));
        let host = match attempt.needs_host {
            true => Outcome::NotTried { why: "the attempts stand in the host's place".to_owned() },
            false => host,
        };
        let is_held_in_call = has_own_sandbox || !attempt.is_open_beside_host;
        let is_wrong =
            host == Outcome::Open && !attempt.is_open_beside_host || call == Outcome::Open && is_held_in_call;
        Line { attempt: attempt.name, shell, host, call, is_wrong }
    };
    Ok(Attacked { host: host.word(), name: host.name(), lines: ATTEMPTS.iter().map(line).collect() })
}

/// The attempts in the place of the host.
fn in_sandbox(scratch: &Scratch, bubblewrap: &Path) -> Result<Results, String> {
    let targets = serde_json::to_string(&scratch.inside()).map_err(|error| error.to_string())?;
    let argv = [TOOL, "doctor", "--attack-inside", &targets].map(OsString::from);
    let place = scratch.place(&[]).map_err(|failure| failure.to_string())?;
    let built = bubblewrap::command(bubblewrap, &place, &argv);
    let output = built.and_then(|mut built| built.command.output()).map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_WORDS).collect())
}

/// The attempts in a tool call of the host itself.
async fn in_tool_call(host: Host, scratch: &Scratch, bubblewrap: &Path) -> Result<Results, String> {
    let said = |error: io::Error| error.to_string();
    scratch.write_targets().map_err(said)?;
    let wish = Wish { tool: host.canary.tool, arguments: (host.canary.arguments)(scratch::COMMAND) };
    let model = Model::start(wish).await.map_err(said)?;
    let mut wanted = tokio::process::Command::new(&scratch.program);
    (host.canary.start)(&mut wanted, &model.url(), &scratch.project).map_err(said)?;
    let wanted = wanted.as_std();
    let variables = wanted.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let updates = host.without_updates.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let variables: Vec<(OsString, OsString)> = variables.chain(updates).collect();
    // Its settings do not allow it to do without its own sandbox.
    let argument = |word: &OsStr| match word == "danger-full-access" {
        true => "workspace-write".into(),
        false => word.to_owned(),
    };
    let program = [scratch.program.clone().into_os_string()].into_iter();
    let argv: Vec<OsString> = program.chain(wanted.get_args().map(argument)).collect();
    let place = scratch.place(&variables).map_err(|failure| failure.to_string())?;
    let built = bubblewrap::command(bubblewrap, &place, &argv).map_err(said)?;
    let mut command = tokio::process::Command::from(built.command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ended = timeout(RUN_TIME, command.output()).await;
    if let Some(results) = scratch.results() {
        return Ok(results);
    }
    Err(match ended {
        Ok(Ok(output)) => {
            let text = [output.stderr, output.stdout].concat();
            String::from_utf8_lossy(&text).trim().chars().take(MAX_WORDS).collect()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it did not end in {} s", RUN_TIME.as_secs()),
    })
}

fn outcome(results: &Result<Results, String>, name: &str) -> Outcome {
    match results {
        Err(why) => Outcome::NotTried { why: why.clone() },
        Ok(results) => match results.get(name) {
            None => Outcome::NotTried { why: "it was not reached".to_owned() },
            Some(None) => Outcome::Open,
            Some(Some(by)) => Outcome::Held { by: by.clone() },
        },
    }
}
