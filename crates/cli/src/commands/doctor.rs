//! `doctor`.

use std::{env, path::PathBuf, process::ExitCode};

use clap::Args;
use countersign_agents::{
    doctor::{hosts, news, page::PageHashes, profiles, report::Report},
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
}

impl Doctor {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
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
