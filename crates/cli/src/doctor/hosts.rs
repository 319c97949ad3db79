//! The hosts in which the hook is installed: their settings, and their versions.

use std::path::Path;

use serde_json::{Value, json};

use super::{report::Report, versions};
use crate::{
    agent::host::Host,
    finding::Finding,
    install::{inspect::inspect, inspection::Inspection, places::Places},
};

/// Looks at every host, and returns the facts for programs.
pub async fn check(places: &Places, project: &Path, report: &mut Report) -> Vec<Value> {
    let mut facts = Vec::new();
    for host in Host::ALL {
        let found = inspect(places, host, project);
        for inspection in &found {
            facts.push(fact(inspection));
            if inspection.findings.is_empty() {
                report.pass(host.word(), summary(inspection));
            }
            report.findings.extend(inspection.findings.iter().cloned());
        }
        if found.iter().any(|inspection| !inspection.hooks.is_empty()) {
            report.add(host.word(), version(host, versions::found(host).await.as_deref()));
        }
    }
    if facts.is_empty() {
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
    facts
}

fn summary(inspection: &Inspection) -> String {
    let place = if inspection.is_managed { "for every user" } else { "for you" };
    let mode = inspection.mode().map(|mode| format!(", mode {mode}")).unwrap_or_default();
    let events = inspection.hooks.len();
    format!("the hook is installed {place} in {}{mode}, events: {events}", inspection.file.display())
}

fn fact(inspection: &Inspection) -> Value {
    json!({
        "host": inspection.host.word(),
        "managed": inspection.is_managed,
        "file": inspection.file,
        "mode": inspection.mode().map(crate::install::hook_line::Mode::word),
        "timeoutSeconds": inspection.timeout().map(|timeout| timeout.as_secs()),
        "events": inspection.hooks.iter().map(|hook| hook.event.as_str()).collect::<Vec<_>>(),
    })
}

fn version(host: Host, found: Option<&str>) -> Result<String, Finding> {
    let checked = versions::checked(host);
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
