//! Rules that a person's answers suggest: what was asked again and again, and always approved.
//!
//! Nothing is put in force here. A rule is for one command in one repository. It has the words that were approved, and a star at most for
//! an operand that only names something. It is suggested only if no command that it covers was rejected, and if over everything that was
//! asked it would have allowed nothing that is dangerous or was not examined.

mod candidates;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use countersign_client::{
    pattern::Pattern,
    payload::{EffectKind, Invocation, Payload, State, Weight},
};
use countersign_wire::{hash::Sha256Hex, timestamp::Timestamp};

pub use self::candidates::Wanted;
use self::candidates::{Candidate, Known, Words, candidates, names_only, shown};
use super::{
    Rules, Verdict,
    file::{self, RulesError},
    rule::Owner,
    site::Site,
    texts::Texts,
};
use crate::calls::{
    call::{Action, Call},
    payload::{Reviewed, reviewed},
};

/// How many examples a suggestion has.
const MAX_EXAMPLES: usize = 3;

/// How much of its hash names a suggestion.
const ID_CHARS: usize = 12;

/// A call that a person was asked about, and what came of it.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The call as the agent wanted it.
    pub call: Call,
    /// How much care people were asked for.
    pub alarm: Weight,
    /// Whether the answer was yes.
    pub is_approved: bool,
    /// When it was answered.
    pub at: Timestamp,
}

/// A rule that would have answered calls that were always approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Names exactly this rule.
    pub id: String,
    /// The rule as it stands in a file.
    pub rule: String,
    /// The command that it is for.
    pub what: String,
    /// The only repository where it is in force.
    pub repository: PathBuf,
    /// How many questions it would have answered, perhaps together with others that are suggested.
    pub times: usize,
    /// On how many days they were asked.
    pub days: usize,
    /// When the last one was answered.
    pub last: Timestamp,
    /// What was approved, where the rule has a star.
    pub examples: Vec<String>,
    /// Whether it may run code of the project, which the agent may have written, or write what the agent chooses.
    pub runs_code: bool,
}

/// The rules that answers suggest, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suggested {
    /// The rules, the most useful first.
    pub rules: Vec<Suggestion>,
    /// How many calls were asked about that no rule in force decides.
    pub asked: usize,
    /// How many of them all these rules together would have answered.
    pub answered: usize,
}

impl Answered {
    /// What a host has asked, from what was shown; `None` for what no rule is suggested for. A rule for files would allow whatever is
    /// written into them, so only commands are.
    pub fn of(payload: &Payload, is_approved: bool, at: Timestamp) -> Option<Self> {
        // What `exec` runs is approved each time, whatever rules allow.
        let whole = payload.call().filter(|call| call.kind.starts_with("hook."))?;
        let Payload::Command(command) = payload else { return None };
        let cwd = Path::new(&command.cwd);
        let action = match &command.invocation {
            Invocation::Shell(text) => Action::Shell(text.clone()),
            Invocation::Argv(words) => Call::of_words(words, cwd).action,
        };
        let call = Call { tool: whole.tool.clone(), cwd: cwd.to_owned(), action };
        Some(Self { call, alarm: payload.alarm(), is_approved, at })
    }
}

/// A call that rules leave to people.
struct Question<'a> {
    answered: &'a Answered,
    root: PathBuf,
    /// What rules would have to allow; empty if no rule is suggested for it.
    needs: BTreeMap<Words, Known>,
}

impl Question<'_> {
    /// Whether no rule may answer it.
    fn is_guard(&self) -> bool {
        !self.answered.is_approved || self.answered.alarm != Weight::Plain
    }
}

/// The rules in force, by the folders of calls.
struct InForce<'a> {
    load: &'a mut dyn FnMut(&Path) -> Result<Rules, RulesError>,
    known: BTreeMap<PathBuf, Rules>,
    /// The same with more rules of the user, as they were tried last.
    tried: (String, BTreeMap<PathBuf, Rules>),
}

