//! What the administrator of a machine has laid down (docs/policy.md). Rules of users and repositories can only tighten it.
//!
//! It is one file of a fixed path, which belongs to root. If it is there and can't be used, everything is denied.

use std::{cmp::Ordering, io, os::unix::fs::MetadataExt as _, path::Path};

use countersign_client::{
    audience::{Turn, Verify},
    profile::{Facts, GatewayUrl},
};
use countersign_wire::{
    id::{ApproverId, TenantId},
    machine::{HookMode, MachinePolicy, PolicyId, PolicyState},
};
use serde::Deserialize;
use toml::Spanned;

use super::{
    file::{MAX_BYTES, RulesError, Source},
    rule::{Line, Owner, RawRule, Rule, verify},
    ruling::Verdict,
};
use crate::{hook_line::mode::Mode, tool::files};

/// Where it is. No variable moves it.
pub const FILE: &str = "/etc/countersign/policy.toml";

/// The place of what rules of others may not allow.
pub(super) const UNLISTED: &str = "/etc/countersign/policy.toml: unlisted";

/// The place of whom it lets be asked.
pub(super) const PEOPLE: &str = "/etc/countersign/policy.toml: ask";

/// The place of whom devices must have verified.
pub(super) const VERIFY: &str = "/etc/countersign/policy.toml: verify";

/// Who must own it.
const ROOT: u32 = 0;

/// Who seems to own what belongs to nobody in a namespace of users.
const NOBODY: u32 = 65_534;

/// The version of this program.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the administrator of a machine has laid down.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
    requires_gate: bool,
    /// Who may be asked; empty for everybody.
    people: Vec<String>,
    gateway: Option<GatewayUrl>,
    tenant: Option<TenantId>,
    minimum_version: Option<String>,
    /// Whether rules of others may allow only what its own rules allow.
    asks_unlisted: bool,
    /// Whether every approval needs a person whom their device has verified.
    verify: Verify,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicy {
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
    mode: Option<Spanned<String>>,
    ask: Option<Spanned<Vec<String>>>,
    gateway: Option<Spanned<String>>,
    tenant: Option<Spanned<String>>,
    minimum_version: Option<Spanned<String>>,
    unlisted: Option<Spanned<String>>,
    verify: Option<Spanned<String>>,
}

/// What is read first: the rest may be for a newer program.
#[derive(Deserialize)]
struct RawVersion {
    minimum_version: Option<Spanned<String>>,
}

impl Policy {
    /// The policy of this machine; `None` if there is none. `home` is the user's, for paths that begin with `~`.
    pub fn of_machine(home: Option<&Path>) -> Result<Option<Self>, RulesError> {
        files::of_this_process(|| Self::read(Path::new(FILE), ROOT, home))
    }

    /// The policy in a file that must belong to this user.
    pub(super) fn read(path: &Path, root: u32, home: Option<&Path>) -> Result<Option<Self>, RulesError> {
        match text_of(path, root)? {
            Some(text) => parse(source(&text, path), home).map(Some),
            None => Ok(None),
        }
    }

    /// Whether hooks that were installed as relays are gates.
    pub fn requires_gate(&self) -> bool {
        self.requires_gate
    }

    /// Who may be asked; empty for everybody who is paired.
    pub fn people(&self) -> &[String] {
        &self.people
    }

    /// The gateway to ask through; `None` for any.
    pub fn gateway(&self) -> Option<&GatewayUrl> {
        self.gateway.as_ref()
    }

