//! `doctor`.

use std::{env, path::PathBuf, process::ExitCode};

use clap::Args;
use countersign_agents::{
    doctor::{
        attack::{
            self, Attack, Attacked,
            attempts::{self, Targets},
            outcome::Outcome,
        },
        hosts, news,
        page::PageHashes,
        profiles,
        report::Report,
    },
    hook::{desk::Desk, machine},
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
use countersign_wire::machine::{MachineDoctor, MachineHooks};
use serde_json::json;

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
    /// sandbox of `countersign run`, and from a tool call of each agent in it; all of that on a copy. The keeper of this machine is
    /// attacked from your account, if it decides for it. Takes about half a minute.
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
        let found = hosts::check(&home, &Places::of_user()?, &project, !self.no_start, &mut report).await;
        publish(&home, news::result(&report, &found, SystemClock.now()), options).await;
        if options.json {
            object(&json!({
                "outcome": if report.has_problems() { Exit::Findings.word() } else { "ok" },
                "findings": report.findings, "passed": report.passed,
                "hosts": found.iter().map(hosts::fact).collect::<Vec<_>>(),
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
    let attack = attack::attack(|host| say(&format!("Attacking {host} …"))).await?;
    let (wrong, doubts) = (attack.wrong(), attack.doubts());
    let is_clean = wrong == 0 && doubts.is_empty();
    if options.json {
        let word = if is_clean { "ok" } else { Exit::Findings.word() };
        object(&json!({
            "outcome": word, "keeper": attack.keeper, "hosts": attack.hosts, "noHosts": attack.no_hosts, "doubts": doubts,
        }))?;
    } else {
        show_attack(&attack, wrong, &doubts);
    }
    Ok(ExitCode::from(if is_clean { 0 } else { Exit::Findings.code() }))
}

fn show_attack(attack: &Attack, wrong: usize, doubts: &[String]) {
    show_keeper(attack);
    show_hosts(&attack.hosts);
    if attack.no_hosts.is_none() && attack.hosts.is_empty() {
        say("\nNo agent that can be run in the sandbox is on your PATH: Claude Code, Codex CLI or OpenCode.");
    }
    if attack.keeper.is_empty() && attack.hosts.is_empty() {
        return;
    }
    if any_not_tried(attack) {
        say("  –: it could not be tried there.");
    }
    say("");
    for doubt in doubts {
        say(&format!("? {doubt}."));
    }
    match (wrong, doubts.is_empty()) {
        (0, true) => {
            say("✓ Everything held that should. docs/boundary.md explains what is open in the sandbox.");
        }
        (0, false) => {
            say("? What could be tried held. Some attempts proved nothing; fix what the lines above name.");
        }
        _ => {
            let attempts = if wrong == 1 { "1 attempt" } else { &format!("{wrong} attempts") };
            say(&format!(
                "✗ {attempts} succeeded that should not. If you have changed nothing of the installation, please report \
                 this; until then, don't rely on it."
            ));
        }
    }
}

fn any_not_tried(attack: &Attack) -> bool {
    let of_keeper = attack.keeper.iter().flat_map(|line| [&line.keeper, &line.control]);
    let lines = attack.hosts.iter().flat_map(|host| &host.lines);
    let mut all = of_keeper.chain(lines.flat_map(|line| [&line.shell, &line.host, &line.call]));
    all.any(|outcome| matches!(outcome, Outcome::NotTried { .. }))
}

fn show_keeper(attack: &Attack) {
    if attack.keeper.is_empty() {
        return;
    }
    say(&format!("\n{:<46}{:<8}{}", "The keeper of this machine", "yours", "keeper's"));
    for line in &attack.keeper {
        let [control, keeper] = [&line.control, &line.keeper].map(word);
        say(&format!("  {:<44}{control:<8}{keeper}{}", line.attempt, sign(line.is_wrong)));
    }
    say("  yours: the same on a file, folder or process of your own, where nothing protects.");
}

fn show_hosts(hosts: &[Attacked]) {
    for host in hosts {
        say(&format!("\n{:<46}{:<8}{:<11}tool call", host.name, "shell", "sandbox"));
        for line in &host.lines {
            let [shell, sandbox, call] = [&line.shell, &line.host, &line.call].map(word);
            say(&format!("  {:<44}{shell:<8}{sandbox:<11}{call}{}", line.attempt, sign(line.is_wrong)));
        }
    }
    if !hosts.is_empty() {
        say("  shell: what code does that runs freely under your account. `countersign run` prevents it.");
    }
}

fn sign(is_wrong: bool) -> &'static str {
    if is_wrong { "  ✗" } else { "" }
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
async fn publish(home: &Home, (hooks, doctor): (MachineHooks, MachineDoctor), options: &Options) {
    let desk = Desk::new(home.hooks_folder());
    let said = async {
        machine::keep(&desk, hooks, Some(doctor)).map_err(failed)?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        news::say(&enforcer, &pins, identity.names(), &desk).await;
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