impl InForce<'_> {
    fn at(&mut self, cwd: &Path) -> Result<&Rules, RulesError> {
        if !self.known.contains_key(cwd) {
            let rules = (self.load)(cwd)?;
            self.known.insert(cwd.to_owned(), rules);
        }
        Ok(&self.known[cwd])
    }

    /// Whether a call would be allowed with more rules of the user.
    fn allows_with(&mut self, more: &str, call: &Call) -> Result<bool, RulesError> {
        if self.tried.0 != more {
            self.tried = (more.to_owned(), BTreeMap::new());
        }
        if !self.tried.1.contains_key(&call.cwd) {
            let rules = self.at(&call.cwd)?.with(more)?;
            self.tried.1.insert(call.cwd.clone(), rules);
        }
        Ok(self.tried.1[&call.cwd].decide(call).verdict == Verdict::Allow)
    }
}

/// The rules that answers suggest. `load` gives those in force for calls in a folder.
pub fn suggest(
    answered: &[Answered],
    wanted: Wanted,
    load: &mut dyn FnMut(&Path) -> Result<Rules, RulesError>,
) -> Result<Suggested, RulesError> {
    let mut in_force = InForce { load, known: BTreeMap::new(), tried: Default::default() };
    let mut questions = Vec::new();
    for answered in answered {
        questions.extend(question(answered, &mut in_force));
    }
    let (rejected, guards) = (rejected(answered), guards(&questions));
    let asked = questions.iter().map(|question| (question.root.as_path(), &question.needs));
    let mut accepted: Vec<Candidate> = Vec::new();
    for candidate in candidates(asked, wanted) {
        let all = format!("{}{}", rules_of(&accepted, &candidate.root), candidate.rule);
        // A rule that can't be written down in the words of rules is none.
        let is_rule = file::parse(&all, Path::new("the rule"), Owner::User, None).is_ok();
        let is_apart = |it: &Candidate| it.root != candidate.root || it.needs.is_disjoint(&candidate.needs);
        let is_new = accepted.iter().all(is_apart) && !rejected.is_about(&candidate.pattern);
        if is_rule && is_new && !allows_any(&guards, &candidate.root, &all, &mut in_force)? {
            accepted.push(candidate);
        }
    }
    // What answers too little alone may answer nothing without those that are left out.
    let frequent = described(&accepted, &questions, &mut in_force, wanted.times)?;
    accepted.retain(|candidate| frequent.iter().any(|it| it.rule == candidate.rule));
    let mut list = described(&accepted, &questions, &mut in_force, wanted.times)?;
    list.sort_by(|a, b| (b.times, &a.rule).cmp(&(a.times, &b.rule)));
    let mut answered = 0;
    for question in questions.iter().filter(|question| !question.is_guard()) {
        let kept: String =
            list.iter().filter(|it| it.repository == question.root).map(|it| it.rule.as_str()).collect();
        answered += usize::from(in_force.allows_with(&kept, &question.answered.call)?);
    }
    Ok(Suggested { rules: list, asked: questions.len(), answered })
}

/// What is left to people of an answered call; `None` if rules decide it now, or its repository is gone.
fn question<'a>(answered: &'a Answered, in_force: &mut InForce<'_>) -> Option<Question<'a>> {
    let call = &answered.call;
    let root = Site::of(&call.cwd).real_root().map(Path::to_owned)?;
    // Where rules can't be read, nothing is allowed.
    let Ok(rules) = in_force.at(&call.cwd) else { return None };
    if rules.decide(call).verdict != Verdict::Ask {
        return None;
    }
    let needs = match answered.is_approved && answered.alarm == Weight::Plain {
        true => needs(call, rules).unwrap_or_default(),
        false => BTreeMap::new(),
    };
    Some(Question { answered, root, needs })
}

/// What rules would have to allow; `None` if none is suggested for it.
fn needs(call: &Call, rules: &Rules) -> Option<BTreeMap<Words, Known>> {
    let Action::Shell(text) = &call.action else { return None };
    let texts = Texts::read(text, &call.cwd, false);
    // What a command reads from another one is no part of its words.
    let has_pipe = text.replace("||", "").contains('|');
    if has_pipe || !texts.unclear.is_empty() {
        return None;
    }
    let parts = texts.parts.iter().filter(|part| part.entered().is_none());
    let commands = parts.map(|part| (&part.words, Call::of_words(&part.words, &call.cwd)));
    let open = commands.filter(|(_, alone)| rules.decide(alone).verdict != Verdict::Allow);
    open.map(|(words, alone)| Some((words.clone(), of_command(words, &alone)?))).collect()
}