    /// The tenant to ask in; `None` for any.
    pub fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref()
    }

    /// The oldest version of this program that it is for; `None` for any.
    pub fn minimum_version(&self) -> Option<&str> {
        self.minimum_version.as_deref()
    }

    /// Whether rules of users may allow only what its own rules allow.
    pub fn asks_unlisted(&self) -> bool {
        self.asks_unlisted
    }

    /// Whether every approval needs a person whom their device has verified.
    pub fn verify(&self) -> Verify {
        self.verify
    }

    /// What its rules say, as people read it.
    pub fn lines(&self) -> Vec<Line> {
        self.rules.iter().map(Rule::line).collect()
    }

    /// That others may allow only what it allows, if that is so.
    pub(super) fn unlisted_line(&self) -> Option<Line> {
        self.asks_unlisted.then(|| Line {
            verdict: Verdict::Ask,
            what: "what no rule of the policy allows, whatever your rules allow".to_owned(),
            place: UNLISTED.to_owned(),
        })
    }

    /// That every approval needs the lock of a device, if that is so.
    pub(super) fn verify_line(&self) -> Option<Line> {
        (self.verify == Verify::Person).then(|| Line::needs_lock(VERIFY.to_owned()))
    }

    /// Of these people, those who may be asked. The first of them is asked at once.
    pub(super) fn allowed(&self, people: Vec<Turn>) -> Result<Vec<Turn>, String> {
        if self.people.is_empty() {
            return Ok(people);
        }
        if people.is_empty() {
            return Ok(self.people.iter().map(Turn::at_once).collect());
        }
        let (allowed, others): (Vec<Turn>, Vec<Turn>) =
            people.into_iter().partition(|turn| self.people.contains(&turn.person));
        let Some(first) = allowed.iter().map(|turn| turn.after).min() else {
            let others: Vec<&str> = others.iter().map(|turn| turn.person.as_str()).collect();
            let (others, people) = (others.join(", "), self.people.join(", "));
            return Err(format!(
                "your rules ask {others}, and the policy of this machine lets nobody be asked but {people}"
            ));
        };
        let turn = |turn: Turn| Turn { after: turn.after.saturating_sub(first), ..turn };
        Ok(allowed.into_iter().map(turn).collect())
    }

    /// Why nobody is asked with a profile; `None` if it is right.
    pub(super) fn against_profile(&self, facts: &Facts) -> Option<String> {
        let wrong = |what: &str, is: &str, wanted: &str| {
            format!("the policy of this machine asks with the {what} {wanted}, and the profile is for {is}")
        };
        let gateway = self.gateway.as_ref().filter(|wanted| **wanted != facts.gateway);
        let tenant = self.tenant.as_ref().filter(|wanted| **wanted != facts.tenant);
        gateway
            .map(|wanted| wrong("gateway", facts.gateway.as_str(), wanted.as_str()))
            .or_else(|| tenant.map(|wanted| wrong("tenant", facts.tenant.as_str(), wanted.as_str())))
    }
}

/// That it is the policy that says so.
pub(super) fn said(reason: &str) -> String {
    format!("the policy of this machine: {reason}")
}

/// The mode that a hook has: the one that it was installed with, unless the policy of this machine requires a gate.
pub fn mode(installed: Mode) -> Mode {
    match files::of_this_process(|| requires_gate(Path::new(FILE), ROOT)) {
        true => Mode::Gate,
        false => installed,
    }
}

/// Whether a policy requires gates. One that can't be used denies everything, which needs a gate.
pub(super) fn requires_gate(path: &Path, root: u32) -> bool {
    let of_text = |text: &str| {
        let raw: RawPolicy = source(text, path).read()?;
        Ok::<_, RulesError>(raw.mode.is_some())
    };
    match text_of(path, root) {
        Ok(None) => false,
        Ok(Some(text)) => of_text(&text).unwrap_or(true),
        Err(_) => true,
    }
}

/// What everybody may hear of the policy of this machine.
pub fn report() -> MachinePolicy {
    files::of_this_process(|| report_of(Path::new(FILE), ROOT))
}

pub(super) fn report_of(path: &Path, root: u32) -> MachinePolicy {
    let said = |state, id, mode| MachinePolicy { state, id, mode };
    let text = match text_of(path, root) {
        Ok(None) => return said(PolicyState::None, None, None),
        Err(_) => return said(PolicyState::Unusable, None, None),
        Ok(Some(text)) => text,
    };
    let id = Some(PolicyId::of(text.as_bytes()));
    // Whose home `~` is changes nothing about whether it can be used.
    match parse(source(&text, path), Some(Path::new("/"))) {
        Ok(policy) => said(PolicyState::InForce, id, policy.requires_gate.then_some(HookMode::Gate)),
        Err(_) => said(PolicyState::Unusable, id, None),
    }
}

fn source<'a>(text: &'a str, path: &'a Path) -> Source<'a> {
    Source { text, path, owner: Owner::Administrator }
}

