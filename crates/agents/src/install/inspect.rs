//! What is installed, and what is wrong with it. Nothing is changed, and no host is started.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::{
    hook_entries::{Entries, Format, Found},
    inspection::{Inspection, InstalledHook, decides},
    program::{self, Trusted},
};
use crate::{
    hook_line::{HookLine, host_name::HostName, words_of},
    tool::finding::Finding,
};

/// One place in which the hook of a host can be.
#[derive(Debug)]
pub struct InspectedPlace {
    pub host: HostName,
    /// For every user of the machine.
    pub is_managed: bool,
    pub file: PathBuf,
}

/// How a host writes down how long it waits.
#[derive(Debug, Clone, Copy)]
pub struct LimitMember {
    pub key: &'static str,
    pub units_per_second: u64,
}

impl InspectedPlace {
    /// A problem that installing again solves.
    pub fn finding(&self, what: impl Into<String>, why: impl Into<String>) -> Finding {
        Finding::problem(self.host.word, what, why, self.again())
    }

    fn again(&self) -> String {
        let managed = if self.is_managed { " --managed" } else { "" };
        format!("run `countersign install {}{managed}` again", self.host.word)
    }

    /// What was found here.
    pub fn inspection(&self, hooks: Vec<InstalledHook>, findings: Vec<Finding>) -> Inspection {
        let (host, is_managed, file) = (self.host, self.is_managed, self.file.clone());
        Inspection { host, is_managed, file, hooks, findings }
    }

    /// The text of the file if our name is in it; the rest is none of our business.
    pub fn text(&self) -> Option<Result<String, Inspection>> {
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

    /// A file that its host can't read.
    pub fn broken(&self, line: usize, what: &str) -> Inspection {
        let mut finding = self.finding(
            format!("{} is broken in line {line}: {what}", self.file.display()),
            format!("{} then runs without any hook, or not at all", self.host.name),
        );
        finding.remedy = format!("repair that line, then {}", self.again());
        self.inspection(Vec::new(), vec![finding])
    }

    /// Looks at our entries in a file of JSON.
    pub fn json(
        &self,
        format: Format,
        entries: impl Fn(&HookLine) -> Entries,
        limit: LimitMember,
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
            line: words_of(&found.handler).and_then(|words| HookLine::from_words(&words, self.host)),
            limit: found
                .handler
                .get(limit.key)
                .and_then(Value::as_u64)
                .map(|units| Duration::from_millis(units.saturating_mul(1_000) / limit.units_per_second)),
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
                    format!("{} does not say when that happens, or goes on without asking", self.host.name),
                )),
                Some(found) if found.entry != entry.to_value() => {
                    findings.push(self.changed(&format!("the hook for {event} in line {}", found.line)));
                }
                Some(_) => {}
            }
        }
        findings
    }

    /// Something of ours that is not as it was installed.
    pub fn changed(&self, what: &str) -> Finding {
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
                    self.host.name,
                    limit.as_secs(),
                    hook.event,
                    line.host_timeout.as_secs()
                ),
                "a hook that is too late is ignored, and the call goes on without an answer",
            )
        })
    }

    /// What is wrong with the program in a line.
    pub fn program(&self, line: &HookLine) -> Vec<Finding> {
        let path = Path::new(&line.program);
        let Ok(real) = fs::canonicalize(path) else {
            return vec![self.finding(
                format!("the program that {} should run does not exist: {}", self.host.name, line.program),
                "without it calls go on without an answer",
            )];
        };
        let mut findings = Vec::new();
        let real_path = |path: String| fs::canonicalize(path).ok();
        let asks_keeper = line.keeper.is_some();
        // Where the smaller program was not there when it was installed, it is this one.
        let ours =
            [program::for_hooks(asks_keeper), program::current()].map(|path| path.ok().and_then(real_path));
        if !ours.contains(&Some(real.clone())) {
            findings.push(self.finding(
                format!("{} runs {}, which is not this program", self.host.name, line.program),
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
    pub fn others(&self) -> Option<Finding> {
        let trusted = if self.is_managed { Trusted::Root } else { Trusted::User };
        let part = program::changeable_by_others(&self.file, trusted).ok()??;
        Some(changeable(self.host, &part, "the hook could be taken out without you"))
    }
}

fn changeable(host: HostName, part: &Path, why: &str) -> Finding {
    Finding::problem(
        host.word,
        format!("others than its owner can change {}", part.display()),
        why,
        format!("take that right away: `chmod go-w {}`, and check its owner", part.display()),
    )
}
