//! One rule: what stands in it, and what is wrong with that.

use std::{
    path::{Component, Path, PathBuf},
    time::Duration,
};

use countersign_client::{
    audience::{Turn, Verify},
    pattern::Pattern,
    payload::EffectKind,
    shell,
};
use countersign_wire::{artifact::Loudness, id::ApproverId};
use serde::Deserialize;

use super::{glob::Glob, ruling::Verdict, texts};
use crate::tool::moment;

/// Whose file it is, which decides what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's own, which may allow.
    User,
    /// A repository's, which can only tighten.
    Repository,
    /// The administrator's, which the others can only tighten.
    Administrator,
}

/// One rule, with everything in it checked.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// The file and the line.
    pub(super) place: String,
    /// Whose rule it is.
    pub(super) owner: Owner,
    pub(super) verdict: Verdict,
    /// Patterns of names; empty for every tool.
    pub(super) tools: Vec<String>,
    pub(super) command: Option<Pattern>,
    pub(super) path: Option<Glob>,
    /// The root of the repository in which an agent must work, as a path without links; only of a rule that allows.
    pub(super) repository: Option<PathBuf>,
    /// For allow: dangerous effects that it covers. Otherwise effects of which the call must have one.
    pub(super) effects: Vec<EffectKind>,
    pub(super) reason: Option<String>,
    /// Whom to ask, if it is a rule that asks.
    pub(super) people: Vec<Turn>,
    /// How loudly; `None` if it does not say.
    pub(super) ring: Option<Loudness>,
    /// Whether an approval needs a person whom their device has verified.
    pub(super) verify: Verify,
}

/// One rule as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What the rule says.
    pub verdict: Verdict,
    /// What it is for.
    pub what: String,
    /// A file and a line, or `built in`.
    pub place: String,
}

impl Line {
    /// That every approval needs the lock of a device.
    pub(super) fn needs_lock(place: String) -> Self {
        Self { verdict: Verdict::Ask, what: format!("whatever is asked for; {NEEDS_LOCK}"), place }
    }
}

impl Rule {
    /// As people read it.
    pub(super) fn line(&self) -> Line {
        Line { verdict: self.verdict, what: self.describe(), place: self.place.clone() }
    }

    fn describe(&self) -> String {
        let mut parts = Vec::new();
        if !self.tools.is_empty() {
            parts.push(format!("tool {}", self.tools.join(" or ")));
        }
        if let Some(pattern) = &self.command {
            parts.push(format!("command `{}`", pattern.words().join(" ")));
        }
        if let Some(glob) = &self.path {
            parts.push(format!("path {}", glob.text()));
        }
        if let Some(root) = &self.repository {
            parts.push(format!("in {}", root.display()));
        }
        if !self.effects.is_empty() {
            let names: Vec<&str> = self.effects.iter().map(|kind| kind.as_str()).collect();
            let word = if self.verdict == Verdict::Allow { "even if it" } else { "effect" };
            parts.push(format!("{word} {}", names.join(" or ")));
        }
        let what = match parts.is_empty() {
            true => "every call".to_owned(),
            false => parts.join(", "),
        };
        match self.verify {
            Verify::Usual => what,
            Verify::Person => format!("{what}; {NEEDS_LOCK}"),
        }
    }
}

/// That a device without a lock does not approve it.
const NEEDS_LOCK: &str = "approvals need the device lock";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTurn {
    person: String,
    after: Option<String>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    verdict: RawVerdict,
    tool: Option<OneOrMore>,
    command: Option<String>,
    path: Option<String>,
    repository: Option<String>,
    effect: Option<OneOrMore>,
    reason: Option<String>,
    ask: Option<Vec<RawTurn>>,
    ring: Option<String>,
    verify: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum RawVerdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::More(list) => list,
        }
    }
}

/// What a repository is told that names people.
pub(super) const NO_PEOPLE: &str =
    "a repository can't say whom to ask, or how loudly; put it into your own file";

/// What a rule says, if it may be said in a file of its owner.
pub(super) fn check(raw: RawRule, place: String, owner: Owner, home: Option<&Path>) -> Result<Rule, String> {
    let verdict = match raw.verdict {
        RawVerdict::Allow => Verdict::Allow,
        RawVerdict::Ask => Verdict::Ask,
        RawVerdict::Deny => Verdict::Deny,
    };
    if owner == Owner::Repository && verdict == Verdict::Allow {
        return Err(
            "a repository's file can only tighten: `ask` and `deny`. Put what you allow into your own file"
                .to_owned(),
        );
    }
    if raw.ring.is_some() && owner == Owner::Repository {
        return Err(NO_PEOPLE.to_owned());
    }
    if raw.ring.is_some() && verdict != Verdict::Ask {
        return Err("only a rule with verdict `ask` says how loudly".to_owned());
    }
    // It makes an approval harder and never easier, so a repository may say it too.
    if raw.verify.is_some() && verdict != Verdict::Ask {
        return Err("only a rule with verdict `ask` says who must be verified".to_owned());
    }
    // Whoever is elsewhere can still reach into a repository, so it would be no limit to what is denied.
    if raw.repository.is_some() && verdict != Verdict::Allow {
        return Err("only a rule with verdict `allow` says in which repository".to_owned());
    }
    let people = match raw.ask {
        None => Vec::new(),
        Some(_) if owner == Owner::Repository => return Err(NO_PEOPLE.to_owned()),
        Some(_) if verdict != Verdict::Ask => {
            return Err("only a rule with verdict `ask` says whom to ask".to_owned());
        }
        Some(list) => turns(list)?,
    };
    let tools = raw.tool.map(OneOrMore::into_list).unwrap_or_default();
    if tools.iter().any(String::is_empty) {
        return Err("a tool has a name, or `*`".to_owned());
    }
    let effects = raw.effect.map(OneOrMore::into_list).unwrap_or_default();
    let rule = Rule {
        place,
        owner,
        verdict,
        tools,
        command: raw.command.as_deref().map(pattern).transpose()?,
        path: raw
            .path
            .map(|text| Glob::new(&text, home).map_err(|why| format!("the path {text:?} {why}")))
            .transpose()?,
        repository: raw.repository.map(|text| root(&text, home)).transpose()?,
        effects: effects.iter().map(|name| effect(name)).collect::<Result<_, _>>()?,
        reason: raw.reason,
        people,
        ring: loudness(raw.ring)?,
        verify: verify(raw.verify.as_deref())?,
    };
    if verdict == Verdict::Allow {
        check_allow(&rule)?;
    }
    Ok(rule)
}

