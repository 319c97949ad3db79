//! `doctor`.

use std::{env, path::PathBuf, process::ExitCode};

use clap::Args;
use countersign_agents::{
    doctor::{
        attack::{
            self, Attacked, Line, Outcome,
            attempts::{self, Targets},
        },
        hosts, news,
        page::PageHashes,
        profiles,
        report::Report,
    },
    hook::last_check,
    install::places::Places,
    tool::{
        exit::{Exit, Failure},
        finding::{Finding, Level},
        home::{Home, failed},
        output::{object, say},
    },
};
use countersign_client::{
    clock::{Clock as _, SystemClock},
    profile::Role,
};
use serde_json::{Value, json};

use super::options::Options;
use crate::local_gateway::LocalGateway;

/// Check that agents ask, and that somebody can answer.
///
/// Looks at the profiles, their gateways, keys and clocks, and at every host in which the hook is installed. Starts each of
/// these hosts against a model of its own on this machine, lets it try a harmless command, and sees whether a refusal stops
/// it. Compares the page that a gateway serves with the one that was built. For each thing that is not as it should be it says what, why it matters and what to do. Nothing is changed; the
/// result is shown to your team with the presence of this machine.
///
/// Ends with 0 if there is nothing to put right, and with 87 if there is.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Don't start the hosts.
    #[arg(long)]
    no_start: bool,
    /// Hashes of the page that gateways should serve, the hashes.json of its build. Otherwise those of the page that was built
    /// beside this tool, if there was one.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Attack the gate itself, and look at nothing else: what an agent could do about its keys, rules and hook, from this shell, from the
    /// sandbox of `countersign run`, and from a tool call of each agent in it. All of it on a copy; takes about half a minute.
    #[arg(long, conflicts_with_all = ["no_start", "page"])]
    attack: bool,
    /// What is attacked, from where this runs.
    #[arg(long, hide = true, value_parser = targets)]
    attack_inside: Option<Targets>,
}

fn targets(text: &str) -> Result<Targets, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Doctor {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        if let Some(targets) = &self.attack_inside {
            return object(&attempts::run(targets)).map(|()| ExitCode::SUCCESS);
        }
        if self.attack {
            return attack(options).await;
        }
        let mut report = Report::default();
        let hashes = PageHashes::read(self.page.as_deref())?;
        let home = Home::of_user()?;
        let gateways = profiles::check(&home, options.profile.as_deref(), &mut report).await?;
        hashes.compare(&gateways, &mut report).await;
        public_address(&home, &mut report).await;
        let project = env::current_dir().unwrap_or_default();
        let facts = hosts::check(&home, &Places::of_user()?, &project, !self.no_start, &mut report).await;
        let result = news::result(&report, &facts, SystemClock.now());
        publish(&result, options).await;
        if options.json {
            object(&json!({
                "outcome": if report.has_problems() { Exit::Findings.word() } else { "ok" },
                "findings": report.findings, "passed": report.passed, "hosts": facts,
            }))?;
        } else {
            show(&report);
        }
        Ok(match report.has_problems() {
            true => ExitCode::from(Exit::Findings.code()),
            false => ExitCode::SUCCESS,
        })
    }
}

/// Attacks the gate, and shows what held.
async fn attack(options: &Options) -> Result<ExitCode, Failure> {
    let attacked = attack::attack(|host| say(&format!("Attacking {host} …"))).await?;
    let wrong = attacked.iter().flat_map(|host| &host.lines).filter(|line| line.is_wrong).count();
    if options.json {
        object(
            &json!({ "outcome": if wrong > 0 { Exit::Findings.word() } else { "ok" }, "hosts": attacked }),
        )?;
    } else {
        show_attacked(&attacked, wrong);
    }
    Ok(ExitCode::from(if wrong > 0 { Exit::Findings.code() } else { 0 }))
}

fn show_attacked(attacked: &[Attacked], wrong: usize) {
    if attacked.is_empty() {
        say("No agent that can be run in the sandbox is on your PATH: Claude Code, Codex CLI or OpenCode.");
        return;
    }
    for host in attacked {
        say(&format!("\n{:<46}{:<8}{:<11}tool call", host.name, "shell", "sandbox"));
        for line in &host.lines {
            let [shell, sandbox, call] = [&line.shell, &line.host, &line.call].map(word);
            let sign = if line.is_wrong { "  ✗" } else { "" };
            say(&format!("  {:<44}{shell:<8}{sandbox:<11}{call}{sign}", line.attempt));
        }
        let why = |line: &Line| match &line.call {
            Outcome::NotTried { why } => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = host.lines.iter().find_map(why) {
            say(&format!("  Not tried from a tool call: {why}"));
        }
    }
    say("");
    say(
        "shell: what code does that runs freely under your account. Run agents with `countersign run` to prevent it.",
    );
    match wrong {
        0 => say(
            "✓ In the sandbox, everything held that should. docs/boundary.md explains what is open there.",
        ),
        _ => say(&format!(
            "✗ {wrong} attempts succeeded in the sandbox that should not. Please report this, and don't rely on it."
        )),
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Held { .. } => "held",
        Outcome::Open => "open",
        Outcome::NotTried { .. } => "–",
    }
}

/// Calls the address that other devices are sent to: a code that leads nowhere is found out on the phone otherwise.
async fn public_address(home: &Home, report: &mut Report) {
    let gateway = LocalGateway::of(home);
    let Some(address) = gateway.url().ok().and_then(|near| gateway.public_url_of(&near)) else { return };
    let shown = address.as_str();
    report.add("gateway", match gateway.unreachable(&address).await {
        None => Ok(format!("other devices reach it at {shown}")),
        Some(reason) => Err(Finding::problem(
            "gateway",
            format!("{shown} does not answer: {reason}"),
            "the codes of `countersign up --phone` and `countersign pair` lead there, so your phone can't connect",
            "check that the proxy, or Tailscale, runs and leads to this machine, or set another address with \
             `countersign up --phone --public-url`",
        )),
    });
}

/// Keeps the result and says it to the gateway, if there is one. It is only news.
async fn publish(result: &Value, options: &Options) {
    let said = async {
        let home = Home::of_user()?;
        last_check::keep(&home.hooks_folder(), result).map_err(failed)?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        news::say(&enforcer, &pins, identity.names(), &home.hooks_folder()).await;
        Ok::<(), Failure>(())
    };
    drop(said.await);
}

fn show(report: &Report) {
    for passed in &report.passed {
        say(&format!("✓ {}: {}", passed.subject, passed.what));
    }
    for finding in &report.findings {
        say(&line(finding));
    }
    match report.has_problems() {
        true => say("Problems found. Each ✗ says what to do."),
        false => say("No problems found."),
    }
}

fn line(finding: &Finding) -> String {
    let sign = match finding.level {
        Level::Problem => '✗',
        Level::Note => '·',
    };
    let Finding { subject, what, why, remedy, .. } = finding;
    format!("{sign} {subject}: {what}.\n    Why it matters: {why}.\n    What to do: {remedy}.")
}
