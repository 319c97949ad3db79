//! The hosts in which the hook is installed: their settings, and their versions.

use std::{env, path::Path, time::Duration};

use countersign_client::payload::visible;
use serde_json::{Value, json};

use super::{
    canary::{self, Seen},
    report::Report,
    versions,
};
use crate::{
    call_socket::place::CallSocket,
    hook_line::{keeper::KeeperPlace, mode::Mode},
    hosts::{self, Host},
    install::{inspection::Inspection, places::Places},
    tool::{finding::Finding, home::Home},
};

/// How long a keeper may take to be called.
const KEEPER_TIME: Duration = Duration::from_secs(2);

/// Looks at every host, and returns where there is a hook.
pub async fn check(
    home: &Home,
    places: &Places,
    project: &Path,
    starts: bool,
    report: &mut Report,
) -> Vec<Inspection> {
    let mut all = Vec::new();
    for host in hosts::ALL {
        let found = host.inspect(places, project);
        for inspection in &found {
            let findings: Vec<Finding> = inspection
                .findings
                .iter()
                .cloned()
                .chain(other_folder(inspection, home))
                .chain(no_keeper(inspection))
                .collect();
            if findings.is_empty() {
                report.pass(host.word(), summary(inspection));
            }
            report.findings.extend(findings);
        }
        if found.iter().any(|inspection| !inspection.hooks.is_empty()) {
            let program = canary::program(host, env::var_os("PATH").as_deref());
            let found = match &program {
                Some(program) => versions::found(host, program).await,
                None => None,
            };
            report.add(host.word(), version(host, found.as_deref()));
            if let Some(program) = program.filter(|_| starts) {
                report.add(
                    host.word(),
                    tried(host, canary::try_host(host, &program, &home.hooks_folder()).await),
                );
            }
        }
        all.extend(found);
    }
    if all.is_empty() {
        report.find(
            Finding::problem(
                "hosts",
                "no agent on this machine has the hook",
                "agents run here without asking anybody",
                "if you want them to ask, run `countersign install` with the name of the host",
            )
            .as_note(),
        );
    }
    all
}

/// What a host did with a harmless command that the hook refused.
fn tried(host: Host, seen: std::io::Result<Seen>) -> Result<String, Finding> {
    let name = host.name();
    let again = format!("run `countersign install {}`, and `countersign doctor` again", host.word());
    match seen {
        Ok(Seen::Stopped) => {
            Ok(format!("{name} was started, tried a harmless command, and the hook stopped it"))
        }
        Ok(Seen::RanUnasked) => Err(Finding::problem(
            host.word(),
            format!("{name} ran a harmless command without asking the hook"),
            "agents in it do what they want",
            match host.canary.unasked {
                Some(first) => format!("{first}, or {again}"),
                None => again,
            },
        )),
        Ok(Seen::RanDespite) => Err(Finding::problem(
            host.word(),
            format!("{name} asked the hook about a harmless command, was refused, and ran it"),
            "a rejection stops nothing",
            format!("don't let agents run in it; use a version that was checked, or {again}"),
        )),
        Ok(Seen::NotTried(said)) => Err(Finding::problem(
            host.word(),
            format!("{name} was started and did not try the harmless command: {}", visible(&said)),
            "whether a refusal stops it is not known",
            "start it yourself, look at what it says, and run `countersign doctor` again",
        )
        .as_note()),
        Err(error) => Err(Finding::problem(
            host.word(),
            format!("{name} could not be tried: {error}"),
            "whether a refusal stops it is not known",
            "look at the reason, and run `countersign doctor` again",
        )
        .as_note()),
    }
}

/// A hook that reads rules and profiles elsewhere than the person who runs the doctor. That of the machine's keeper reads none.
fn other_folder(inspection: &Inspection, home: &Home) -> Option<Finding> {
    if inspection.keeper() == Some(KeeperPlace::System) {
        return None;
    }
    let line = inspection.hooks.iter().find_map(|hook| hook.line.as_ref())?;
    let folder = line.place.home().ok()?.folder().to_owned();
    (folder != home.folder()).then(|| {
        Finding::problem(
            inspection.host.word,
            format!("the hook uses {}, and you use {}", folder.display(), home.folder().display()),
            "other rules decide about agents, and other people are asked",
            match inspection.is_managed {
                true => {
                    "unset COUNTERSIGN_HOME and XDG_DATA_HOME: a hook for every user takes the usual folder"
                        .to_owned()
                }
                false => format!("run `countersign install {}` again", inspection.host.word),
            },
        )
    })
}

/// A hook that asks a keeper which does not answer.
fn no_keeper(inspection: &Inspection) -> Option<Finding> {
    let keeper = inspection.keeper()?;
    let line = inspection.hooks.iter().find_map(|hook| hook.line.as_ref())?;
    let socket = CallSocket::of_line(keeper, &line.place).ok()?;
    let error = socket.connect(KEEPER_TIME).err()?;
    Some(Finding::problem(
        inspection.host.word,
        format!("the hook asks a keeper, and none answers at {}: {error}", socket.path().display()),
        "every call of an agent is denied",
        format!("start it with `{}`", socket.remedy()),
    ))
}

fn summary(inspection: &Inspection) -> String {
    let place = if inspection.is_managed { "for every user" } else { "for you" };
    let mode = inspection.mode().map(|mode| format!(", mode {mode}")).unwrap_or_default();
    let events = inspection.hooks.len();
    let keeper = if inspection.keeper().is_some() { ", and the keeper decides" } else { "" };
    format!("the hook is installed {place} in {}{mode}, events: {events}{keeper}", inspection.file.display())
}

/// What is so, for programs.
pub fn fact(inspection: &Inspection) -> Value {
    json!({
        "host": inspection.host.word,
        "managed": inspection.is_managed,
        "file": inspection.file,
        "mode": inspection.mode().map(Mode::word),
        "keeper": inspection.keeper().map(KeeperPlace::word),
        "timeoutSeconds": inspection.timeout().map(|timeout| timeout.as_secs()),
        "events": inspection.hooks.iter().map(|hook| hook.event.as_str()).collect::<Vec<_>>(),
    })
}

fn version(host: Host, found: Option<&str>) -> Result<String, Finding> {
    let checked = host.tested_versions;
    let list = checked.join(" and ");
    match found {
        Some(found) if checked.contains(&found) => {
            Ok(format!("{} {found} is a version that was checked", host.name()))
        }
        Some(found) => Err(Finding::problem(
            host.word(),
            format!("{} is {found}; the hook was checked with {list}", host.name()),
            "hosts change what they make of a hook's answer from version to version",
            "try it with a harmless command that you reject, and see that it does not run",
        )
        .as_note()),
        None => Err(Finding::problem(
            host.word(),
            format!("`{} --version` does not answer", host.word()),
            format!("whether {} is a version that was checked ({list}) is not known", host.name()),
            "put it on the search path, or uninstall the hook if the host is gone",
        )
        .as_note()),
    }
}
