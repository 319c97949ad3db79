//! `doctor --attack`: what code of an agent can do about its own gate, tried on a copy of everything that protects.
//!
//! From three points: this shell, where nothing protects and each attempt has to succeed; a sandbox as `countersign run` builds it;
//! and a tool call of the real host in that sandbox, with a model that asks for it. Where a keeper of the machine decides for this
//! account, that one is attacked too, from this account.
//!
//! | to find | look in |
//! |---|---|
//! | what is tried, and what came of it | [`attempts`], [`outcome`] |
//! | the copy on which it is tried | `scratch.rs` |
//! | what is tried on the keeper of the machine | `machine.rs` |

pub mod attempts;
pub mod outcome;

mod machine;
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
    attempts::{ATTEMPTS, Attempt, HeldBy, Results},
    machine::MachineLine,
    outcome::Outcome,
    scratch::Scratch,
};
use super::{
    canary,
    model::{Model, Wish},
};
use crate::{
    hosts::{self, Host},
    platform::has_sandbox,
    sandbox::{bubblewrap, place::TOOL},
    tool::exit::{Exit, Failure},
};

/// How long a host may take for the whole of it.
const RUN_TIME: Duration = Duration::from_mins(2);

/// So many characters of what a host says when it has tried nothing.
const MAX_WORDS: usize = 300;

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
    /// Whether it has to succeed from the shell, or else it shows nothing.
    #[serde(skip)]
    has_control: bool,
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

/// What came of all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attack {
    /// On the keeper of this machine; empty if it does not decide for this account.
    pub keeper: Vec<MachineLine>,
    pub hosts: Vec<Attacked>,
    /// Why no host was attacked, or not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_hosts: Option<String>,
}

impl Attack {
    /// What was attacked before it failed counts; a failure alone is all that there is to say.
    fn of(keeper: Vec<MachineLine>, hosts: Vec<Attacked>, failure: Option<Failure>) -> Result<Self, Failure> {
        match failure {
            Some(failure) if keeper.is_empty() && hosts.is_empty() => Err(failure),
            failure => Ok(Self { keeper, hosts, no_hosts: failure.map(|failure| failure.to_string()) }),
        }
    }

    /// How many attempts succeeded that should not.
    pub fn wrong(&self) -> usize {
        let lines = self.hosts.iter().flat_map(|host| &host.lines);
        lines.filter(|line| line.is_wrong).count() + self.keeper.iter().filter(|line| line.is_wrong).count()
    }

    /// The attempts that show nothing: they were not tried, or do not succeed where nothing protects either.
    pub fn doubts(&self) -> Vec<String> {
        let keeper =
            self.keeper.iter().filter_map(|line| Doubt::of(line.attempt, &line.keeper, &line.control));
        let keeper =
            together(keeper.collect()).into_iter().map(|why| format!("this machine's keeper: {why}"));
        let hosts = self.hosts.iter().flat_map(|host| {
            let doubts = together(host.lines.iter().filter_map(Line::doubt).collect()).into_iter();
            doubts.chain(host.no_sandbox()).map(move |why| format!("{}: {why}", host.name))
        });
        let no_hosts = self.no_hosts.iter().map(|why| why.trim_end_matches('.'));
        let no_hosts = no_hosts.map(|why| match self.hosts.is_empty() {
            true => format!("no agent was attacked in the sandbox: {why}"),
            false => format!("not every agent was attacked in the sandbox: {why}"),
        });
        keeper.chain(hosts).chain(no_hosts).collect()
    }
}

impl Attacked {
    /// Why nothing was tried in the place of the host.
    fn no_sandbox(&self) -> Option<String> {
        let why = |line: &Line| match &line.host {
            Outcome::NotTried { why } => Some(why.clone()),
            Outcome::Held { .. } | Outcome::Open => None,
        };
        let tried = self.lines.iter().filter(|line| line.has_control);
        let whys: Option<Vec<String>> = tried.map(why).collect();
        Some(format!("nothing was tried in the sandbox beside the agent: {}", whys?.first()?))
    }
}

impl Line {
    fn doubt(&self) -> Option<Doubt<'_>> {
        Doubt::of(self.attempt, &self.call, if self.has_control { &self.shell } else { &Outcome::Open })
    }
}

/// Why an attempt shows nothing.
struct Doubt<'l> {
    attempt: &'l str,
    what: &'static str,
    why: &'l str,
}

impl<'l> Doubt<'l> {
    fn of(attempt: &'l str, tried: &'l Outcome, control: &'l Outcome) -> Option<Self> {
        let (what, why) = match (tried, control) {
            (Outcome::NotTried { why }, _) => ("not tried", why),
            (_, Outcome::Open) => return None,
            (_, Outcome::Held { by: why } | Outcome::NotTried { why }) => {
                ("no success where nothing protects either", why)
            }
        };
        Some(Self { attempt, what, why })
    }
}

/// Attempts with the same reason are named together.
fn together(doubts: Vec<Doubt<'_>>) -> Vec<String> {
    let mut by_reason: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for Doubt { attempt, what, why } in doubts {
        let attempt = format!("“{attempt}”");
        match by_reason.iter_mut().find(|known| (known.0, known.1) == (what, why)) {
            Some((.., attempts)) => attempts.push(attempt),
            None => by_reason.push((what, why, vec![attempt])),
        }
    }
    by_reason
        .into_iter()
        .map(|(what, why, attempts)| format!("{}: {what}: {why}", attempts.join(", ")))
        .collect()
}

