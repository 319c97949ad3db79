//! What is installed, and what is wrong with it. Nothing is changed, and no host is started.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::{
    claude, codex, copilot, gemini,
    hook_entries::{Entries, Format, Found},
    hook_line::{HookLine, words_of},
    inspection::{Inspection, InstalledHook, decides},
    opencode,
    places::Places,
    program::{self, Trusted},
    switches, toml_text,
};
use crate::{agent::host::Host, finding::Finding};

/// How one place is checked.
struct Place {
    host: Host,
    is_managed: bool,
    file: PathBuf,
}

/// Every place where the hook of a host is, with what is wrong there. Empty if it is not installed.
pub fn inspect(places: &Places, host: Host, project: &Path) -> Vec<Inspection> {
    let place = |is_managed, file| Place { host, is_managed, file };
    let found = match host {
        Host::Claude => [false, true]
            .map(|managed| {
                place(managed, claude::file(places, managed)).json(
                    claude::FORMAT,
                    claude::entries,
                    "timeout",
                    1,
                )
            })
            .into(),
        Host::Copilot => [false, true]
            .map(|managed| {
                let place = place(managed, copilot::file(places, managed));
                place.json(copilot::FORMAT, copilot::entries, "timeoutSec", 1)
            })
            .into(),
        Host::Gemini => {
            vec![place(false, gemini::file(places)).json(gemini::FORMAT, gemini::entries, "timeout", 1_000)]
        }
        Host::Codex => vec![
            place(false, codex::file(places)).json(codex::FORMAT, codex::entries, "timeout", 1),
            place(true, codex::requirements_file(places)).requirements(),
        ],
        Host::Opencode => vec![place(false, opencode::file(places)).plugin()],
    };
    let mut found: Vec<Inspection> = found.into_iter().flatten().collect();
    for inspection in &mut found {
        inspection.findings.extend(switches::check(places, inspection, project));
    }
    found.extend(orphaned_policy(places, host, &found));
    found
}

/// Gemini's policy without the hook that it relies on.
fn orphaned_policy(places: &Places, host: Host, found: &[Inspection]) -> Option<Inspection> {
    let file = gemini::policy_file(places);
    let is_orphaned =
        host == Host::Gemini && found.iter().all(|place| place.hooks.is_empty()) && file.exists();
    is_orphaned.then(|| {
        let finding = Finding::problem(
            host.word(),
            format!(
                "{} lets Gemini CLI run commands without asking, and the hook is not installed",
                file.display()
            ),
            "nobody is asked about anything",
            "run `countersign install gemini --mode gate`, or `countersign uninstall gemini`",
        );
        Inspection { host, is_managed: false, file, hooks: Vec::new(), findings: vec![finding] }
    })
}

impl Place {
    fn finding(&self, what: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::problem(self.host.word(), what, why, self.again())
    }

    fn again(&self) -> String {
        let managed = if self.is_managed { " --managed" } else { "" };
        format!("run `countersign install {}{managed}` again", self.host.word())
    }

    fn inspection(&self, hooks: Vec<InstalledHook>, findings: Vec<Finding>) -> Inspection {
        let (host, is_managed, file) = (self.host, self.is_managed, self.file.clone());
        Inspection { host, is_managed, file, hooks, findings }
    }