/// What is allowed must be named.
fn check_allow(rule: &Rule) -> Result<(), String> {
    let names_nothing = rule.tools.iter().all(|tool| tool.chars().all(|char| char == '*'));
    if names_nothing && rule.command.is_none() && rule.path.is_none() {
        return Err(
            "an allow rule says what it allows: a `tool` that is not only `*`, a `command` or a `path`"
                .to_owned(),
        );
    }
    let words = rule.command.as_ref().map(Pattern::words).unwrap_or_default();
    let has_star = words.iter().any(|word| word.contains('*'));
    let is_text = words.iter().any(|word| word.starts_with('-') && word.contains('c'));
    if words.iter().any(|word| texts::is_shell(word)) && is_text && has_star {
        return Err("this allows any text of a shell; name the commands in it instead".to_owned());
    }
    Ok(())
}

/// The folder of a repository, as an absolute path.
fn root(text: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    let wrong = |why: &str| format!("the repository {text:?} {why}");
    let path = match text.strip_prefix("~/") {
        Some(rest) => home.ok_or_else(|| wrong("begins with ~, and this user has no home"))?.join(rest),
        None => PathBuf::from(text),
    };
    match path.is_absolute() && !path.components().any(|part| part == Component::ParentDir) {
        true => Ok(path),
        false => Err(wrong("is no absolute path, or one from ~/, without `..`")),
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let words = shell::words(text).ok_or_else(|| {
        format!("the command {text:?} is not plain words as a shell reads them, with `*` and `**`")
    })?;
    Pattern::new(words).map_err(|error| format!("the command {text:?}: {error}"))
}

/// The effects that rules ask for. People are told more exactly.
const EFFECTS: &[EffectKind] = &[
    EffectKind::Deletes,
    EffectKind::Overwrites,
    EffectKind::LeavesRepository,
    EffectKind::Network,
    EffectKind::Publishes,
    EffectKind::RewritesHistory,
    EffectKind::TouchesSecrets,
    EffectKind::EscalatesPrivileges,
    EffectKind::LoadsCode,
];

fn effect(name: &str) -> Result<EffectKind, String> {
    EFFECTS.iter().copied().find(|kind| kind.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = EFFECTS.iter().map(|kind| kind.as_str()).collect();
        format!("there is no effect {name:?}; there are {}", known.join(", "))
    })
}

/// How loudly to ask, from its word.
pub(super) fn loudness(word: Option<String>) -> Result<Option<Loudness>, String> {
    let parse = |word: String| {
        let known = || Loudness::ALL.map(Loudness::as_str).join(", ");
        Loudness::of_word(&word).ok_or_else(|| format!("`ring` is one of {}, and not {word:?}", known()))
    };
    word.map(parse).transpose()
}

/// Who must be verified, from the one word that there is.
pub(super) fn verify(word: Option<&str>) -> Result<Verify, String> {
    match word {
        None => Ok(Verify::Usual),
        Some("person") => Ok(Verify::Person),
        Some(other) => Err(format!("`verify` is \"person\", or is left out, and not {other:?}")),
    }
}

/// Whom to ask, and when, in the order of their turns.
pub(super) fn turns(list: Vec<RawTurn>) -> Result<Vec<Turn>, String> {
    let mut turns: Vec<Turn> = Vec::new();
    for RawTurn { person, after } in list {
        ApproverId::new(person.as_str()).map_err(|rule| format!("the person {person:?} {rule}"))?;
        if turns.iter().any(|turn| turn.person == person) {
            return Err(format!("{person} is named twice"));
        }
        let after = after.map_or(Ok(Duration::ZERO), |text| {
            moment::duration(&text).map_err(|rule| format!("`after` {rule}"))
        })?;
        if turns.last().is_some_and(|last| last.after > after) {
            return Err(format!(
                "{person} would be asked before the person above; put people in the order of `after`"
            ));
        }
        turns.push(Turn { person, after });
    }
    match turns.is_empty() {
        true => Err("nobody is named; leave it out to ask everybody who is paired".to_owned()),
        false => Ok(turns),
    }
}