/// The text of a file that only this user can have changed; `None` if it is not there.
fn text_of(path: &Path, root: u32) -> Result<Option<String>, RulesError> {
    let fails =
        |path: &Path, what: String| RulesError { place: path.display().to_string(), what, denies: true };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            fails(path, format!("can't be read: {error}; let root make it readable for everybody"))
        }
        _ => fails(path, format!("can't be read: {error}; let root put it right")),
    };
    let facts = match files::symlink_metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if !facts.is_file() || facts.len() > MAX_BYTES {
        return Err(fails(
            path,
            format!("is no file of at most {} KB; links do not count", MAX_BYTES / 1024),
        ));
    }
    let folder = path.parent().unwrap_or(path);
    let of_folder = files::symlink_metadata(folder).map_err(unreadable)?;
    if !of_folder.is_dir() {
        return Err(fails(folder, "is no folder; links do not count".to_owned()));
    }
    for (path, facts) in [(folder, of_folder), (path, facts)] {
        let shown = path.display();
        if facts.uid() == NOBODY && root != NOBODY {
            let what = "has an owner that can't be seen in a namespace of users; install hooks with `--keeper`, and let a keeper decide outside of it";
            return Err(fails(path, what.to_owned()));
        }
        if facts.uid() != root {
            return Err(fails(
                path,
                format!("belongs to the user {}; let root run `chown {root} {shown}`", facts.uid()),
            ));
        }
        if facts.mode() & 0o022 != 0 {
            return Err(fails(path, format!("can be changed by others; let root run `chmod go-w {shown}`")));
        }
    }
    files::read_text(path, MAX_BYTES).map(Some).map_err(unreadable)
}

fn parse(source: Source<'_>, home: Option<&Path>) -> Result<Policy, RulesError> {
    if let Ok(RawVersion { minimum_version: Some(wanted) }) = source.read::<RawVersion>() {
        let start = wanted.span().start;
        check_version(wanted.get_ref(), OWN_VERSION).map_err(|what| source.wrong(start, what))?;
    }
    let raw: RawPolicy = source.read()?;
    Ok(Policy {
        rules: source.rules(raw.rule, home)?,
        requires_gate: given(source, raw.mode, |text| word(&text, "mode", "gate"))?.is_some(),
        people: given(source, raw.ask, people)?.unwrap_or_default(),
        gateway: given(source, raw.gateway, |text| {
            GatewayUrl::new(&text).map_err(|error| error.to_string())
        })?,
        tenant: given(source, raw.tenant, |text| {
            TenantId::new(text.as_str()).map_err(|rule| format!("the tenant {text:?} {rule}"))
        })?,
        minimum_version: raw.minimum_version.map(Spanned::into_inner),
        asks_unlisted: given(source, raw.unlisted, |text| word(&text, "unlisted", "ask"))?.is_some(),
        verify: given(source, raw.verify, |text| verify(Some(&text)))?.unwrap_or_default(),
    })
}

/// What is given, checked.
fn given<T, U>(
    source: Source<'_>,
    raw: Option<Spanned<T>>,
    check: impl FnOnce(T) -> Result<U, String>,
) -> Result<Option<U>, RulesError> {
    let Some(raw) = raw else { return Ok(None) };
    let start = raw.span().start;
    check(raw.into_inner()).map(Some).map_err(|what| source.wrong(start, what))
}

fn word(text: &str, name: &str, known: &str) -> Result<(), String> {
    match text == known {
        true => Ok(()),
        false => Err(format!("`{name}` is {known:?}, or is left out, and not {text:?}")),
    }
}

fn people(list: Vec<String>) -> Result<Vec<String>, String> {
    if list.is_empty() {
        return Err("nobody is named; leave `ask` out to let everybody be asked who is paired".to_owned());
    }
    match list.iter().find_map(|person| Some((person, ApproverId::new(person.as_str()).err()?))) {
        Some((person, rule)) => Err(format!("the person {person:?} {rule}")),
        None => Ok(list),
    }
}

/// Whether a version is at least another.
fn check_version(wanted: &str, own: &str) -> Result<(), String> {
    let parts = |text: &str| text.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>();
    let Some(least) = parts(wanted).filter(|parts| parts.len() == 3) else {
        return Err(format!("`minimum_version` is three numbers, such as \"1.2.0\", and not {wanted:?}"));
    };
    // What comes before a release is older than it.
    let (numbers, is_release) = match own.split_once('-') {
        Some((numbers, _)) => (numbers, false),
        None => (own, true),
    };
    let is_enough = match parts(numbers).unwrap_or_default().cmp(&least) {
        Ordering::Less => false,
        Ordering::Equal => is_release,
        Ordering::Greater => true,
    };
    match is_enough {
        true => Ok(()),
        false => Err(format!("needs countersign {wanted} or newer, and this is {own}; install a newer one")),
    }
}
