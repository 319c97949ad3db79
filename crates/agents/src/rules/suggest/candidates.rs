//! Which rules would answer what was approved: for exactly that, or with a star for an operand that only names something.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use countersign_client::{
    pattern::Pattern,
    payload::{quoted, visible_code},
};
use toml::Value;

/// So many operands must have been approved before others are suggested too.
const MIN_OTHERS: usize = 3;

/// More are not looked at, so that it ends in time; the next ones come when these are rules.
const MAX_CANDIDATES: usize = 100;

/// Commands whose operands name files, and neither run nor write anything that an agent chooses.
const NAMES_ONLY: &[&[&str]] = &[&["git", "add"], &["mkdir"], &["mkdir", "-p"], &["touch"]];

/// Commands with an operand that is only a text. They run the hooks of the repository.
const TEXT_ONLY: &[&[&str]] = &[&["git", "commit", "-m"], &["git", "commit", "-am"]];

/// Which rules are worth suggesting.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// How often it must have been approved.
    pub times: usize,
    /// Whether rules are suggested that let an agent run code of the project, or write what it chooses.
    pub with_code: bool,
}

/// A command that a rule must allow before a call is, with its arguments.
pub(super) type Words = Vec<String>;

/// What is known of a command by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Whether it may run code of the project, or write what an agent chooses.
    pub(super) runs_code: bool,
}

/// A rule, and what it is made of.
pub(super) struct Candidate {
    pub(super) root: PathBuf,
    pub(super) what: String,
    pub(super) rule: String,
    pub(super) pattern: Pattern,
    pub(super) needs: BTreeSet<Words>,
    pub(super) has_star: bool,
    pub(super) runs_code: bool,
}

/// Whether the operands of a command only name something.
pub(super) fn names_only(words: &[String]) -> bool {
    NAMES_ONLY.iter().any(|start| operands(start, words).is_some_and(|rest| !rest.is_empty()))
}

/// The words behind these, if none of them is an option.
fn operands<'a>(start: &[&str], words: &'a [String]) -> Option<&'a [String]> {
    let (head, rest) = words.split_at_checked(start.len())?;
    (head == start && !rest.iter().any(|word| word.starts_with('-'))).then_some(rest)
}

/// Rules that would answer enough questions: those with a star first, of these those that answer most.
pub(super) fn candidates<'a>(
    questions: impl Iterator<Item = (&'a Path, &'a BTreeMap<Words, Known>)>,
    wanted: Wanted,
) -> Vec<Candidate> {
    let mut times: Times<'_> = BTreeMap::new();
    for (root, needs) in questions {
        for (words, known) in needs {
            times.entry((root, words)).or_insert((0, *known)).0 += 1;
        }
    }
    times.retain(|_, (_, known)| wanted.with_code || !known.runs_code);
    let count = |candidate: &Candidate| -> usize {
        let times = candidate.needs.iter().filter_map(|words| times.get(&(candidate.root.as_path(), words)));
        times.map(|(count, _)| count).sum()
    };
    let mut candidates = with_star(&times);
    let exactly = times.iter().filter_map(|((root, words), (_, known))| {
        candidate(root, words, [(*words).clone()].into(), known.runs_code)
    });
    candidates.extend(exactly);
    candidates.retain(|candidate| count(candidate) >= wanted.times);
    candidates.sort_by_key(|candidate| (Reverse(candidate.has_star), Reverse(count(candidate))));
    candidates.truncate(MAX_CANDIDATES);
    candidates
}

type Times<'a> = BTreeMap<(&'a Path, &'a Words), (usize, Known)>;

/// Commands with one operand that only names something, and of which several were approved.
fn with_star(times: &Times<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    for start in NAMES_ONLY.iter().chain(TEXT_ONLY) {
        let mut alike: BTreeMap<&Path, BTreeSet<Words>> = BTreeMap::new();
        let mut runs_code = false;
        for ((root, words), (_, known)) in times {
            if operands(start, words).is_some_and(|rest| rest.len() == 1) {
                alike.entry(root).or_default().insert((*words).clone());
                runs_code |= known.runs_code;
            }
        }
        let words: Words = start.iter().chain(&["*"]).map(|word| (*word).to_owned()).collect();
        let of_several = alike.into_iter().filter(|(_, needs)| needs.len() >= MIN_OTHERS);
        found.extend(of_several.filter_map(|(root, needs)| candidate(root, &words, needs, runs_code)));
    }
    found
}

/// A rule for these words; `None` if it would mean others, or people could not see what it means.
fn candidate(root: &Path, words: &[String], needs: BTreeSet<Words>, runs_code: bool) -> Option<Candidate> {
    let written = |word: &String| if word == "*" { word.clone() } else { quoted(word) };
    let what = words.iter().map(written).collect::<Vec<_>>().join(" ");
    let folder = root.to_str()?;
    let is_visible = visible_code(&what) == what && visible_code(folder) == folder;
    let values = [("command", &what), ("repository", &folder.to_owned())];
    let lines = values.map(|(name, value)| format!("{name} = {}\n", Value::String(value.clone())));
    is_visible.then_some(Candidate {
        root: root.to_owned(),
        rule: format!("[[rule]]\nverdict = \"allow\"\n{}", lines.concat()),
        what,
        pattern: Pattern::new(words).ok()?,
        needs,
        has_star: words.iter().any(|word| word == "*"),
        runs_code,
    })
}

/// As people read it.
pub(super) fn shown(words: &Words) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