/// What a command is by itself; `None` if no rule is suggested for it.
fn of_command(words: &[String], alone: &Call) -> Option<Known> {
    let Reviewed { payload, state, .. } = reviewed(alone);
    // In a rule it would stand for other words.
    if payload.alarm() != Weight::Plain || words.iter().any(|word| word.contains('*')) {
        return None;
    }
    let effects = payload.effects().unwrap_or_default();
    let only_reads = !effects.is_empty() && effects.iter().all(|effect| effect.kind == EffectKind::Reads);
    let is_harmless = state == Some(State::Examined) && (only_reads || names_only(words));
    Some(Known { runs_code: !is_harmless })
}

/// The commands of all calls that were rejected, wherever and however long ago.
struct Rejected {
    words: BTreeSet<Words>,
    unclear: BTreeSet<String>,
}

fn rejected(answered: &[Answered]) -> Rejected {
    let mut rejected = Rejected { words: BTreeSet::new(), unclear: BTreeSet::new() };
    for answer in answered.iter().filter(|answer| !answer.is_approved) {
        let Action::Shell(text) = &answer.call.action else { continue };
        let texts = Texts::read(text, &answer.call.cwd, false);
        rejected.words.extend(texts.parts.into_iter().map(|part| part.words));
        rejected.unclear.extend(texts.unclear);
    }
    rejected
}

impl Rejected {
    /// Whether a command that a pattern covers was rejected, perhaps together with others. What the files were like then plays no part.
    fn is_about(&self, pattern: &Pattern) -> bool {
        let fixed = || pattern.words().iter().filter(|word| *word != "*");
        self.words.iter().any(|words| pattern.covers(words))
            || self.unclear.iter().any(|text| fixed().all(|word| text.contains(word.as_str())))
    }
}

fn rules_of(candidates: &[Candidate], root: &Path) -> String {
    candidates
        .iter()
        .filter(|candidate| candidate.root == root)
        .map(|candidate| candidate.rule.as_str())
        .collect()
}

/// Each call once that no rule may answer.
fn guards<'a, 'b>(questions: &'b [Question<'a>]) -> Vec<&'b Question<'a>> {
    let mut known = BTreeSet::new();
    let mut is_new = |call: &Call| known.insert((call.cwd.clone(), format!("{:?}", call.action)));
    questions.iter().filter(|question| question.is_guard() && is_new(&question.answered.call)).collect()
}

/// Whether any of these would be allowed with more rules for their repository.
fn allows_any(
    guards: &[&Question<'_>],
    root: &Path,
    more: &str,
    in_force: &mut InForce<'_>,
) -> Result<bool, RulesError> {
    for question in guards.iter().filter(|question| question.root == root) {
        if in_force.allows_with(more, &question.answered.call)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Each rule that would have answered enough questions, all of them in force.
fn described(
    candidates: &[Candidate],
    questions: &[Question<'_>],
    in_force: &mut InForce<'_>,
    min_times: usize,
) -> Result<Vec<Suggestion>, RulesError> {
    let mut answered = Vec::new();
    for question in questions.iter().filter(|question| !question.needs.is_empty()) {
        let all = rules_of(candidates, &question.root);
        if in_force.allows_with(&all, &question.answered.call)? {
            answered.push(question);
        }
    }
    let describe = |candidate: &Candidate| {
        let is_meant = |it: &&&Question<'_>| {
            it.root == candidate.root && it.needs.keys().any(|need| candidate.needs.contains(need))
        };
        let meant: Vec<&&Question<'_>> = answered.iter().filter(is_meant).collect();
        let at = || meant.iter().map(|question| question.answered.at);
        let days: BTreeSet<String> = at().map(|at| at.to_string().chars().take(10).collect()).collect();
        let examples = candidate.needs.iter().filter(|_| candidate.has_star).map(shown);
        Some(Suggestion {
            id: Sha256Hex::digest(candidate.rule.as_bytes()).to_string()[..ID_CHARS].to_owned(),
            rule: candidate.rule.clone(),
            what: candidate.what.clone(),
            repository: candidate.root.clone(),
            times: meant.len(),
            days: days.len(),
            last: at().max()?,
            examples: examples.take(MAX_EXAMPLES).collect(),
            runs_code: candidate.runs_code,
        })
    };
    Ok(candidates.iter().filter_map(describe).filter(|it| it.times >= min_times).collect())
}