/// Attacks the keeper of this machine, and every host that can be run in a sandbox, one after the other.
pub async fn attack(progress: impl Fn(&str)) -> Result<Attack, Failure> {
    let keeper = machine::attack()?;
    let mut attacked = Vec::new();
    let failure = hosts(progress, &mut attacked).await.err();
    Attack::of(keeper, attacked, failure)
}

/// What was attacked is kept if a later one fails.
async fn hosts(progress: impl Fn(&str), attacked: &mut Vec<Attacked>) -> Result<(), Failure> {
    if !has_sandbox() {
        return Err(Failure::new(Exit::NotSetUp, "there is a sandbox to attack on Linux only")
            .next("`countersign doctor` checks the hooks that are here"));
    }
    let path = std::env::var_os("PATH");
    let program = |host: Host| Some((host, canary::program(host, path.as_deref())?));
    let found: Vec<_> =
        hosts::ALL.into_iter().filter(|host| host.contained().is_some()).filter_map(program).collect();
    if found.is_empty() {
        return Ok(());
    }
    let bubblewrap = bubblewrap::program().ok_or_else(|| {
        Failure::new(Exit::NotSetUp, "bubblewrap is not installed, so there is no sandbox to attack")
            .next("install it, such as with `sudo apt install bubblewrap`")
    })?;
    for (host, program) in found {
        progress(host.name());
        let scratch = Scratch::make(host, program).await?;
        attacked.push(on_host(host, &scratch, bubblewrap).await?);
    }
    Ok(())
}

async fn on_host(host: Host, scratch: &Scratch, bubblewrap: &Path) -> Result<Attacked, Failure> {
    let shell = Ok(attempts::run(&scratch.outside()));
    scratch.restore()?;
    let in_host = in_sandbox(scratch, bubblewrap).map(|results| scratch.corrected(results));
    scratch.restore()?;
    let in_call = in_tool_call(host, scratch, bubblewrap).await.map(|results| scratch.corrected(results));
    let has_own_sandbox = host.contained().is_some_and(|contained| contained.has_own_sandbox);
    let line = |attempt: &Attempt| {
        let [shell, host, call] = [&shell, &in_host, &in_call].map(|results| outcome(results, attempt.name));
        let host = match attempt.needs_host {
            true => Outcome::NotTried { why: "the attempts stand in the host's place".to_owned() },
            false => host,
        };
        let (should_in_host, should_in_call) = match attempt.held_by {
            HeldBy::Sandbox => (true, true),
            HeldBy::HostsOwn => (false, has_own_sandbox),
            HeldBy::Nothing => (false, false),
        };
        let is_wrong = host == Outcome::Open && should_in_host || call == Outcome::Open && should_in_call;
        Line { attempt: attempt.name, shell, host, call, has_control: !attempt.needs_host, is_wrong }
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
            Some(outcome) => outcome.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Outcome {
        Outcome::Held { by: "it may not".to_owned() }
    }

    fn not_tried(why: &str) -> Outcome {
        Outcome::NotTried { why: why.to_owned() }
    }

    fn line(attempt: &'static str, host: Outcome, call: Outcome) -> Line {
        let is_wrong = call == Outcome::Open;
        Line { attempt, shell: Outcome::Open, host, call, has_control: true, is_wrong }
    }

    fn attacked(lines: Vec<Line>) -> Attacked {
        Attacked { host: "claude", name: "Claude Code", lines }
    }

    #[test]
    fn what_was_found_before_a_host_could_not_be_attacked_is_kept_and_the_rest_is_a_doubt() {
        let failure = || Some(Failure::new(Exit::Failed, "the disk is full"));
        let open = attacked(vec![line("read the keys", held(), Outcome::Open)]);
        let attack = Attack::of(Vec::new(), vec![open], failure()).unwrap();
        assert_eq!(attack.wrong(), 1);
        assert_eq!(attack.doubts(), ["not every agent was attacked in the sandbox: The disk is full"]);
        let keeper = MachineLine {
            attempt: "read the rules",
            keeper: held(),
            control: Outcome::Open,
            is_wrong: false,
        };
        let attack = Attack::of(vec![keeper], Vec::new(), failure()).unwrap();
        assert_eq!(attack.doubts(), ["no agent was attacked in the sandbox: The disk is full"]);
        Attack::of(Vec::new(), Vec::new(), failure()).unwrap_err();
    }

    #[test]
    fn a_sandbox_in_which_nothing_was_tried_is_a_doubt() {
        let nothing = |attempt| line(attempt, not_tried("no namespaces"), held());
        let attack = Attack { hosts: vec![attacked(vec![nothing("a"), nothing("b")])], ..Attack::default() };
        let doubt = "Claude Code: nothing was tried in the sandbox beside the agent: no namespaces";
        assert_eq!(attack.doubts(), [doubt]);
        let some = attacked(vec![nothing("a"), line("b", held(), held())]);
        assert_eq!(Attack { hosts: vec![some], ..Attack::default() }.doubts(), Vec::<String>::new());
    }

    #[test]
    fn attempts_with_the_same_reason_are_named_together() {
        let not = |attempt, why| line(attempt, held(), not_tried(why));
        let lines = vec![not("a", "it did not start"), not("b", "it did not start"), not("c", "another")];
        let attack = Attack { hosts: vec![attacked(lines)], ..Attack::default() };
        assert_eq!(
            attack.doubts(),
            ["Claude Code: “a”, “b”: not tried: it did not start", "Claude Code: “c”: not tried: another",]
        );
    }
}