    /// The text of the file if our name is in it; the rest is none of our business.
    fn text(&self) -> Option<Result<String, Inspection>> {
        let failed = |error: io::Error| {
            let what = format!("{} can't be read: {error}", self.file.display());
            self.inspection(
                Vec::new(),
                vec![self.finding(what, "whether the hook is installed is not known")],
            )
        };
        match fs::read_to_string(&self.file) {
            Ok(text) if text.contains("countersign") => Some(Ok(text)),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(failed(error))),
        }
    }

    fn broken(&self, line: usize, what: &str) -> Inspection {
        let mut finding = self.finding(
            format!("{} is broken in line {line}: {what}", self.file.display()),
            format!("{} then runs without any hook, or not at all", self.host.name()),
        );
        finding.remedy = format!("repair that line, then {}", self.again());
        self.inspection(Vec::new(), vec![finding])
    }

    fn json(
        &self,
        format: Format,
        entries: impl Fn(&HookLine) -> Entries,
        limit_key: &str,
        units_per_second: u64,
    ) -> Option<Inspection> {
        let text = match self.text()? {
            Ok(text) => text,
            Err(inspection) => return Some(inspection),
        };
        let found = match format.find(&text) {
            Ok(found) if found.is_empty() => return None,
            Ok(found) => found,
            Err(problem) => return Some(self.broken(problem.line, &problem.what)),
        };
        let hook = |found: &Found| InstalledHook {
            event: found.event.clone(),
            line: words_of(&found.handler).and_then(|words| HookLine::from_words(&words)),
            limit: found
                .handler
                .get(limit_key)
                .and_then(Value::as_u64)
                .map(|limit| Duration::from_millis(limit.saturating_mul(1_000) / units_per_second)),
        };
        let hooks: Vec<InstalledHook> = found.iter().map(hook).collect();
        let mut findings = Vec::new();
        match decides(&hooks) {
            Some(line) => {
                findings.extend(self.compare(&found, &entries(line)));
                findings.extend(self.program(line));
            }
            None => findings.push(self.changed("the line that decides about calls")),
        }
        findings.extend(hooks.iter().filter_map(|hook| self.limit(hook)));
        findings.extend(self.others());
        Some(self.inspection(hooks, findings))
    }

    /// What is missing from the file, and what is not as it was written.
    fn compare(&self, found: &[Found], expected: &Entries) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (event, entry) in expected {
            match found.iter().find(|found| found.event == *event) {
                None => findings.push(self.finding(
                    format!("{} has no hook for {event}", self.file.display()),
                    format!("{} does not say when that happens, or goes on without asking", self.host.name()),
                )),
                Some(found) if found.entry != entry.to_value() => {
                    findings.push(self.changed(&format!("the hook for {event} in line {}", found.line)));
                }
                Some(_) => {}
            }
        }
        findings
    }

    fn changed(&self, what: &str) -> Finding {
        self.finding(
            format!("{}: {what} is not as it was installed", self.file.display()),
            "somebody, or the agent, may have weakened it",
        )
    }

    fn limit(&self, hook: &InstalledHook) -> Option<Finding> {
        let (line, limit) = (hook.line.as_ref()?, hook.limit.unwrap_or_default());
        (limit < line.host_timeout).then(|| {
            self.finding(
                format!(
                    "{}: {} waits {} s for {}, and the hook believes that it has {} s",
                    self.file.display(),
                    self.host.name(),
                    limit.as_secs(),
                    hook.event,
                    line.host_timeout.as_secs()
                ),
                "a hook that is too late is ignored, and the call goes on without an answer",
            )
        })
    }

    fn program(&self, line: &HookLine) -> Vec<Finding> {
        let path = Path::new(&line.program);
        let Ok(real) = fs::canonicalize(path) else {
            return vec![self.finding(
                format!("the program that {} should run does not exist: {}", self.host.name(), line.program),
                "without it calls go on without an answer",
            )];
        };
        let mut findings = Vec::new();
        let this = program::current().ok().and_then(|this| fs::canonicalize(this).ok());
        if this.as_ref() != Some(&real) {
            findings.push(self.finding(
                format!("{} runs {}, which is not this program", self.host.name(), line.program),
                "it may be an old version, or not ours",
            ));
        }
        let trusted = if self.is_managed { Trusted::Root } else { Trusted::User };
        if let Ok(Some(part)) = program::changeable_by_others(path, trusted) {
            findings.push(changeable(self.host, &part, "the program that decides could be replaced"));
        }
        findings
    }

    /// Whether others can change the file itself.
    fn others(&self) -> Option<Finding> {
        let trusted = if self.is_managed { Trusted::Root } else { Trusted::User };
        let part = program::changeable_by_others(&self.file, trusted).ok()??;
        Some(changeable(self.host, &part, "the hook could be taken out without you"))
    }

    fn requirements(&self) -> Option<Inspection> {
        let text = match self.text()? {
            Ok(text) => text,
            Err(inspection) => return Some(inspection),
        };
        if let Err(problem) = toml_text::parse(&text) {
            return Some(self.broken(problem.line, &problem.what));
        }
        let block = match toml_text::find_block(&text, codex::MARKS) {
            Ok(found) => found.map(|(start, end)| &text[start..end])?,
            Err(problem) => return Some(self.broken(problem.line, &problem.what)),
        };
        let lines: Vec<&str> = block.lines().collect();
        let body = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default().join("\n") + "\n";
        let hooks: Vec<InstalledHook> = toml_text::parse(block)
            .ok()
            .and_then(|table| table.get("hooks")?.as_table().cloned())
            .into_iter()
            .flatten()
            .map(|(event, groups)| requirement(event, &groups))
            .collect();
        let mut findings = Vec::new();
        match decides(&hooks) {
            Some(line) if codex::block(line) != body => findings.push(self.changed("the marked part")),
            Some(line) => findings.extend(self.program(line)),
            None => findings.push(self.changed("the marked part")),
        }
        findings.extend(self.others());
        Some(self.inspection(hooks, findings))
    }

    fn plugin(&self) -> Option<Inspection> {
        let text = match self.text()? {
            Ok(text) => text,
            Err(inspection) => return Some(inspection),
        };
        let line = opencode::line_in(&text);
        let mut findings = Vec::new();
        match &line {
            Some(line) if opencode::content(line) == text => findings.extend(self.program(line)),
            _ => findings.push(self.changed("the plugin")),
        }
        findings.extend(self.others());
        let limit = line.as_ref().map(|line| line.host_timeout);
        let hook = InstalledHook { event: "tool.execute.before".to_owned(), line, limit };
        Some(self.inspection(vec![hook], findings))
    }
}

/// A hook in `requirements.toml`.
fn requirement(event: String, groups: &toml::Value) -> InstalledHook {
    let handler = groups.get(0).and_then(|group| group.get("hooks")?.get(0));
    let value = handler.and_then(|handler| handler.clone().try_into::<Value>().ok()).unwrap_or_default();
    let seconds = value.get("timeout").and_then(Value::as_u64);
    InstalledHook {
        event,
        line: words_of(&value).and_then(|words| HookLine::from_words(&words)),
        limit: seconds.map(Duration::from_secs),
    }
}

fn changeable(host: Host, part: &Path, why: &str) -> Finding {
    Finding::problem(
        host.word(),
        format!("others than its owner can change {}", part.display()),
        why,
        format!("take that right away: `chmod go-w {}`, and check its owner", part.display()),
    )
}
